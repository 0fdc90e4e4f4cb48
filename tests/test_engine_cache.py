"""The cache of engines: whole files only, one build for all processes, a clear sentence for a folder that cannot be used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.build.cache import COMPILED, DAY_S, EngineCache
from engines.build.key import SCHEMA, EngineKey
from engines.errors import BuildCancelled, BuildError, CacheError
from engines.folders import cache_folder


def key(number: int = 0, **other) -> EngineKey:
    given = {"runtime": "rtx", "runtime_version": "1.7", "targets": ("sm_89",), "precision": "fp32", "profiles": ()}
    return EngineKey(model_sha256=f"{number:064x}", **{**given, **other})


def keep(cache: EngineCache, wanted: EngineKey, content: bytes = b"engine", now_s: float = 0.0):
    def build(out: Path) -> dict:
        out.write_bytes(content)
        return {"model": "m.onnx"}

    return cache.get_or_build(wanted, build, now_s=lambda: now_s)


def never(out: Path) -> dict:
    raise AssertionError("it is built already")


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "engines ü")


def test_what_was_built_is_found(cache: EngineCache) -> None:
    assert cache.find(key()) is None
    assert cache.entries() == []
    built, is_new = keep(cache, key())
    assert is_new
    found, is_new = cache.get_or_build(key(), never, now_s=lambda: 1.0)
    assert not is_new
    assert found == built == cache.find(key())
    assert found.path.read_bytes() == b"engine"
    assert cache.find(key(1)) is None
    assert [entry.key for entry in cache.entries()] == [key()]


def test_a_build_that_breaks_leaves_nothing(cache: EngineCache) -> None:
    def breaks(out: Path) -> dict:
        out.write_bytes(b"half")
        raise BuildError("broke")

    with pytest.raises(BuildError, match="broke"):
        cache.get_or_build(key(), breaks, now_s=lambda: 0.0)
    assert cache.find(key()) is None
    assert [path.suffix for path in cache.folder.iterdir()] in ([], [".lock"])
    assert keep(cache, key())[1]


@given(content=st.binary(min_size=1, max_size=64), where=st.integers(0, 63), cut=st.booleans(), in_table=st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_damaged_file_is_never_loaded(tmp_path_factory, content: bytes, where: int, cut: bool, in_table: bool) -> None:
    """One byte changed, or the end cut off, in the engine or in the table beside it: found whole or not at all, then built again."""
    cache = EngineCache(tmp_path_factory.mktemp("cache"))
    entry, _ = keep(cache, key(), content)
    path = entry.path.with_suffix(".json") if in_table else entry.path
    data = bytearray(path.read_bytes())
    place = where % len(data)
    if cut:
        del data[place:]
    else:
        data[place] ^= 0x20
    path.write_bytes(data)
    found = cache.find(key())
    assert found is None or found.path.read_bytes() == content
    again, _ = keep(cache, key(), content)
    assert again.path.read_bytes() == content


def test_a_process_killed_between_engine_and_table_leaves_no_entry(cache: EngineCache) -> None:
    entry, _ = keep(cache, key(), b"old")
    entry.path.write_bytes(b"new")  # the next one's engine, and its table never came
    (cache.folder / f"{key().hex}.part").write_bytes(b"half")
    assert cache.find(key()) is None
    assert keep(cache, key(), b"new")[1]
    assert sorted(path.suffix for path in cache.folder.iterdir()) in ([".engine", ".json"], [".engine", ".json", ".lock"])


def test_facts_are_added(cache: EngineCache) -> None:
    keep(cache, key())
    cache.add_facts(key(), {"parity": {"passed": True}})
    found = cache.find(key())
    assert found is not None
    assert found.facts == {"model": "m.onnx", "parity": {"passed": True}}
    with pytest.raises(CacheError, match="build it again"):
        cache.add_facts(key(1), {})


def test_prune_takes_what_is_stale_old_or_too_much(cache: EngineCache) -> None:
    keep(cache, key(0), now_s=100 * DAY_S)
    keep(cache, key(1, runtime_version="1.6"), now_s=100 * DAY_S)
    keep(cache, key(2, schema=SCHEMA + 1), now_s=100 * DAY_S)
    keep(cache, key(3), now_s=0.0)
    damaged, _ = keep(cache, key(4), now_s=100 * DAY_S)
    damaged.path.write_bytes(b"cut")
    (cache.folder / f"{key(5).hex}.part").write_bytes(b"left by a process that was killed")
    removed = cache.prune(now_s=100 * DAY_S, max_age_days=30, versions={"rtx": "1.7"})
    why = {name: reason for name, reason, _ in removed}
    assert set(why) == {key(1, runtime_version="1.6").hex, key(2, schema=SCHEMA + 1).hex, key(3).hex, key(4).hex, key(5).hex}
    assert "1.6" in why[key(1, runtime_version="1.6").hex]
    assert "30 days" in why[key(3).hex]
    assert [entry.key for entry in cache.entries()] == [key(0)]
    assert {path.suffix for path in cache.folder.iterdir()} <= {".engine", ".json", ".lock"}


def test_prune_keeps_the_newest_within_a_size(cache: EngineCache) -> None:
    for number in range(4):
        keep(cache, key(number), b"x" * 100, now_s=float(number))
    cache.prune(now_s=10.0, max_bytes=250)
    assert [entry.key for entry in cache.entries()] == [key(3), key(2)]
    cache.prune(now_s=10.0, max_bytes=0)
    assert cache.entries() == []


def test_what_a_gpu_compiled_of_an_engine_goes_with_it(cache: EngineCache) -> None:
    entry, _ = keep(cache, key())
    entry.path.with_suffix(COMPILED).write_bytes(b"kernels")
    assert cache.prune(now_s=0.0) == []
    assert cache.prune(now_s=0.0, max_bytes=0)[0][2] > len(b"engine") + len(b"kernels")
    assert [path.suffix for path in cache.folder.iterdir()] in ([], [".lock"])
    entry.path.with_suffix(COMPILED).write_bytes(b"written by whoever ran it, when it ended")
    assert [name for name, _, _ in cache.prune(now_s=0.0)] == [key().hex]


def test_an_engine_may_be_pruned_while_it_is_being_built_by_another_process(tmp_path: Path) -> None:
    """It is passed over; the build goes on, and ends with an engine."""
    first = start(tmp_path)
    assert line_of(first) == "building"
    (tmp_path / f"{key().hex}.part").write_bytes(b"half")
    assert EngineCache(tmp_path).prune(now_s=0.0, max_bytes=0) == []
    assert first.communicate("go\n", timeout=60)[0].strip() == "built b'engine'"
    assert EngineCache(tmp_path).find(key()) is not None


# --- a folder that may be read and not written, by somebody who is not root (whom nothing is forbidden)

READER = """
import os, sys
from pathlib import Path
from engines.build.cache import EngineCache
from engines.errors import CacheError
from test_engine_cache import key, keep, never

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
cache = EngineCache(Path(sys.argv[1]))
print(cache.get_or_build(key(), never, now_s=lambda: 0.0)[0].path.read_bytes())
for wanted in (lambda: keep(cache, key(1)), lambda: cache.add_facts(key(), {}), lambda: cache.prune(now_s=0.0, max_bytes=0)):
    try:
        print("allowed", wanted())
    except CacheError as error:
        print(error)
"""


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Not in pytest's own folder, which nobody else may enter."""
    folder = Path(tempfile.mkdtemp())
    keep(EngineCache(folder), key())
    (folder / f"{key().hex}.lock").touch()
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not closed by permissions there")
def test_a_folder_that_may_only_be_read_serves_and_says_what_it_cannot(read_only: Path) -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}\n{READER}"
    done = subprocess.run([sys.executable, "-c", code, str(read_only)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, *refused = done.stdout.splitlines()
    assert first == "b'engine'", "what is there is used"
    assert len(refused) == 3
    for sentence in refused:
        assert f"{read_only}, may not be written; make it writable, or set FFRT_CACHE to a folder that is" in sentence
    assert EngineCache(read_only).find(key()) is not None


BUILDER = """
import sys
from pathlib import Path
from engines.build.cache import EngineCache
from test_engine_cache import key

def build(out):
    print("building", flush=True)
    sys.stdin.readline()
    out.write_bytes(b"engine")
    return {}

entry, is_new = EngineCache(Path(sys.argv[1])).get_or_build(
    key(), build, now_s=lambda: 0.0, waiting=lambda: print("waiting", flush=True))
print("built" if is_new else "found", entry.path.read_bytes(), flush=True)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    code = f"import sys; sys.path[:] = {sys.path!r}\n{BUILDER}"
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_processes_build_once(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert line_of(first) == "building"
    second = start(tmp_path)
    assert line_of(second) == "waiting"
    first.communicate("go\n", timeout=60)
    assert line_of(second) == "found b'engine'"
    second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)


def test_a_process_killed_while_it_builds_holds_nobody(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert line_of(first) == "building"
    second = start(tmp_path)
    assert line_of(second) == "waiting"
    first.kill()
    first.communicate(timeout=60)
    assert line_of(second) == "building"
    assert second.communicate("go\n", timeout=60)[0].strip() == "built b'engine'"


def test_a_wait_can_be_called_off(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert line_of(first) == "building"
    with pytest.raises(BuildCancelled):
        EngineCache(tmp_path).get_or_build(key(), never, now_s=lambda: 0.0, cancelled=lambda: True)
    assert EngineCache(tmp_path).remove(key().hex) == 0  # it is being built
    first.communicate("go\n", timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_full_disk_is_one_sentence(cache: EngineCache) -> None:
    """The system itself says that there is no space: the name that is written to leads to /dev/full."""
    cache.folder.mkdir(parents=True)
    (cache.folder / f"{key().hex}.json.part").symlink_to("/dev/full")
    with pytest.raises(CacheError, match="no space left; run `ffrt engines prune`"):
        keep(cache, key())
    assert cache.find(key()) is None


@pytest.mark.skipif(sys.platform != "linux", reason="even root cannot write to /sys")
def test_a_read_only_folder_is_one_sentence() -> None:
    with pytest.raises(CacheError, match=r"may not be written; .*FFRT_CACHE"):
        keep(EngineCache(Path("/sys/kernel/ffrt")), key())


def test_a_file_where_the_folder_should_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="FFRT_CACHE"):
        keep(EngineCache(tmp_path / "file"), key())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"key": 3}', "\x00"], ids=repr)
def test_a_strange_table_is_no_entry(cache: EngineCache, text: str) -> None:
    entry, _ = keep(cache, key())
    entry.path.with_suffix(".json").write_text(text)
    assert cache.find(key()) is None
    assert cache.entries() == []


def test_an_engine_under_another_ones_name_is_no_entry(cache: EngineCache) -> None:
    entry, _ = keep(cache, key())
    table = json.loads(entry.path.with_suffix(".json").read_text())
    (cache.folder / f"{key(1).hex}.json").write_text(json.dumps(table))
    (cache.folder / f"{key(1).hex}.engine").write_bytes(b"engine")
    assert cache.find(key(1)) is None


def test_the_folder_can_be_chosen(tmp_path: Path) -> None:
    assert cache_folder({"FFRT_CACHE": str(tmp_path)}) == tmp_path
    assert cache_folder({"FFRT_CACHE": ""}).name == "ffrt"
    assert cache_folder({}).is_absolute()

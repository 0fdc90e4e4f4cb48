"""Files are whole or not there, and what a killed process leaves is taken away: never what another one is writing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT

import engines.unfinished
from app.files import write_atomically
from app.gallery import Gallery
from app.leftovers import sweep_leftovers
from app.presets import Preset, Presets
from app.report import write_json
from app.state import StateFile
from engines.store.kept import kept
from engines.unfinished import ENDING, LEFT_S, sweep, unfinished, write_whole

WRITER = """
import sys
from pathlib import Path
from engines.unfinished import write_whole
def write(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
write_whole(Path(sys.argv[1]), write)
"""


@contextmanager
def another_writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is in the midst of writing ``path``, and goes on when it is told a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def left_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"*{ENDING}"))


def make_old(folder: Path) -> None:
    for left in left_in(folder):
        os.utime(left, (time.time() - 2 * LEFT_S,) * 2)


def test_what_a_killed_process_left_is_taken_away_by_the_next_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, b"before")
    with another_writing(path) as other:
        other.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        other.wait()
    assert path.read_bytes() == b"before"
    assert len(left_in(tmp_path)) == 1
    make_old(tmp_path)
    write_atomically(tmp_path / "other.json", b"another")
    assert left_in(tmp_path) == []


def test_what_another_process_is_writing_is_let_be_however_long_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with another_writing(path) as other:
        make_old(tmp_path)
        write_atomically(path, b"ours")
        sweep(tmp_path)
        assert len(left_in(tmp_path)) == 1
        other.communicate("\n", timeout=60)
        assert other.returncode == 0
    assert path.read_bytes() == b"half and half"
    assert left_in(tmp_path) == []


def test_one_that_was_made_a_moment_ago_is_let_be(tmp_path: Path) -> None:
    """It may not be held yet."""
    young = tmp_path / f".state.json-12345678{ENDING}"
    young.write_bytes(b"half")
    sweep(tmp_path)
    assert young.exists()


def test_what_breaks_while_it_writes_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_whole(path, lambda file: file.write(b"before"))

    def breaks(_file: object) -> None:
        raise RuntimeError("in the midst")

    with pytest.raises(RuntimeError):
        write_whole(path, breaks)
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_every_kind_of_file_is_written_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed in the midst of any of them is one that ``write_whole`` knows how to clean up after."""
    import numpy as np

    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    written: list[str] = []
    real = engines.unfinished.settle

    def settle(file: object) -> None:
        written.append(Path(file.name).name.partition("-")[0])  # type: ignore[attr-defined]
        real(file)  # type: ignore[arg-type]

    monkeypatch.setattr(engines.unfinished, "settle", settle)
    StateFile().change(lambda state: state)
    Presets().save("Evening", Preset())
    write_json(tmp_path / "report.json", {})
    kept("0" * 64, "emap", lambda: np.zeros(3))
    assert written == [".state.json", ".Evening.toml", ".report.json", "." + "0" * 40]


def test_a_start_cleans_all_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    sweep_leftovers()  # where there is nothing yet
    for folder in ("", "presets", "gallery/0123", "models", "cache/arrays"):
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / f".x-12345678{ENDING}").write_bytes(b"half")
        (place / ".pull-inswapper.part").write_bytes(b"to be gone on with")
    make_old(tmp_path)
    with unfinished(tmp_path, "held"):
        make_old(tmp_path)
        sweep_leftovers()
        assert len(left_in(tmp_path)) == 1
    assert left_in(tmp_path) == []
    assert len(list(tmp_path.rglob("*.part"))) == 5
    assert Gallery().identities()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes among files")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("elsewhere", path)], ids=["pipe", "folder", "link"])
def test_what_is_no_file_is_let_be_and_holds_nobody_up(make, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.write_text("mine")
    old = time.time() - 2 * LEFT_S
    os.utime(other, (old, old))
    strange = tmp_path / f".x-1{ENDING}"
    make(strange)
    os.utime(strange, (old, old), follow_symlinks=False)
    write_whole(tmp_path / "new", lambda file: file.write(b"new"))
    assert other.read_text() == "mine"
    assert os.path.lexists(strange)
    assert (tmp_path / "new").read_bytes() == b"new"

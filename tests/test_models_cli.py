"""`ffrt models` as a person and as a script call it."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from file_server import Site, serve
from standins.swappers import Contract, swapper
from store_files import EIGHT, crc32, families, model_bytes, sha256

import app.models
from app.cli import main
from engines.family import families as known_families
from engines.store.catalog import load_catalog

FIELDS = {"name", "family", "kind", "licence", "present", "sha256"}
HERE = Path(__file__).parent
DATA = model_bytes(weights=256)
OTHER = model_bytes(weights=256, seed=2)

CATALOG = """
[publishers.tests]
name = "the tests"
checksum = "crc32"
[licences.free]
commercial = "yes"
terms = "MIT: commercial use is permitted"
[licences.research]
commercial = "no"
terms = "for research only; no commercial use"
"""

MODEL = """
[models.{name}]
family = "eight"
kind = "swapper"
file = "{name}.onnx"
publisher = "tests"
licence = "{licence}"
verified = ["licence", "origin"]
"""


class Ffrt:
    """The command with a folder and a catalogue of its own: here, or as a process where signals or a terminal are at stake."""

    def __init__(self, folder: Path, mirror: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder / "models"
        self.catalog = folder / "catalog.toml"
        self.catalog.write_text(CATALOG + MODEL.format(name="open", licence="free") + MODEL.format(name="closed", licence="research"))
        self.env = {**os.environ, "FFRT_MODELS": str(self.folder), "FFRT_MIRROR": mirror, "COLUMNS": "200"}
        self.env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.command = [sys.executable, str(HERE / "models_cli.py"), str(self.catalog), "models"]
        self._capsys = capsys

    def __call__(self, *arguments: Any, **env: str) -> subprocess.CompletedProcess[str]:
        words = ["models", *map(str, arguments)]
        self._capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            for name in ("FFRT_MODELS", "FFRT_MIRROR", "COLUMNS"):
                patch.setenv(name, env.get(name, self.env[name]))
            patch.setattr(sys, "stdin", io.StringIO())
            patch.setattr(app.models, "load_catalog", lambda: load_catalog(self.catalog))
            patch.setattr(app.models, "families", families(**EIGHT))
            patch.setattr(logging.getLogger(), "handlers", [])
            with pytest.raises(SystemExit) as ended:
                main(words)
        out, errors = self._capsys.readouterr()
        return subprocess.CompletedProcess(words, int(ended.value.code or 0), out, errors)

    def json(self, *arguments: Any) -> Any:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        for name in ("open", "closed"):
            site.put(f"/{name}.onnx", DATA)
            site.put(f"/{name}.hash", crc32(DATA).encode())
        yield site


@pytest.fixture
def ffrt(tmp_path: Path, site: Site, capsys: pytest.CaptureFixture[str]) -> Ffrt:
    return Ffrt(tmp_path, site.base, capsys)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The one clear sentence."""
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return " ".join(done.stderr.split())


def test_the_life_of_a_model(ffrt: Ffrt, site: Site) -> None:
    before = ffrt.json("list")
    assert [row["present"] for row in before] == [False, False]
    assert all(set(row) >= FIELDS for row in before)

    done = ffrt("pull", "open")
    assert done.returncode == 0, done.stderr
    assert f"open is {len(DATA) / 1e6:.1f} MB, from the tests. Licence: MIT: commercial use is permitted" in done.stderr
    assert sha256(DATA) in done.stdout

    row = ffrt.json("show", "open")
    assert (row["name"], row["family"], row["kind"], row["licence"], row["present"]) == ("open", "eight", "swapper", "free", True)
    assert (row["sha256"], row["size"]) == (sha256(DATA), len(DATA))
    assert row["graph"].startswith("target float32[batch, 3, 8, 8]")
    assert ffrt.json("show", sha256(DATA)[:8]) == row
    assert [(row["name"], row["present"]) for row in ffrt.json("list")] == [("open", True), ("closed", False)]
    assert [row["name"] for row in ffrt.json("list", "--here")] == ["open"]
    assert all(row["ok"] and set(row) >= FIELDS for row in ffrt.json("verify"))

    asked = len(site.requests)
    assert ffrt.json("pull", "open")["sha256"] == sha256(DATA)
    assert len(site.requests) == asked

    Path(row["path"]).write_bytes(OTHER)
    done = ffrt("verify", "open")
    assert done.returncode == 1
    assert "was changed" in done.stdout
    assert ffrt.json("remove", "open")["present"] is False
    assert ffrt.json("list", "--here") == []
    assert not Path(row["path"]).exists()


def test_a_file_of_that_name_does_not_answer_the_question_for_the_licence(ffrt: Ffrt, tmp_path: Path) -> None:
    mine = tmp_path / "closed.onnx"
    mine.write_bytes(OTHER)
    ffrt.json("import", mine)
    assert ffrt("pull", "closed").returncode == 2
    assert ffrt.json("pull", "closed", "--yes")["sha256"] == sha256(DATA)
    assert len(ffrt.json("list", "--here")) == 2


def test_tables_are_for_people(ffrt: Ffrt) -> None:
    assert ffrt("pull", "open").returncode == 0
    listed = ffrt("list").stdout
    assert sha256(DATA)[:8] in next(line for line in listed.splitlines() if line.split()[:2] == ["here", "open"])
    assert "no" in next(line for line in listed.splitlines() if line.split()[0] == "closed")
    assert "float32[batch, 3, 8, 8]" in ffrt("show", "open").stdout
    assert "ok" in ffrt("verify").stdout


def test_what_is_known_of_a_hash_is_said_and_what_came_is_pinned(ffrt: Ffrt) -> None:
    """Its publisher gives a CRC32 alone: that is said before, and afterwards a byte that changed is found by the SHA-256 that was seen."""
    row = ffrt.json("show", "open")
    assert (row["sha256"], row["sha256_short"], row["checked_by"]) == (None, [], "crc32")
    before = " ".join(ffrt("show", "open").stdout.split())
    assert "sha256 not known checked by the CRC32 that its publisher gives; the SHA-256 of what came is kept" in before
    assert "unknown" in next(line for line in ffrt("list").stdout.splitlines() if line.split()[0] == "open")
    pulled = ffrt.json("pull", "open")
    assert (pulled["sha256"], pulled["checked_by"]) == (sha256(DATA), "sha256")
    assert ffrt.json("verify", "open")[0]["ok"]
    file = Path(pulled["path"])
    file.chmod(0o644)
    file.write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))
    (found,) = json.loads(ffrt("verify", "open", "--json").stdout)
    assert not found["ok"]
    assert sha256(DATA)[:8] in found["problem"]


def test_what_is_known_of_each_model_of_the_catalogue_is_said() -> None:
    """Three kinds: a whole hash, a part of one, none; and those that nothing vouches for have to be got by hand."""
    rows = {row["name"]: row for row in app.models.Models().rows() if not row["present"]}
    whole = {name for name, row in rows.items() if row["checked_by"] == "sha256"}
    assert whole == {entry.name for entry in load_catalog() if entry.sha256 is not None and entry.name in rows}
    assert rows["inswapper_128"]["sha256_short"] == ["e4a3f08c…e16af"]
    assert rows["2d106det"]["checked_by"] is None
    by_hand = {name for name, row in rows.items() if row["checked_by"] is None}
    assert by_hand == {entry.name for entry in load_catalog() if entry.sha256 is None and not entry.crc32_beside and entry.name in rows}


def test_the_mirror_of_the_command_line_goes_first(ffrt: Ffrt, site: Site) -> None:
    site.put("/mine/open.onnx", DATA)
    site.put("/mine/open.hash", crc32(DATA).encode())
    assert ffrt.json("pull", "open", "--mirror", f"{site.base}/mine")["origin"] == [f"{site.base}/mine/open.onnx"]


def test_what_may_not_be_sold_needs_a_yes_where_nobody_is_asked(ffrt: Ffrt, site: Site) -> None:
    done = ffrt("pull", "closed")
    assert done.returncode == 2
    text = said(done)
    assert text.startswith(f"closed is {len(DATA) / 1e6:.1f} MB, from the tests. Licence: for research only; no commercial use.")
    assert "`ffrt models pull closed --yes`" in text
    assert not site.asked("/closed.onnx")
    row = ffrt.json("pull", "closed", "--yes")
    assert (row["commercial"], row["present"]) == ("no", True)


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_a_person_is_asked(ffrt: Ffrt, answer: bytes, status: int) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*ffrt.command, "pull", "closed"], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=ffrt.env)
    os.close(theirs)
    seen = b""
    while b"Fetch it?" not in seen:
        seen += os.read(ours, 1000)
    assert b"no commercial use" in seen
    os.write(ours, answer)
    out = _drain(process, ours)
    assert process.returncode == status
    assert (sha256(DATA).encode() in out) == (status == 0)


def _drain(process: subprocess.Popen[bytes], terminal: int) -> bytes:
    """Reads the terminal until the process has closed it, so that it never waits for us."""
    try:
        while os.read(terminal, 1000):
            pass
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(terminal)
    return process.communicate(timeout=60)[0]


def test_ctrl_c_leaves_a_part_that_the_next_pull_resumes(ffrt: Ffrt, site: Site) -> None:
    held = site.put("/open.onnx", DATA, hold_after=len(DATA) // 2)
    process = subprocess.Popen([*ffrt.command, "pull", "open"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ffrt.env)
    part = ffrt.folder / ".pull-open.part"
    _until(lambda: part.exists() and part.stat().st_size > 100_000, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "what has arrived is kept" in errors
    assert "Traceback" not in errors
    size = part.stat().st_size
    held.hold_after = None
    assert ffrt.json("pull", "open")["sha256"] == sha256(DATA)
    assert site.asked("/open.onnx")[-1].headers["range"] == f"bytes={size}-"
    assert not part.exists()


def test_a_killed_pull_is_resumed_too(ffrt: Ffrt, site: Site) -> None:
    held = site.put("/open.onnx", DATA, hold_after=len(DATA) // 2)
    process = subprocess.Popen([*ffrt.command, "pull", "open"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ffrt.env)
    part = ffrt.folder / ".pull-open.part"
    _until(lambda: part.exists() and part.stat().st_size > 100_000, process)
    process.kill()
    process.communicate(timeout=60)
    size = part.stat().st_size
    held.hold_after = None
    assert ffrt.json("list", "--here") == []
    assert ffrt.json("pull", "open")["sha256"] == sha256(DATA)
    assert site.asked("/open.onnx")[-1].headers["range"] == f"bytes={size}-"


def _until(condition: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_file_of_ones_own_is_imported(ffrt: Ffrt, tmp_path: Path) -> None:
    mine = tmp_path / "my face.dfm"
    mine.write_bytes(OTHER)
    row = ffrt.json("import", mine)
    assert (row["name"], row["family"], row["kind"], row["licence"], row["sha256"]) == (
        "my face", "eight", "swapper", "unknown", sha256(OTHER),
    )  # fmt: skip
    assert Path(row["path"]).read_bytes() == OTHER
    assert Path(row["path"]).name == "my face.dfm"
    assert mine.exists()
    assert ffrt.json("import", mine) == row
    assert ffrt.json("import", mine, "--name", "me")["name"] == "me"
    assert [row["name"] for row in ffrt.json("list", "--here")] == ["me"]


def test_a_file_that_is_here_under_another_name_is_said(ffrt: Ffrt, tmp_path: Path) -> None:
    for name in ("one.onnx", "two.onnx"):
        (tmp_path / name).write_bytes(OTHER)
    assert ffrt("import", tmp_path / "one.onnx").stderr == ""
    assert "two.onnx is known as one; --name calls it something else" in ffrt("import", tmp_path / "two.onnx").stderr
    assert "open is here already" in (ffrt("pull", "open"), ffrt("pull", "open"))[1].stderr


def test_the_models_that_ship_are_known_too(ffrt: Ffrt) -> None:
    row = ffrt.json("show", "face_landmark")
    assert (row["family"], row["licence"], row["present"]) == ("embedded", "Apache-2.0", True)
    for command in ("remove", "pull"):
        done = ffrt(command, "face_landmark")
        assert done.returncode == 1
        assert "face_landmark comes with ffrt" in said(done)
    assert "is face_landmark, which comes with ffrt" in said(ffrt("import", row["path"]))


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "simswap:a", "x.onnx", "-a", "a" * 101])
def test_a_name_that_could_not_be_typed_is_refused(ffrt: Ffrt, tmp_path: Path, name: str) -> None:
    mine = tmp_path / "mine.onnx"
    mine.write_bytes(OTHER)
    done = ffrt("import", mine, f"--name={name}")
    assert done.returncode == 1
    assert "was given as a model's name; give up to 100 letters that can be shown" in said(done)
    assert ffrt.json("list", "--here") == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such file names")
def test_file_names_of_every_kind_are_taken_and_can_be_typed(ffrt: Ffrt, tmp_path: Path) -> None:
    """Of an old disk (no UTF-8), of two lines, hidden, doubly named, and as long as a disk allows."""
    names = {b"m\xfcller.onnx": "m_ller", b"a\nb.onnx": "a_b", b".hidden.onnx": "hidden", b"c.onnx.onnx": "c"}
    names[b"x" * 250 + b".dfm"] = "x" * 100
    for number, (file, name) in enumerate(names.items()):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + file))
        path.write_bytes(model_bytes(weights=16, seed=number))
        row = ffrt.json("import", path)
        assert row["name"] == name
        assert Path(row["path"]).read_bytes() == path.read_bytes()
    assert {row["name"] for row in ffrt.json("list", "--here")} == set(names.values())


def test_two_files_of_one_name_are_told_apart(ffrt: Ffrt, tmp_path: Path) -> None:
    mine = tmp_path / "open.onnx"
    mine.write_bytes(OTHER)
    ffrt.json("import", mine)
    mine.write_bytes(DATA)
    ffrt.json("import", mine)
    assert ffrt.json("list", "--here")[0]["name"] == "open"
    done = ffrt("show", "open")
    assert done.returncode == 1
    assert "2 different files" in said(done)
    assert sha256(OTHER)[:8] in done.stderr
    assert ffrt.json("show", sha256(OTHER)[:8])["sha256"] == sha256(OTHER)


BAD = {
    "unknown model": (["show", "opem"], "did you mean open", 1),
    "unknown pull": (["pull", "nothing at all"], "ffrt models list", 1),
    "remove what is not there": (["remove", "open"], "no model 'open'", 1),
    "verify what is not there": (["verify", "open"], "no model 'open'", 1),
    "missing file": (["import", "{tmp}/none.onnx"], "does not exist", 1),
    "text": (["import", "{tmp}/text.onnx"], "not an ONNX model", 1),
    "folder": (["import", "{tmp}"], "not a file", 1),
    "unknown family": (["import", "{tmp}/good.onnx", "--family", "nine"], "known are: eight, sixteen", 1),
    "wrong family": (["import", "{tmp}/good.onnx", "--family", "sixteen"], "not of the family sixteen", 1),
    "unknown graph": (["import", "{tmp}/odd.onnx"], "the nearest family is eight", 1),
    "bad mirror": (["pull", "open", "--mirror", "here"], "https://example.org", 1),
    "no command": (["fetch"], "fetch", 2),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_sentence(ffrt: Ffrt, tmp_path: Path, case: str) -> None:
    arguments, words, status = BAD[case]
    (tmp_path / "text.onnx").write_text("this is text\n" * 40)
    (tmp_path / "good.onnx").write_bytes(DATA)
    (tmp_path / "odd.onnx").write_bytes(model_bytes(size=9))
    done = ffrt(*(word.replace("{tmp}", str(tmp_path)) for word in arguments))
    assert done.returncode == status, done.stderr
    assert words in said(done) if status == 1 else words in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4


def test_a_damaged_download_is_one_clear_sentence(ffrt: Ffrt, site: Site) -> None:
    site.files["/open.onnx"].data = OTHER
    done = ffrt("pull", "open")
    assert done.returncode == 1
    assert f"CRC32 {crc32(OTHER)}, not {crc32(DATA)}" in said(done)


def test_a_folder_that_cannot_be_is_one_clear_sentence(ffrt: Ffrt, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = ffrt("pull", "open", FFRT_MODELS=str(tmp_path / "taken"))
    assert done.returncode == 1
    assert "is a file; name a folder for models in FFRT_MODELS" in said(done)


def test_a_name_cannot_command_the_terminal(ffrt: Ffrt, tmp_path: Path) -> None:
    mine = tmp_path / "a\x1b[2Jb.onnx"
    mine.write_bytes(DATA)
    done = ffrt("import", mine)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + ffrt("list").stdout


def test_a_model_of_the_real_catalogue_comes_from_a_mirror(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the catalogue and the families that ship."""
    data = swapper(tmp_path / "inswapper.onnx", Contract(128, emap=True)).read_bytes()
    site.put("/models-3.0.0/inswapper_128.onnx", data)
    site.put("/models-3.0.0/inswapper_128.hash", crc32(data).encode())
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with pytest.raises(SystemExit):
        main(["models", "pull", "inswapper_128", "--yes", "--json", "--mirror", site.base])
    out, errors = capsys.readouterr()
    row = json.loads(out)
    assert (row["family"], row["commercial"], row["sha256"]) == ("inswapper", "no", sha256(data))
    assert "non-commercial research only" in errors


def test_the_catalogue_and_the_families_agree_on_what_a_model_does() -> None:
    kinds = {name: known_families[name].kind for name in known_families}
    assert kinds
    assert all(kinds.get(entry.family, entry.kind) == entry.kind for entry in load_catalog())

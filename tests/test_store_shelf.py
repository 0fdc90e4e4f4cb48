"""The folder of models: found by name or hash, two of one name side by side, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_files import model_bytes, sha256

from engines.errors import ModelError
from engines.family import Graph
from engines.session import TensorSpec
from engines.store.shelf import Card, Shelf, default_folder

GRAPH = Graph(
    (TensorSpec("a", ("batch", 3), np.dtype(np.float16)), TensorSpec("b", (), np.dtype(np.void))),
    (TensorSpec("c", (1,), np.dtype(np.uint8)),),
    TensorSpec("emap", (512, 512), np.dtype(np.float32)),
    17,
)


def card(data: bytes, name: str = "tiny", file: str = "tiny.onnx", origin: str = "here") -> Card:
    return Card(name, file, sha256(data), len(data), "eight", "swapper", origin, "mit", "yes", "MIT", GRAPH)


def take(shelf: Shelf, tmp_path: Path, data: bytes, **how: str) -> Card:
    source = tmp_path / "given"
    source.write_bytes(data)
    return shelf.take(source, card(data, **how))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "deep" / "models")


ONE, TWO = model_bytes(seed=1), model_bytes(seed=2)


def test_a_folder_that_is_not_there_is_empty(shelf: Shelf) -> None:
    assert shelf.cards() == []
    with pytest.raises(ModelError, match="none yet"):
        shelf.find("tiny")


def test_what_is_taken_is_found_and_known(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    for asked in ("tiny", "tiny.onnx", taken.sha256, taken.sha256.upper(), taken.sha256[:6]):
        assert shelf.find(asked) == taken
    assert Shelf(shelf.folder).cards() == [taken]
    model = shelf.model(taken)
    assert (model.name, model.path.read_bytes(), model.sha256, model.family, model.graph) == ("tiny", ONE, sha256(ONE), "eight", GRAPH)
    assert shelf.has(taken.sha256) == taken
    assert (tmp_path / "given").exists()
    assert {path.name for path in shelf.folder.iterdir()} == {"tiny.onnx", f"{taken.sha256}.json", ".names.lock"}


def test_two_files_of_one_name_stand_side_by_side(shelf: Shelf, tmp_path: Path) -> None:
    one, two = take(shelf, tmp_path, ONE, origin="a"), take(shelf, tmp_path, TWO, origin="b")
    assert one.file == "tiny.onnx"
    assert two.file == f"tiny-{sha256(TWO)[:8]}.onnx"
    with pytest.raises(ModelError) as caught:
        shelf.find("tiny")
    for part in ("2 different files", sha256(ONE)[:8], sha256(TWO)[:8], "from a", "from b", "first digits"):
        assert part in str(caught.value)
    assert shelf.path(shelf.find(two.sha256[:8])).read_bytes() == TWO
    shelf.remove(one)
    assert shelf.find("tiny") == two


def test_two_who_take_one_name_at_once_both_keep_their_file(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks whether the name is free; without a lock both would find that it is, and the later file would replace the earlier."""
    both = threading.Barrier(2)
    free = Shelf._free

    def slowly(self: Shelf, file: str, sha256: str) -> Path:
        found = free(self, file, sha256)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.3)  # passed only where both are here
        return found

    monkeypatch.setattr(Shelf, "_free", slowly)
    contents = (ONE, TWO)
    for number, data in enumerate(contents):
        (tmp_path / str(number)).write_bytes(data)
    threads = [threading.Thread(target=shelf.take, args=(tmp_path / str(number), card(data))) for number, data in enumerate(contents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {shelf.path(taken).read_bytes() for taken in shelf.cards()} == set(contents)


def test_taking_one_twice_changes_nothing(shelf: Shelf, tmp_path: Path) -> None:
    assert take(shelf, tmp_path, ONE).file == take(shelf, tmp_path, ONE).file
    assert len(shelf.cards()) == 1


def test_a_loose_file_of_that_name_is_left_alone_unless_it_is_the_same(shelf: Shelf, tmp_path: Path) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "tiny.onnx").write_bytes(TWO)
    assert take(shelf, tmp_path, ONE).file == f"tiny-{sha256(ONE)[:8]}.onnx"
    assert take(shelf, tmp_path, TWO).file == "tiny.onnx"


def test_a_short_beginning_of_a_hash_is_not_enough(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    with pytest.raises(ModelError, match="there are: tiny"):
        shelf.find(taken.sha256[:5])


def test_a_changed_file_is_found_out(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    shelf.path(taken).write_bytes(TWO)
    for look in (shelf.verify, shelf.model):
        with pytest.raises(ModelError, match=rf"was changed.*{sha256(TWO)}.*ffrt models remove {sha256(ONE)[:8]}"):
            look(taken)


def test_a_touched_file_is_the_same(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    os.utime(shelf.path(taken), ns=(1, 1))
    assert shelf.model(taken).sha256 == taken.sha256


def test_a_file_that_is_gone_is_not_listed(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    shelf.path(taken).unlink()
    assert shelf.cards() == []
    for look in (shelf.verify, shelf.model):
        with pytest.raises(ModelError, match="is gone"):
            look(taken)


def test_a_source_that_changes_while_it_is_copied(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(TWO)
    with pytest.raises(ModelError, match="changed while it was copied"):
        shelf.take(tmp_path / "given", card(ONE))
    assert list(shelf.folder.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../../etc/passwd"},
        {"file": ""},
        {"sha256": "0" * 64},
        {"size": "big"},
        {"name": None},
        {"graph": {}},
        {"graph": {"inputs": [1], "outputs": [], "last_initializer": None, "opset": 1}},
        {"unknown": 1},
        None,
    ],
)
def test_a_damaged_card_is_logged_and_left_out(shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture, change: dict | None) -> None:
    good, bad = take(shelf, tmp_path, ONE), take(shelf, tmp_path, TWO)
    path = shelf.folder / f"{bad.sha256}.json"
    path.write_text("{" if change is None else json.dumps({**json.loads(path.read_text()), **change}))
    assert shelf.cards() == [good]
    assert str(path) in caplog.text


def test_other_files_in_the_folder_are_nobodys_business(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    (shelf.folder / "notes.json").write_text("[]")
    (shelf.folder / "loose.onnx").write_bytes(TWO)
    assert shelf.cards() == [taken]


def test_a_write_that_fails_leaves_the_old_file(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take(shelf, tmp_path, ONE)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ModelError, match="no space left"):
        take(shelf, tmp_path, TWO)
    with pytest.raises(ModelError, match="no space left"), shelf.writing():
        shelf.write_atomically(shelf.folder / "x", b"new")
    assert shelf.cards() == [taken]
    assert not [path for path in shelf.folder.iterdir() if path.name.endswith((".part", ".unfinished"))]


def test_too_little_space_is_said_before(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10))
    with pytest.raises(ModelError, match="0 MB are free"):
        take(shelf, tmp_path, ONE)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that nobody may write to, and we are nobody: root is asked no questions."""
    root = Path(tempfile.mkdtemp())
    folder = root / "models"
    folder.mkdir(mode=0o555)
    root.chmod(0o755)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(before)
        folder.chmod(0o755)
        shutil.rmtree(root)


def test_a_folder_that_refuses_says_what_to_do(read_only: Path) -> None:
    shelf = Shelf(read_only)
    with pytest.raises(ModelError, match=r"cannot write to .*Permission denied.*FFRT_MODELS"), shelf.writing():
        shelf.write_atomically(read_only / "x", b"new")
    with pytest.raises(ModelError, match="cannot write to"), Shelf(read_only / "below").writing():
        pass
    assert shelf.cards() == []


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    shelf = Shelf(tmp_path / "models")
    with pytest.raises(ModelError, match="is a file; name a folder for models in FFRT_MODELS"):
        shelf.cards()
    with pytest.raises(ModelError, match="cannot write to"):
        take(shelf, tmp_path, ONE)


def test_the_folder_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "mine"))
    assert Shelf().folder == tmp_path / "mine"
    monkeypatch.delenv("FFRT_MODELS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_folder().name == "models"
    assert "ffrt" in default_folder().parts


def test_a_renamed_card_keeps_its_file(shelf: Shelf, tmp_path: Path) -> None:
    taken = take(shelf, tmp_path, ONE)
    again = shelf.take(tmp_path / "given", replace(taken, name="other"))
    assert [card.name for card in shelf.cards()] == ["other"]
    assert again.file == taken.file

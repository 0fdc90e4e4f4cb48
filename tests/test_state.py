"""The last state survives, whatever becomes of its file."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from app.presets import Preset
from app.settings import LookSettings
from app.state import CAMERAS_MAX, State, StateFile

LOOK = Preset(look=LookSettings(opacity=0.5))


def test_it_comes_back(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "deep" / "state.json")
    assert file.load() == State()
    written = file.change(lambda state: state.used("Logitech", LOOK).model_copy(update={"consent": True, "window": {"size": "AAE="}}))
    assert StateFile(file.file).load() == written
    assert written.cameras["Logitech"].look.opacity == 0.5


def test_the_camera_used_longest_ago_gives_way() -> None:
    state = State()
    for number in range(CAMERAS_MAX):
        state = state.used(str(number), LOOK)
    state = state.used("0", LOOK).used("new", LOOK)
    assert "0" in state.cameras
    assert "1" not in state.cameras
    assert len(state.cameras) == CAMERAS_MAX


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b'{"version": 2}', b'{"cameras": {"a": {"look": {"opacity": 9}}}}'])
def test_one_that_cannot_be_read_is_kept_aside(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(data)
    assert StateFile(file).load() == State()
    StateFile(file).change(lambda state: state.used("a", LOOK))
    assert StateFile(file).load().camera == "a"
    assert (tmp_path / "state.json.unreadable").read_bytes() == data


def _use(file: Path, name: str) -> None:
    for number in range(10):
        StateFile(file).change(lambda state, key=f"{name}{number}": state.used(key, LOOK))  # type: ignore[misc]


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_use, args=(tmp_path / "state.json", name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(StateFile(tmp_path / "state.json").load().cameras) == 20


def _write_for_ever(file: Path) -> None:
    """States of very different lengths: a mixture of two would be none."""
    number = 0
    while True:
        number += 1
        StateFile(file).change(lambda _, n=number: State(camera=str(n), window={"size": "x" * (n % 7) * 50_000}))  # type: ignore[misc]


def test_a_program_that_is_killed_while_it_writes_leaves_a_whole_state(tmp_path: Path) -> None:
    """At any moment: before, in the middle of and after a write. The next program reads, writes, and is not kept waiting by a lock."""
    file = tmp_path / "state.json"
    spawn = multiprocessing.get_context("spawn")
    for after in range(8):
        process = spawn.Process(target=_write_for_ever, args=(file,))
        process.start()
        before, written = StateFile(file).load().camera, 0
        while written <= after:
            camera = StateFile(file).load().camera
            written += camera != before
            before = camera
        process.kill()
        process.join()
        state = StateFile(file).load()
        assert state.camera is not None
        assert state.window["size"] == "x" * (int(state.camera) % 7) * 50_000
        assert not (tmp_path / "state.json.unreadable").exists()
        StateFile(file).change(lambda now: now.model_copy(update={"consent": True}))
        assert StateFile(file).load().consent

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

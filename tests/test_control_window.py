"""The window is controlled from outside as the headless program is, and follows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
pytest.importorskip("aiohttp")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from control_kit import begun, ffrt

from app.control.client import ControlClient
from app.errors import ControlError
from app.gui import theme
from app.gui.live import LiveState
from app.gui.outside import Outside
from app.gui.window import Window
from app.gui.worker import Worker
from app.live_options import asks_for_nothing
from app.settings import InputSettings, Settings
from app.state import State

PATIENCE_MS = 60_000


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    theme.apply(qapp, theme.LIGHT)
    made = Window(Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30")), theme.LIGHT)
    made.show()
    yield made
    made.close()


def test_the_window_follows_what_is_told_from_outside(window: Window, qtbot: Any) -> None:
    """Whoever asks is another thread, as another program is."""
    ports: list[int | None] = []
    shown: list[str] = []
    outside = Outside(window.control.studio, window.bench.worker("control"), ports.append)
    outside.when_asked(show=lambda: shown.append("shown"), leave=window.close)
    outside.told.connect(window.program.show_control)
    asker = Worker("asker")
    answers: list[Any] = []

    def answer(call: Callable[[ControlClient], Any]) -> Any:
        count = len(answers)
        asker.run(lambda: call(ControlClient(ports[0] or 0)), answers.append, answers.append)
        qtbot.waitUntil(lambda: len(answers) > count, timeout=PATIENCE_MS)
        return answers[-1]

    def tell(do: str, **facts: Any) -> Any:
        return answer(lambda client: client.tell(do, **facts))

    try:
        outside.open(0)
        qtbot.waitUntil(lambda: bool(ports), timeout=PATIENCE_MS)
        qtbot.waitUntil(lambda: str(ports[0]) in window.program.address.text(), timeout=PATIENCE_MS)
        assert window.program.control.isChecked()
        assert tell("start")["state"] == "live"
        qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
        assert tell("identity", face="hopper")["face"] == "Hopper"
        qtbot.waitUntil(lambda: bool(window.settings.source.photos), timeout=PATIENCE_MS)
        tell("show")
        qtbot.waitUntil(lambda: shown == ["shown"], timeout=PATIENCE_MS)
        assert tell("stop")["state"] == "stopped"
        qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
        window.face.wear(window.face.tiles[-1].identity)
        qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
        assert answer(lambda client: client.ask("state"))["face"] == "Astronaut"
        outside.close()
        qtbot.waitUntil(lambda: ports == [ports[0], None], timeout=PATIENCE_MS)
        assert isinstance(tell("stop"), ControlError)
    finally:
        asker.close()
        outside.shut()


def test_a_start_that_fails_is_told_in_the_window_whoever_asked_for_it(window: Window, qtbot: Any, tmp_path: Path) -> None:
    asker = Worker("asker")
    failures: list[BaseException] = []
    lost = Settings(input=InputSettings(spec=str(tmp_path / "none.mp4")))

    def start() -> None:
        window.control.studio.change(lost)
        window.control.studio.start()

    for _ in range(2):  # and again, though it says the same
        asker.run(start, lambda _: None, failures.append)
        qtbot.waitUntil(lambda: "none.mp4 does not exist" in window.message.text(), timeout=PATIENCE_MS)
        window.message.dismiss.click()
        told: list[str] = []
        window.control.failed.connect(told.append)
        settled: list[object] = []
        window.control.settled.connect(settled.append)
        window.control.apply(lambda settings: settings.model_copy(deep=True))  # the control has looked again when that is taken over
        qtbot.waitUntil(lambda: bool(settled), timeout=PATIENCE_MS)  # noqa: B023  called at once
        assert told == []  # it is said once
        assert window.message.text() == ""
    asker.close()
    assert len(failures) == 2


def test_the_switch_on_the_page_is_remembered_and_asked_for(window: Window, qtbot: Any) -> None:
    wishes: list[bool] = []
    window.program.control_wished.connect(wishes.append)
    with qtbot.waitSignal(window.program.state_wished) as wished:
        window.program.control.click()
    assert wishes == [True]
    assert wished.args[0](State()).control


@pytest.mark.parametrize(
    ("words", "nothing"),
    [
        ("", True),
        ("--minimised --live", True),
        ("--control", True),
        ("--control 0 --verbose", True),
        ("--control=0", True),
        ("--input synthetic:", False),
        ("--opacity 1.0", False),
        ("--preset evening", False),
        ("--live 17", False),
        ("doctor", False),
    ],
)
def test_only_who_asks_for_nothing_gets_the_window_as_it_was_left(words: str, nothing: bool) -> None:
    assert asks_for_nothing(words.split()) is nothing


def test_a_window_of_its_own_is_driven_by_ctl_and_a_second_one_brings_it_forward(tmp_path: Path) -> None:
    (tmp_path / "consent.json").write_text('{"agreed": true}')
    child = begun(tmp_path, "--control", "0", "--input", "synthetic:size=320x180,fps=30")
    try:
        while not (tmp_path / "control.json").exists():
            assert child.poll() is None
        started = ffrt(tmp_path, "ctl", "start", "--json")
        assert json.loads(started.stdout)["state"] == "live", started.stderr
        second = ffrt(tmp_path)
        assert second.returncode == 1
        assert "brought to the front" in second.stderr
        assert ffrt(tmp_path, "ctl", "quit").returncode == 0
        assert child.wait(60) == 0
        assert not (tmp_path / "control.json").exists()
        assert not (tmp_path / "window.json").exists()
    finally:
        child.kill()
        child.communicate()

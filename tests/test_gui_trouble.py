"""What nobody expected, wherever it happens: a page says so, the line goes on, and the program never ends silently."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import HOPPER
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.errors import AppError
from app.gui import theme
from app.gui.live import LiveState
from app.gui.trouble import Trouble, TroublePage, told
from app.gui.window import Window
from app.gui.worker import Worker
from app.jobs import JobState
from app.settings import InputSettings, Settings, SourceSettings
from app.studio import Studio
from engines.swap.mesh.swapper import MeshSwapper
from rt.capture.framing import FramedSource
from rt.compose.lost import LastGood
from rt.errors import SourceError
from rt.sinks.null import NullSink
from rt.tracking import Tracking

PATIENCE_MS = 60_000


class SurpriseError(Exception):
    """Of the tests: nobody expects it."""


class Surprise:
    """Raised at the call of that number of whatever it stands in for, once."""

    def __init__(self, real: Any, at: int = 10) -> None:
        self._real, self._left = real, at

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            raise SurpriseError("a fault of the test's")
        return self._real(*arguments, **options)


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    theme.apply(qapp, theme.LIGHT)
    given = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30"), source=SourceSettings(photos=(HOPPER,)))
    made = Window(given, theme.LIGHT)
    trouble = Trouble()
    trouble.happened.connect(made.tell_trouble)
    made.show()
    qtbot.waitExposed(made)
    yield made
    trouble.close()
    made.close()


def go_live(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()


def page_of(window: Window, qtbot: Any) -> TroublePage:
    qtbot.waitUntil(lambda: window._trouble is not None and window._trouble.isVisible(), timeout=PATIENCE_MS)
    assert window._trouble is not None
    assert "SurpriseError" in window._trouble.text.toPlainText()
    return window._trouble


def stand_in(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, at: int = 10) -> None:
    surprise = Surprise(getattr(kind, name), at)
    monkeypatch.setattr(kind, name, lambda *arguments, **options: surprise(*arguments, **options))


PLACES = [
    (FramedSource, "retrieve"),  # the camera's thread
    (Tracking, "process"),
    (MeshSwapper, "swap"),  # a lane
    (LastGood, "shown_for"),  # the order's thread
]


@pytest.mark.parametrize(("kind", "name"), PLACES, ids=lambda value: getattr(value, "__name__", value))
def test_a_line_that_breaks_is_followed_by_another(
    kind: type, name: str, window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, kind, name, 30 if kind is MeshSwapper else 10)  # what warms up swaps too
    go_live(window, qtbot)
    first = window.control.studio.session
    page = page_of(window, qtbot)
    qtbot.waitUntil(lambda: window.control.studio.session not in (None, first), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        pass
    assert "live and goes on" in page.words.text()
    assert "times" not in page.words.text(), "it happened once"


def test_a_line_that_breaks_again_at_once_ends_and_says_why(window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_always(*_: object) -> None:
        raise SurpriseError("always")

    monkeypatch.setattr(LastGood, "shown_for", break_always)
    window.live_button.click()
    page = page_of(window, qtbot)
    qtbot.waitUntil(lambda: "SurpriseError: always" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert "not live" in page.words.text()
    monkeypatch.undo()
    page.accept()
    go_live(window, qtbot)


def test_an_output_that_breaks_costs_no_other_output(window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, NullSink, "write")
    window.apply(lambda settings: settings.model_copy(update={"output": settings.output.model_copy(update={"null": True})}))
    go_live(window, qtbot)
    session = window.control.studio.session
    page = page_of(window, qtbot)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        pass
    assert window.control.studio.session is session
    assert "live and goes on" in page.words.text()


def test_a_slot_of_qt(window: Window, qtbot: Any) -> None:
    """pytest-qt takes the hook that PySide calls; here it is ours, as in the program."""
    go_live(window, qtbot)
    hook = sys.excepthook
    emitter = QObject()

    def slot() -> None:
        try:
            raise SurpriseError("in a slot")
        except SurpriseError:
            hook(*sys.exc_info())  # type: ignore[arg-type]

    emitter.objectNameChanged.connect(slot)
    emitter.setObjectName("x")
    page_of(window, qtbot)
    assert window.state is LiveState.LIVE


def test_a_job_a_worker_and_a_thread(window: Window, qtbot: Any) -> None:
    go_live(window, qtbot)

    def fail(*_: object) -> None:
        raise SurpriseError("beside the window")

    job = window.jobs.jobs.run("A job", fail, lambda: None)
    page = page_of(window, qtbot)
    qtbot.waitUntil(lambda: job.view.state is JobState.FAILED, timeout=PATIENCE_MS)
    failed: list[BaseException] = []
    window.bench.worker("test").run(fail, failed.append, failed.append)
    qtbot.waitUntil(lambda: len(failed) == 1, timeout=PATIENCE_MS)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: "3 times" in page.words.text(), timeout=PATIENCE_MS)
    assert window.state is LiveState.LIVE


def test_a_change_of_the_control(window: Window, qtbot: Any) -> None:
    go_live(window, qtbot)

    def change(_: Settings) -> Settings:
        raise SurpriseError("in a change")

    window.control.apply(change)
    page_of(window, qtbot)
    qtbot.waitUntil(lambda: "SurpriseError: in a change" in window.message.text(), timeout=PATIENCE_MS)
    assert window.state is LiveState.LIVE


def test_what_is_known_and_what_others_log_opens_no_page(window: Window, qtbot: Any) -> None:
    """A stranger's request that a library cannot read is no fault of ours, and a sentence is told where it belongs."""
    for name in ("aiohttp.server", "asyncio", "PIL"):
        logging.getLogger(name).error("what a stranger sent", exc_info=SurpriseError())

    def fail() -> None:
        raise AppError("a sentence")

    failed: list[BaseException] = []
    window.bench.worker("test").run(fail, failed.append, failed.append)
    qtbot.waitUntil(lambda: len(failed) == 1, timeout=PATIENCE_MS)
    QApplication.processEvents()
    assert window._trouble is None


def test_a_report_that_breaks_is_told_too(qtbot: Any, qapp: Any) -> None:
    def describe(_: BaseException) -> str:
        raise KeyError("of the report")

    page = TroublePage(None, describe)
    qtbot.addWidget(page)
    page.tell(SurpriseError(), live=False)
    assert page.text.toPlainText() == "SurpriseError; the report broke too: KeyError"


def test_a_window_that_cannot_be_made_is_told_before_the_program_ends(qtbot: Any, qapp: Any) -> None:
    """Who started it from a desktop sees no terminal."""
    seen: list[str] = []

    def close() -> None:
        page = QApplication.activeModalWidget()
        assert isinstance(page, TroublePage)
        seen.append(page.words.text() + page.text.toPlainText())
        page.on.click()
        page.deleteLater()

    QTimer.singleShot(0, close)
    with pytest.raises(SurpriseError), told(lambda error: f"the report of {type(error).__name__}"):
        raise SurpriseError("at the start")
    assert seen[0].startswith("ffrt could not be started.")
    assert seen[0].endswith("the report of SurpriseError")


def test_a_start_that_somebody_else_asked_for_is_told_when_it_fails(window: Window, qtbot: Any) -> None:
    """The control interface, a script: whoever looks at the window sees why nothing is live."""
    window.camera.take("/dev/video63")
    qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
    asker, failed = Worker("asker"), []
    try:
        asker.run(window.control.studio.start, failed.append, failed.append)
        qtbot.waitUntil(lambda: len(failed) == 1, timeout=PATIENCE_MS)
        assert isinstance(failed[0], SourceError)
        qtbot.waitUntil(lambda: "/dev/video63" in window.message.text(), timeout=PATIENCE_MS)
        assert window.state is LiveState.IDLE
        assert window._trouble is None
    finally:
        asker.close()


def test_a_start_that_was_called_off_is_no_failure() -> None:
    """Of a camera on the network that accepts the call and never says a word."""
    told_why: list[str] = []
    raised: list[BaseException] = []

    def start() -> None:
        try:
            studio.start()
        except SourceError as error:
            raised.append(error)

    with socket.create_server(("127.0.0.1", 0)) as server:
        studio = Studio(Settings(input=InputSettings(spec=f"http://127.0.0.1:{server.getsockname()[1]}/film.mp4")), failed=told_why.append)
        starter = threading.Thread(target=start)
        starter.start()
        with server.accept()[0]:
            studio.stop()
            starter.join()
    assert len(raised) == 1
    assert told_why == []

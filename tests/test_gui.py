"""The window, offscreen: it goes live on the synthetic camera, and refuses in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest

from app.errors import AppError, MissingError
from app.gui import check_binding, check_display

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import ASTRONAUT, HOPPER
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QWidget

from app.gui import theme
from app.gui.consent import Consent, ask_once
from app.gui.live import LiveState
from app.gui.window import Window
from app.settings import InputSettings, Settings

SMALL = Settings(input=InputSettings(spec="synthetic:size=640x360,fps=30"))
PATIENCE_MS = 60_000


@pytest.fixture(autouse=True)
def kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes what the person who runs it keeps."""
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))


@pytest.fixture
def window(qtbot: Any, qapp: Any) -> Iterator[Window]:
    theme.apply(qapp, theme.LIGHT)
    made = Window(SMALL, theme.LIGHT)
    made.resize(1280, 820)
    made.show()
    yield made
    made.close()


def keep(window: QWidget, name: str) -> None:
    folder = os.environ.get("FFRT_SCREENSHOTS")
    if folder:
        window.grab().save(str(Path(folder) / f"{name}.png"))


def wear(window: Window, qtbot: Any, photo: Path) -> None:
    before = window.photo
    window.choose_photo(photo)
    qtbot.waitUntil(lambda: window.photo not in (None, before), timeout=PATIENCE_MS)


def test_no_display_is_said() -> None:
    with pytest.raises(AppError, match="--headless"):
        check_display({}, "linux")
    check_display({"DISPLAY": ":0"}, "linux")


def test_a_binding_that_would_end_the_program_is_said() -> None:
    with pytest.raises(MissingError, match=r"PySide6-Essentials<6\.12"):
        check_binding("6.12.0", (3, 11, 7))
    check_binding("6.12.0", (3, 12, 1))
    check_binding("6.11.3", (3, 11, 7))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None and True are immortal")
def test_qt_takes_no_reference_away(qapp: Any) -> None:
    """…to None or True, of which there is an end: a window that is live for an hour makes millions of such calls."""
    timer = QTimer()
    before = sys.getrefcount(None), sys.getrefcount(True)
    for _ in range(1000):
        timer.setInterval(1)
        timer.timeout.emit()
    lost = [then - now for then, now in zip(before, (sys.getrefcount(None), sys.getrefcount(True)), strict=True)]
    assert max(lost) < 500, lost


def test_goes_live_and_stops(window: Window, qtbot: Any) -> None:
    keep(window, "idle")
    wear(window, qtbot, HOPPER)
    window.preview.set_split(0.5)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    qtbot.waitUntil(lambda: window.numbers.values["fps_out"].text() != "–", timeout=PATIENCE_MS)
    assert window.state is LiveState.LIVE
    keep(window, "live")
    window.live_button.click()
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)


def test_the_warning_goes_once_a_face_is_worn(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    assert "No face is chosen" in window.message.text()
    wear(window, qtbot, HOPPER)
    qtbot.waitUntil(lambda: window.message.text() == "", timeout=PATIENCE_MS)


def test_a_photo_that_the_gallery_has_is_worn_and_not_added_again(window: Window, qtbot: Any, tmp_path: Path) -> None:
    mine = tmp_path / "me_at  work.png"
    image = cv2.imread(str(HOPPER))
    cv2.imwrite(str(mine), image // 2 * 2)
    wear(window, qtbot, mine)
    qtbot.waitUntil(lambda: worn(window) == "me at work", timeout=PATIENCE_MS)
    first, faces = window.face.worn.id, len(window.face.gallery.identities())
    again = tmp_path / "again.png"
    again.write_bytes(mine.read_bytes())
    wear(window, qtbot, HOPPER)
    qtbot.waitUntil(lambda: worn(window) == "Hopper", timeout=PATIENCE_MS)
    wear(window, qtbot, again)
    qtbot.waitUntil(lambda: worn(window) == "me at work", timeout=PATIENCE_MS)
    assert window.face.worn.id == first
    assert len(window.face.gallery.identities()) == faces


def worn(window: Window) -> str:
    return "" if window.face.worn is None else window.face.worn.name


def test_a_folder_is_refused_in_words(window: Window, qtbot: Any, tmp_path: Path) -> None:
    window.choose_photo(tmp_path)
    qtbot.waitUntil(lambda: "is a folder" in window.message.text(), timeout=PATIENCE_MS)
    assert window.photo is None


def test_wears_another_photo_while_live(window: Window, qtbot: Any) -> None:
    """…on the same line: the pictures go on being counted."""
    wear(window, qtbot, HOPPER)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS) as first:
        window.live_button.click()
    wear(window, qtbot, ASTRONAUT)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS) as later:
        pass
    assert later.args[0].seq > first.args[0].seq
    assert window.state is LiveState.LIVE
    assert not window.message.isVisible(), window.message.text()


def test_an_input_that_does_not_exist_is_said(window: Window, qtbot: Any, tmp_path: Path) -> None:
    window.camera.take(str(tmp_path / "none.mp4"))
    window.live_button.click()
    qtbot.waitUntil(lambda: "does not exist" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    keep(window, "no_input")


def test_going_live_is_not_done_by_the_event_loop(window: Window, qtbot: Any) -> None:
    """The loop comes round while models load: the session is made on another thread."""
    turns = []
    timer = QTimer()
    timer.timeout.connect(lambda: turns.append(window.state))
    timer.start(5)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    timer.stop()
    assert turns.count(LiveState.STARTING) > 1


def test_dark(window: Window, qapp: Any) -> None:
    theme.apply(qapp, theme.DARK)
    window._theme = theme.DARK
    assert window.grab().toImage().pixelColor(4, 4).name() == theme.DARK.page
    keep(window, "dark")


@pytest.mark.parametrize("agrees", [True, False])
def test_consent_is_asked_once(qtbot: Any, qapp: Any, tmp_path: Path, agrees: bool) -> None:
    theme.apply(qapp, theme.LIGHT)
    file = tmp_path / "config" / "consent.json"

    def answer() -> None:
        page = QApplication.activeModalWidget()
        assert isinstance(page, Consent)
        keep(page, "consent")
        page.agree.click() if agrees else page.reject()

    QTimer.singleShot(0, answer)
    assert ask_once(file) is agrees
    assert file.exists() is agrees
    if agrees:
        assert ask_once(file)  # nobody answers: it is not asked

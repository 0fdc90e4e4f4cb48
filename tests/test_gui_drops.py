"""Whatever a person drops on the window or pastes into it, by real events: it is used or answered in words, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import cv2
from conftest import HOPPER
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication, QImage, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication

from app.gui import theme
from app.gui.window import Window
from app.settings import InputSettings, Settings, SourceSettings

PATIENCE_MS = 60_000
WORN = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30"), source=SourceSettings(photos=(HOPPER,)))

Give = Callable[[Window, QMimeData], None]


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    made = Window(WORN, theme.LIGHT)
    made.show()
    qtbot.waitUntil(lambda: bool(made.face.tiles), timeout=PATIENCE_MS)
    yield made
    made.close()


def drop(window: Window, data: QMimeData) -> None:
    at, actions = QPointF(200, 200), Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    try:
        enter = QDragEnterEvent(at.toPoint(), actions, data, buttons, keys)
    except TypeError:  # Qt 6.12 and later
        enter = QDragEnterEvent(at, actions, data, buttons, keys)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    event = QDropEvent(at, actions, data, buttons, keys)
    QApplication.sendEvent(window, event)
    assert event.isAccepted()
    assert event.dropAction() is Qt.DropAction.CopyAction  # or the program that it came from would delete its file


def paste(window: Window, data: QMimeData) -> None:
    """From the clipboard, by the shortcut: it hears keys in an active window alone, and offscreen none becomes active."""
    QGuiApplication.clipboard().setMimeData(data)
    keys = QKeySequence(QKeySequence.StandardKey.Paste)
    next(one for one in window.findChildren(QShortcut) if one.key() == keys).activated.emit()


@pytest.fixture(params=[drop, paste], ids=["drop", "paste"])
def give(request: pytest.FixtureRequest) -> Give:
    return request.param


def files(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def answered(window: Window, qtbot: Any) -> str:
    qtbot.waitUntil(lambda: window.message.isVisible(), timeout=PATIENCE_MS)
    return window.message.text()


def nothing_is_lost(window: Window) -> bool:
    return window.settings == WORN and window.photo == HOPPER and window.face.busy.isHidden()


def test_a_photo_is_worn(window: Window, qtbot: Any, tmp_path: Path, give: Give) -> None:
    photo = tmp_path / "süße Oma.jpg"
    photo.write_bytes(cv2.imencode(".jpg", cv2.imread(str(HOPPER)))[1].tobytes())  # another file than that of the gallery
    give(window, files(photo))
    qtbot.waitUntil(lambda: window.face.worn is not None and window.face.worn.name == "süße Oma", timeout=PATIENCE_MS)
    assert photo.exists()
    assert not window.message.isVisible()


def test_a_picture_without_a_file_is_worn(window: Window, qtbot: Any, give: Give) -> None:
    data = QMimeData()
    data.setImageData(QImage(str(HOPPER)))
    give(window, data)
    qtbot.waitUntil(lambda: window.photo != HOPPER, timeout=PATIENCE_MS)


def folder(place: Path) -> Path:
    (place / "holiday").mkdir()
    return place / "holiday"


def wall(place: Path) -> Path:
    cv2.imwrite(str(place / "wall.png"), np.full((300, 300, 3), 90, np.uint8))
    return place / "wall.png"


def bomb(place: Path) -> Path:
    cv2.imwrite(str(place / "bomb.png"), np.zeros((14_200, 14_200), np.uint8))
    assert (place / "bomb.png").stat().st_size < 1_000_000
    return place / "bomb.png"


def written(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        (place / name).write_bytes(data)
        return place / name

    return make


def gone(place: Path) -> Path:
    return place / "gone.jpg"


BAD = {
    "folder": (folder, "holiday is a folder"),
    "no face": (wall, "no face was found"),
    "200 megapixels": (bomb, "megapixels"),
    "no picture": (written("letter.jpg", b"Dear Sir"), "is not a picture"),
    "empty": (written("empty.jpg", b""), "is empty"),
    "cut short": (written("cut.jpg", HOPPER.read_bytes()[:3000]), "damaged or cut short"),
    "video called a photo": (written("film.jpg", b"\x00\x00\x00\x18ftypisom" + bytes(64)), "is a video"),
    "video": (written("film.mp4", b""), "film.mp4 is a video"),
    "sound": (written("song.mp3", b""), "song.mp3 is a video"),
    "gone": (gone, "does not exist"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_worn_is_answered_and_nothing_is_lost(kind: str, window: Window, qtbot: Any, tmp_path: Path, give: Give) -> None:
    make, words = BAD[kind]
    give(window, files(make(tmp_path)))
    said = answered(window, qtbot)
    assert words in said
    assert "Error" not in said
    assert "DOS" not in said
    assert nothing_is_lost(window)


def test_one_bad_photo_among_good_ones_adds_none(window: Window, qtbot: Any, tmp_path: Path, give: Give) -> None:
    give(window, files(HOPPER, wall(tmp_path)))
    assert "wall.png" in answered(window, qtbot)
    assert nothing_is_lost(window)
    assert all(identity.built_in for identity in window.face.gallery.identities())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://example.org/me.jpg", "a photo has to be saved"),
        ("rtsp://camera/live", "address"),
        ("hello", "That is text"),
        (" ", "That is text"),
        ("x" * 100_000, "That is text"),
    ],
    ids=["photo", "camera", "text", "blank", "long"],
)
def test_text_is_answered(text: str, words: str, window: Window, qtbot: Any, give: Give) -> None:
    data = QMimeData()
    data.setText(text)
    give(window, data)
    assert words in answered(window, qtbot)
    assert nothing_is_lost(window)


def test_an_address_that_a_browser_drags_is_answered(window: Window, qtbot: Any) -> None:
    data = QMimeData()
    data.setUrls([QUrl("https://example.org/me.jpg")])
    drop(window, data)
    assert "address" in answered(window, qtbot)
    assert nothing_is_lost(window)


def test_an_empty_picture_is_answered(window: Window, qtbot: Any) -> None:
    data = QMimeData()
    data.setImageData(QImage())
    window.intake.take(data)
    assert "empty" in answered(window, qtbot)
    assert nothing_is_lost(window)

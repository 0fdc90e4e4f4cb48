"""The photos of the face that is worn: shown whole with the face outlined, added to and removed while it is worn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import ASTRONAUT, HOPPER
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QInputDialog

from app.gui import theme
from app.gui.live import LiveState
from app.gui.window import Window
from app.settings import InputSettings, Settings

PATIENCE_MS = 60_000


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    made = Window(Settings(input=InputSettings(spec="synthetic:size=640x360,fps=30")), theme.LIGHT)
    made.resize(1280, 820)
    made.show()
    qtbot.waitUntil(lambda: len(made.face.tiles) == 2, timeout=PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Photos of one person."""
    photo = cv2.imread(str(HOPPER))
    files = [tmp_path / "one.png", tmp_path / "other.png"]
    cv2.imwrite(str(files[0]), photo)
    cv2.imwrite(str(files[1]), cv2.convertScaleAbs(photo, alpha=0.8))
    return files


def shown(window: Window, qtbot: Any, count: int) -> None:
    def all_there() -> bool:
        buttons = window.face.photos.buttons
        return len(buttons) == count and all(not button.icon().isNull() for button in buttons)

    qtbot.waitUntil(all_there, timeout=PATIENCE_MS)


def outline(window: Window, number: int) -> np.ndarray:
    """Rows and columns of what has the outline's colour, as shares of the picture's sides: float [N, 2]."""
    button = window.face.photos.buttons[number]
    image = button.icon().pixmap(button.iconSize(), 2.0).toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.array(image.constBits()).reshape(image.height(), image.bytesPerLine())
    pixels = rows[:, : 3 * image.width()].reshape(image.height(), -1, 3)
    accent = QColor(theme.LIGHT.accent)
    near = np.abs(pixels.astype(int) - [accent.red(), accent.green(), accent.blue()]).max(-1) < 40
    return np.argwhere(near) / [image.height(), image.width()]


def test_the_face_that_was_found_is_outlined(window: Window, qtbot: Any) -> None:
    assert window.face.photos.isHidden()
    window.face.wear_number(2)
    shown(window, qtbot, 1)
    assert window.face.photos.isVisible()
    found = outline(window, 0)
    assert len(found) > 60
    # Eileen Collins' face lies there in the portrait
    assert np.all(found.min(0) > [0.02, 0.3])
    assert np.all(found.max(0) < [0.42, 0.6])
    assert np.ptp(found, 0).min() > 0.12
    window.face.none.click()
    assert window.face.photos.isHidden()


def test_every_photo_is_there_and_one_can_go_and_come_back_while_live(window: Window, qtbot: Any, two: list[Path]) -> None:
    window.face.add_photos(two)
    shown(window, qtbot, 2)
    names = [button.accessibleName() for button in window.face.photos.buttons]
    assert names[0].startswith("Photo 1 of 2, one.png")
    window.toggle_live()
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    assert len(window.settings.source.photos) == 2
    worn = window.face.worn
    window.face.remove_photo(worn, worn.photos[0])
    qtbot.waitUntil(lambda: len(window.settings.source.photos) == 1, timeout=PATIENCE_MS)
    shown(window, qtbot, 1)
    assert all(photo.is_file() for photo in window.settings.source.photos), "what is worn is there at the next start too"
    _, remove = window.face.photos.menu_of(window.face.worn.photos[0]).actions()
    assert not remove.isEnabled(), "the last one stays"
    qtbot.waitUntil(window.message.action.isVisible, timeout=PATIENCE_MS)
    window.message.action.click()
    qtbot.waitUntil(lambda: len(window.settings.source.photos) == 2, timeout=PATIENCE_MS)
    shown(window, qtbot, 2)
    qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
    assert window.state is LiveState.LIVE


def test_a_further_photo_of_who_is_worn_is_worn_too(window: Window, qtbot: Any, two: list[Path]) -> None:
    window.face.add_photos(two[:1])
    shown(window, qtbot, 1)
    window.face.add_to(window.face.worn, two[1:])
    qtbot.waitUntil(lambda: len(window.settings.source.photos) == 2, timeout=PATIENCE_MS)
    shown(window, qtbot, 2)


def test_of_two_faces_both_are_outlined_and_that_is_said(window: Window, qtbot: Any, tmp_path: Path) -> None:
    pair = np.hstack([cv2.resize(cv2.imread(str(file)), (512, 512)) for file in (HOPPER, ASTRONAUT)])
    cv2.imwrite(str(tmp_path / "pair.png"), pair)
    window.face.add_photos([tmp_path / "pair.png"])
    shown(window, qtbot, 1)
    assert "several faces" in window.face.hint.text()
    assert "several faces" in window.face.photos.buttons[0].accessibleName()


def test_what_comes_with_ffrt_cannot_be_changed(window: Window, qtbot: Any) -> None:
    window.face.wear_number(1)
    shown(window, qtbot, 1)
    assert not any(action.isEnabled() for action in window.face.photos.menu_of(window.face.worn.photos[0]).actions())


def test_a_face_that_is_removed_is_worn_to_the_end_and_can_be_brought_back(window: Window, qtbot: Any, two: list[Path]) -> None:
    window.face.add_photos(two[:1])
    shown(window, qtbot, 1)
    aunt = window.face.worn
    window.toggle_live()
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    window.face.remove(aunt)
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
    assert window.has_face, "nobody is seen by surprise"
    assert aunt.name in window.face.hint.text()
    window.toggle_live()
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert not window.has_face, "its photos are gone"
    window.message.action.click()
    qtbot.waitUntil(lambda: window.face.worn is not None and window.face.worn.id == aunt.id, timeout=PATIENCE_MS)
    window.face.remove(window.face.worn)
    qtbot.waitUntil(lambda: not window.has_face, timeout=PATIENCE_MS)


def test_f2_and_delete_do_what_they_do_everywhere(window: Window, qtbot: Any, two: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    window.face.add_photos(two[:1])
    qtbot.waitUntil(lambda: len(window.face.tiles) == 3, timeout=PATIENCE_MS)
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("Aunt", True))  # the dialogue is Qt's
    QTest.keyClick(next(tile for tile in window.face.tiles if not tile.identity.built_in), Qt.Key.Key_F2)
    qtbot.waitUntil(lambda: "Aunt" in [tile.identity.name for tile in window.face.tiles], timeout=PATIENCE_MS)
    QTest.keyClick(window.face.tiles[-1], Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: len(window.face.tiles) == 3, timeout=PATIENCE_MS)
    QTest.keyClick(next(tile for tile in window.face.tiles if not tile.identity.built_in), Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)

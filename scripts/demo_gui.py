"""Drives the window by mouse and keyboard on the synthetic camera; leaves screenshots in demo/gui. Exit status 1 where it gets stuck."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton

from app.gui import theme
from app.gui.cards.camera import SYNTHETIC
from app.gui.live import LiveState
from app.gui.window import Window
from app.settings import InputSettings, Settings

PATIENCE_S = 60.0


def until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo-gui: waited {PATIENCE_S:g} s for {what}")
        QTest.qWait(20)


def drive(application: QApplication, name: str, colours: theme.Theme, folder: Path) -> None:
    theme.apply(application, colours)
    window = Window(Settings(input=InputSettings(spec=SYNTHETIC)), colours)
    window.resize(1280, 820)
    window.show()
    QTest.qWait(100)
    window.grab().save(str(folder / f"{name}_idle.png"))
    QTest.keyClick(window, Qt.Key.Key_1)
    until("the first photo", lambda: window.photo is not None)
    QTest.mouseClick(window.live_button, Qt.MouseButton.LeftButton)
    until("the line", lambda: window.state is LiveState.LIVE)
    split = next(button for button in window.findChildren(QToolButton) if "|" in button.text())
    QTest.mouseClick(split, Qt.MouseButton.LeftButton)
    QTest.qWait(3000)
    window.grab().save(str(folder / f"{name}_live_first.png"))
    first = window.photo
    QTest.keyClick(window, Qt.Key.Key_2)
    until("the second photo", lambda: window.photo != first)
    QTest.qWait(3000)
    window.grab().save(str(folder / f"{name}_live_second.png"))
    QTest.mouseClick(window.live_button, Qt.MouseButton.LeftButton)
    until("the end", lambda: window.state is LiveState.IDLE)
    window.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    application = QApplication([])
    for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
        drive(application, name, colours, folder)


main(Path(sys.argv[1]))

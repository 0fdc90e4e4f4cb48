"""Drives the window by mouse and keyboard on the synthetic camera, and reads what the virtual camera got.

Leaves screenshots in the folder that is given. Exit status 1 where it gets stuck, or where the virtual camera got other pixels than the
line made. The virtual camera is one in memory, so that it needs no driver; what is before it is what any driver gets.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
import pyvirtualcam
import pyvirtualcam.camera
from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton

from app.gui import theme
from app.gui.live import LiveState
from app.gui.window import Window
from app.presets import Preset, Presets
from app.settings import InputSettings, LookSettings, Settings

PATIENCE_S = 60.0
CAMERA = "synthetic:size=1280x720,fps=30"
PALE = "Pale"

MIDDLE = np.s_[240:420, 560:720]
"""Rows and columns of the synthetic camera's face."""


class MemoryCamera:
    """Keeps ``pyvirtualcam.Backend``; what was sent last lies in ``pictures``."""

    pictures: ClassVar[deque[np.ndarray]] = deque(maxlen=90)
    """uint8 [H, W, 3] BGR, what a program that reads the camera sees."""

    def __init__(self, *, width: int, height: int, fps: float, fourcc: int, device: str | None, **_: Any) -> None:
        self._shape = (height * 3 // 2, width)

    def send(self, frame: np.ndarray) -> None:
        self.pictures.append(cv2.cvtColor(frame.reshape(self._shape), cv2.COLOR_YUV2BGR_I420))

    def close(self) -> None:
        self.pictures.clear()

    def device(self) -> str:
        return "memory"

    def native_fourcc(self) -> int | None:
        return None


def pass_ms(milliseconds: int) -> None:
    """The event loop comes round meanwhile, and other threads run: ``QTest.qWait`` keeps the interpreter to itself."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo-gui: waited {PATIENCE_S:g} s for {what}")
        pass_ms(20)


def click(widget: Any) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def next_pictures(window: Window) -> None:
    """Until the preview and the virtual camera have what was set before."""
    until("the change", lambda: not window.control.busy)
    seen: list[object] = []
    window.preview.shown.connect(lambda _: seen.append(None))
    MemoryCamera.pictures.clear()
    until("pictures", lambda: len(seen) > 30 and len(MemoryCamera.pictures) > 5)


def check_virtual_camera(window: Window) -> np.ndarray:
    """A picture as the sinks get it is among those of the virtual camera. Returns the colour of its face."""
    found: list[Any] = []
    window.bench.worker("snapshot").run(window.control.studio.snapshot, found.append, found.append)
    until("a snapshot", lambda: bool(found))
    if isinstance(found[0], Exception):
        sys.exit(f"demo-gui: no snapshot: {found[0]}")
    small = found[0][::4, ::4].astype(int)

    def differences() -> list[float]:
        return [float(np.abs(picture[::4, ::4].astype(int) - small).mean()) for picture in list(MemoryCamera.pictures)]

    until("the snapshot's picture on the virtual camera", lambda: min(differences(), default=255) < 3)  # 4:2:0 blurs colours
    colour: np.ndarray = found[0][MIDDLE].mean((0, 1))
    return colour


def drive(application: QApplication, name: str, colours: theme.Theme, folder: Path) -> None:
    theme.apply(application, colours)
    window = Window(Settings(input=InputSettings(spec=CAMERA)), colours)
    window.resize(1280, 820)
    window.show()
    window.activateWindow()
    until("the gallery", lambda: len(window.face.tiles) >= 2 and PALE in window.presets.lines)
    pass_ms(200)

    def shot(what: str) -> None:
        window.grab().save(str(folder / f"{name}_{what}.png"))

    shot("1_idle")
    QTest.keyClick(window, Qt.Key.Key_1)
    until("the first face", lambda: window.photo is not None)
    QTest.keyClick(window, Qt.Key.Key_3, Qt.KeyboardModifier.AltModifier)
    until("the page of outputs", lambda: window.pages.current == "outputs")
    click(window.outputs.virtual_camera.switch)
    until("the virtual camera's switch", lambda: window.settings.output.virtual_camera is not None)
    click(window.live_button)
    until("the line", lambda: window.state is LiveState.LIVE)
    next_pictures(window)
    shot("2_live_outputs")
    first = check_virtual_camera(window)
    QTest.keyClick(window, Qt.Key.Key_1, Qt.KeyboardModifier.AltModifier)
    click(next(button for button in window.findChildren(QToolButton) if "|" in button.text()))
    next_pictures(window)
    shot("3_first_face")
    worn = window.photo
    QTest.keyClick(window, Qt.Key.Key_2)
    until("the second face", lambda: window.photo != worn)
    next_pictures(window)
    shot("4_second_face")
    second = check_virtual_camera(window)
    QTest.keyClick(window, Qt.Key.Key_5, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(window, Qt.Key.Key_1)
    until("the first face again", lambda: window.photo == worn)
    click(window.presets.lines[PALE])
    until("the preset", lambda: window.settings.look.opacity < 1)
    next_pictures(window)
    shot("5_preset")
    pale = check_virtual_camera(window)
    for what, one, other in (("face", first, second), ("preset", first, pale)):
        if np.abs(one - other).max() < 2:
            sys.exit(f"demo-gui: another {what}, and the virtual camera shows the same: {one.round(1)} and {other.round(1)}")
    click(window.live_button)
    until("the end", lambda: window.state is LiveState.IDLE)
    for number, page in enumerate(("camera", "look", "program"), 6):
        window.pages.open_named(page)
        pass_ms(200)
        shot(f"{number}_{page}")
    window.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="ffrt-demo-") as own:  # not the gallery and the presets of whoever runs it
        os.environ["FFRT_CONFIG"] = own
        Presets().save(PALE, Preset(look=LookSettings(opacity=0.3)))
        pyvirtualcam.camera.BACKENDS.clear()
        pyvirtualcam.register_backend("memory", MemoryCamera)
        application = QApplication([])
        for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
            drive(application, name, colours, folder)
    sys.stdout.write(f"demo-gui: look at {folder}/*.png\n")


main(Path(sys.argv[1]))

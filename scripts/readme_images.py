"""Makes the README's pictures: a face before and after, and the window while it is live, both by ffrt itself.

Both people are in the public domain (assets/portraits/README.md).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.compare import worn_on
from app.gui import theme
from app.gui.live import LiveState
from app.gui.window import Window
from app.settings import InputSettings, Settings, SourceSettings
from engines.identity.photo import open_photo

PORTRAITS = Path(__file__).parent.parent / "assets" / "portraits"
FILMED, WORN = PORTRAITS / "astronaut.png", PORTRAITS / "hopper.jpg"

PATIENCE_S = 60.0
HEIGHT, GAP, CAPTION = 340, 10, 34
QUALITY = 88


def before_and_after() -> np.ndarray:
    """uint8 [H, W, 3] BGR: the photo, who is filmed, and who is seen."""
    filmed = open_photo(FILMED)
    seen = worn_on(filmed, Settings(source=SourceSettings(photos=(WORN,))))
    photo, part = open_photo(WORN)[:512], np.s_[:360, 40:420]
    tiles = [("the photo", photo), ("filmed", filmed[part]), ("what OBS and Zoom get", seen[part])]
    columns = [_captioned(_of_height(picture), words) for words, picture in tiles]
    gap = np.full((columns[0].shape[0], GAP, 3), 255, np.uint8)
    return np.hstack([columns[0], gap, columns[1], gap, columns[2]])


def _of_height(picture: np.ndarray) -> np.ndarray:
    width = round(picture.shape[1] * HEIGHT / picture.shape[0])
    return cv2.resize(picture, (width, HEIGHT), interpolation=cv2.INTER_AREA)


def _captioned(picture: np.ndarray, words: str) -> np.ndarray:
    strip = np.full((CAPTION, picture.shape[1], 3), 255, np.uint8)
    cv2.putText(strip, words, (2, CAPTION - 11), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (60, 60, 60), 1, cv2.LINE_AA)
    return np.vstack([picture, strip])


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"readme-images: waited {PATIENCE_S:g} s for the window")
        loop = QEventLoop()
        QTimer.singleShot(20, loop.quit)
        loop.exec()


def shoot_window(application: QApplication, colours: theme.Theme, file: Path) -> None:
    """Live on the synthetic camera, before on the left and after on the right."""
    theme.apply(application, colours)
    window = Window(Settings(input=InputSettings(spec="synthetic:size=1280x720,fps=30,portrait=" + str(FILMED))), colours)
    window.resize(1280, 800)
    window.show()
    seen: list[object] = []
    window.preview.shown.connect(seen.append)
    try:
        until(lambda: len(window.face.tiles) >= 2)
        window.face.wear_number(1)
        window.view["split"].setChecked(True)
        window.toggle_live()
        until(lambda: window.state is LiveState.LIVE and bool(window.people.chips) and len(seen) > 240)
        window.grab().save(str(file), "JPG", QUALITY)
    finally:
        window.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ffrt-") as own:  # not the gallery of whoever runs it
        os.environ["FFRT_CONFIG"] = own
        cv2.imwrite(str(folder / "before_after.jpg"), before_and_after(), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        application = QApplication([])
        for name, colours in (("light", theme.LIGHT), ("dark", theme.DARK)):
            shoot_window(application, colours, folder / f"window_{name}.jpg")
    sys.stdout.write(f"readme-images: {folder}\n")


main(Path(sys.argv[1]))

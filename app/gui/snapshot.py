"""A picture of the moment, as a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import cv2
import numpy as np
from PySide6.QtCore import QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices

from app.files import write_atomically


def pictures() -> Path:
    """Where this person's pictures lie; the home folder where the system names none that is there."""
    place = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.PicturesLocation) or Path.home())
    return place if place.is_dir() else Path.home()


def new_snapshot(folder: Path) -> Path:
    """Two of one second do not meet."""
    return folder / f"ffrt-{datetime.now():%Y%m%d-%H%M%S-%f}.png"


def save_picture(pixels: np.ndarray, place: Path) -> Path:
    """``pixels``: uint8 [H, W, 3] BGR. Takes tenths of a second. Raises ``StoreError``."""
    write_atomically(place, cv2.imencode(".png", pixels)[1].tobytes())
    return place


def show_folder(folder: Path) -> None:
    """In the program that the system has for folders."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

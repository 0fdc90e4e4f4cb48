"""Contact sheets: the source photo, then before and after at some instants, for eyes to judge what numbers cannot."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

CELL = 240
"""Side of a picture in the sheet, pixels."""

MARGIN = 1.7
"""Side of what is shown over the face's box."""


def close_up(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """uint8 [CELL, CELL, 3] BGR around the face at ``points`` (float32 [468, 2+] pixels of ``image``)."""
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    scale = CELL / (MARGIN * float((high - low).max()))
    shift = CELL / 2 - scale * (low + high) / 2
    flags = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    matrix = np.array([[scale, 0, shift[0]], [0, scale, shift[1]]], np.float64)
    view: np.ndarray = cv2.warpAffine(image, matrix, (CELL, CELL), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return view


def write_sheet(path: Path, source: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """``source``: a close-up; ``pairs``: close-ups before and after, drawn in columns. Writes a JPEG; raises ``OSError``."""
    columns = [np.vstack([source, np.full_like(source, 32)]), *(np.vstack(pair) for pair in pairs)]
    _, data = cv2.imencode(".jpg", np.hstack(columns), [cv2.IMWRITE_JPEG_QUALITY, 90])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.tobytes())

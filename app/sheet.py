"""The contact sheet: the source photo, and under it a row of moments before and after."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

TILE_HEIGHT = 270
GAP = 8
PAPER = (245, 245, 245)
INK = (40, 40, 40)


def contact_sheet(pairs: Sequence[tuple[np.ndarray, np.ndarray, str]], source: np.ndarray) -> np.ndarray:
    """``pairs``: (before, after, label), uint8 [H, W, 3] BGR of one size. ``source``: the photo that is worn. Returns BGR."""
    columns = [_source_column(source)]
    columns += [_column(_fit(before), _fit(after), label) for before, after, label in pairs]
    height = max(column.shape[0] for column in columns)
    gap = np.full((height, GAP, 3), PAPER, np.uint8)
    row = [gap]
    for column in columns:
        padded = cv2.copyMakeBorder(column, 0, height - column.shape[0], 0, 0, cv2.BORDER_CONSTANT, value=PAPER)
        row += [padded, gap]
    return np.hstack(row)


def _fit(picture: np.ndarray) -> np.ndarray:
    height, width = picture.shape[:2]
    return cv2.resize(picture, (max(1, round(width * TILE_HEIGHT / height)), TILE_HEIGHT), interpolation=cv2.INTER_AREA)


def _column(upper: np.ndarray, lower: np.ndarray, label: str) -> np.ndarray:
    width = upper.shape[1]
    gap = np.full((GAP, width, 3), PAPER, np.uint8)
    return np.vstack([_caption(f"before, {label}", width), upper, gap, _caption("after", width), lower, gap])


def _source_column(source: np.ndarray) -> np.ndarray:
    tile = _fit(source)
    return np.vstack([_caption("source", tile.shape[1]), tile])


def _caption(text: str, width: int) -> np.ndarray:
    strip = np.full((28, width, 3), PAPER, np.uint8)
    cv2.putText(strip, text, (2, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.55, INK, 1, cv2.LINE_AA)
    return strip

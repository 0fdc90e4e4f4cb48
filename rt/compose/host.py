"""The compositor on the processor: patches over the frame, and regions hidden. Touches the region alone."""

from __future__ import annotations

import cv2
import numba
import numpy as np

from engines.mesh.regions import OVAL
from engines.swap.contract import Patch

HIDE_MARGIN = 0.25
"""How far the hidden region reaches beyond the face's oval, in face widths."""

HIDE_CELLS = 6
"""Cells across a hidden face: its features are a third of its width, so two or three cells each, and nobody can be told."""


def blend(pixels: np.ndarray, patch: Patch, opacity: float = 1.0) -> None:
    """Lays ``patch`` over ``pixels`` (uint8 [H, W, 3] BGR), in place; ``opacity`` in [0, 1] scales its alpha."""
    height, width = patch.alpha.shape
    region = pixels[patch.top : patch.top + height, patch.left : patch.left + width]
    _blend(region, patch.pixels, patch.alpha, round(opacity * 256))


@numba.njit("void(uint8[:, :, :], uint8[:, :, ::1], uint8[:, ::1], int64)", cache=True, nogil=True)
def _blend(region: np.ndarray, pixels: np.ndarray, alpha: np.ndarray, opacity: int) -> None:
    """Integer arithmetic: a + (b - a) · alpha · opacity / (255 · 256), rounded."""
    for y in range(alpha.shape[0]):
        for x in range(alpha.shape[1]):
            weight = np.int32(alpha[y, x]) * opacity
            if weight:
                for c in range(3):
                    below = np.int32(region[y, x, c])
                    region[y, x, c] = (below * 65280 + (np.int32(pixels[y, x, c]) - below) * weight + 32640) // 65280


def blur_face(pixels: np.ndarray, points: np.ndarray) -> None:
    """Makes the face at ``points`` (float32 [468, 2+] pixels) unrecognisable in ``pixels`` (uint8 [H, W, 3] BGR), in place.

    Not a blur that can be sharpened again: the region is reduced to a handful of cells, and only these are shown, smoothed.
    """
    if not np.isfinite(points).all():
        return
    box = _around(points, pixels)
    if box is None:
        return
    left, top, right, bottom = box
    region = pixels[top:bottom, left:right]
    cell = max(1.0, float(np.ptp(points[:, 0])) / HIDE_CELLS)
    cells = (max(1, round((right - left) / cell)), max(1, round((bottom - top) / cell)))
    few = cv2.resize(region, cells, interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(few, (right - left, bottom - top), interpolation=cv2.INTER_LINEAR)
    mask = _oval_mask(points, box)
    _blend(region, coarse, mask, 256)


def _around(points: np.ndarray, pixels: np.ndarray) -> tuple[int, int, int, int] | None:
    height, width = pixels.shape[:2]
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    margin = HIDE_MARGIN * float(np.max(high - low))
    left, top = np.clip(low - margin, 0, [width, height]).astype(int)
    right, bottom = np.clip(np.ceil(high + margin), 0, [width, height]).astype(int)
    return None if right <= left or bottom <= top else (int(left), int(top), int(right), int(bottom))


def _oval_mask(points: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray:
    """uint8 [h, w]: 255 over the face and its margin, with a soft edge outside of it."""
    left, top, right, bottom = box
    oval = points[OVAL, :2]
    centre = oval.mean(0)
    wide = centre + (oval - centre) * (1 + HIDE_MARGIN)
    mask = np.zeros((bottom - top, right - left), np.uint8)
    cv2.fillPoly(mask, [np.round(wide - [left, top]).astype(np.int32)], 255)
    edge = max(1, int(np.ptp(points[:, 0]) * 0.06)) | 1
    return np.maximum(mask, cv2.blur(cv2.dilate(mask, np.ones((edge, edge), np.uint8)), (edge, edge)))

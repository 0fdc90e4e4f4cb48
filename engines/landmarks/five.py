"""From a landmark model's own numbering to the five points that alignment wants."""

from __future__ import annotations

import numpy as np

EYES_68 = ((36, 37, 38, 39, 40, 41), (42, 43, 44, 45, 46, 47))
NOSE_MOUTH_68 = (30, 48, 54)
"""iBUG's 68 points (Sagonas et al. 2013): rims of the eyes on the left and right of the picture; tip of the nose, corners of the mouth."""

EYES_106 = ((33, 35, 39, 40), (87, 89, 93, 94))
NOSE_MOUTH_106 = (86, 52, 61)
"""InsightFace's 2d106det: lower lid, corner, corner and upper lid of each eye (LivePortrait takes the eyes' middles from the same);
its last point on the nose, which is the tip; the ends of the outer lips 52 … 71. From the numbered picture of the model's page and
from programs that use it; no file of it was at hand to try."""


def five_of_68(points: np.ndarray) -> np.ndarray:
    """float32 [5, 2] of [68, 2 or 3]: eyes left and right in the picture, tip of the nose, corners of the mouth."""
    return _five(points, EYES_68, NOSE_MOUTH_68)


def five_of_106(points: np.ndarray) -> np.ndarray:
    """The same of InsightFace's [106, 2]."""
    return _five(points, EYES_106, NOSE_MOUTH_106)


def _five(points: np.ndarray, eyes: tuple[tuple[int, ...], ...], rest: tuple[int, ...]) -> np.ndarray:
    flat = points[:, :2]
    return np.stack([*(flat[list(ring)].mean(0) for ring in eyes), *flat[list(rest)]]).astype(np.float32)

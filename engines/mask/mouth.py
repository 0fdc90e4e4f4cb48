"""The mouth stays the target's own: what is between the lips and the lips themselves, from FaceMesh's points alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cv2
import numpy as np

from engines.face import Patch
from engines.mask import masks
from engines.mask.contract import Cover
from engines.mesh.regions import LIPS

OUTER_LIPS = tuple(LIPS[:20])
"""The lips' outline, closed and in order."""

EDGE_SHARE = 0.06
"""Width of the soft edge over the mouth's: it lies inside of the lips, so that nothing outside of them changes."""

SHIFT = 4
"""The outline is drawn to so many bits of a pixel: whole ones would make it crawl."""


class MouthMask:
    """Not thread-safe: one thread at a time."""

    name = "mouth"

    def __init__(self, strength: float = 1.0) -> None:
        """``strength``: share of the target that is seen in the middle of the mouth, 0 to 1. Raises ``ValueError`` for others."""
        if not 0 <= strength <= 1:
            raise ValueError(f"the mouth's strength is {strength}; give a number from 0 (swapped) to 1 (the target's own)")
        self._strength = strength

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        """See ``engines.mask.contract.Mask``; the picture is not looked at."""
        return [partial(self._limit, points) for points in faces]

    def _limit(self, points: np.ndarray, patch: Patch) -> None:
        """Works on the box of the mouth alone: 0.1 ms for a face of 300 pixels."""
        ring = points[list(OUTER_LIPS), :2] - np.array([patch.left, patch.top], np.float32)
        if not self._strength or not np.isfinite(ring).all():
            return
        box = _box(ring, patch.alpha.shape)
        if box is None:
            return
        left, top, right, bottom = box
        alpha = patch.alpha[top:bottom, left:right]
        edge = max(1.0, EDGE_SHARE * float(np.ptp(ring[:, 0])))
        np.minimum(alpha, _left_over(ring - [left, top], alpha.shape, edge, self._strength), out=alpha)


def _box(ring: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of the mouth in the patch, with a pixel around it, cut to the patch."""
    low, high = np.floor(ring.min(0)) - 1, np.ceil(ring.max(0)) + 2
    left, top = np.clip(low, 0, [shape[1], shape[0]]).astype(int)
    right, bottom = np.clip(high, 0, [shape[1], shape[0]]).astype(int)
    return None if right <= left or bottom <= top else (int(left), int(top), int(right), int(bottom))


def _left_over(ring: np.ndarray, shape: tuple[int, ...], edge: float, strength: float) -> np.ndarray:
    """uint8 of ``shape``: 255 outside of the ``ring`` [20, 2], falling over ``edge`` pixels inside of it to 255 · (1 - strength)."""
    inside = np.zeros(shape, np.uint8)
    cv2.fillPoly(inside, [np.round(ring * (1 << SHIFT)).astype(np.int32)], 255, shift=SHIFT)
    depth = cv2.distanceTransform(inside, cv2.DIST_L2, 3)
    seen: np.ndarray = cv2.convertScaleAbs(np.minimum(depth, np.float32(edge)), alpha=-255 * strength / edge, beta=255)
    return seen


masks.register("mouth")(MouthMask)

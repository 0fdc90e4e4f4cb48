"""The way back: a crop that a network has painted becomes a patch of the picture it was cut from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from engines.align import inverse
from engines.face import Patch
from engines.jit import compiled

EDGE_SHARE = 0.12
"""Width of the soft border of a crop, as a share of its side: a network's crop fits the frame best in its middle."""


@lru_cache(maxsize=16)
def soft_box(side: int, edge: float = EDGE_SHARE) -> np.ndarray:
    """uint8 [side, side], read only: 255 in the middle, falling to 0 at the border along a raised cosine ``edge``·side wide."""
    from_border = np.minimum(np.arange(side), np.arange(side)[::-1]).astype(np.float64)
    ramp = 0.5 - 0.5 * np.cos(np.pi * np.clip(from_border / max(1.0, edge * side), 0, 1))
    box = np.round(255 * np.outer(ramp, ramp)).astype(np.uint8)
    box.setflags(write=False)
    return box


def paste(crop: np.ndarray, alpha: np.ndarray, matrix: np.ndarray, shape: tuple[int, ...]) -> Patch | None:
    """``crop`` (uint8 [S, S, 3] BGR) and ``alpha`` (uint8 [S, S]) laid back over a picture of ``shape`` (H, W, …).

    ``matrix``: float32 [2, 3], the similarity by which the crop was taken (picture → crop). Works on the crop's box alone. None
    where the crop lies outside of the picture.
    """
    plan = paste_plan(matrix, crop.shape[0], shape)
    if plan is None:
        return None
    if plan.factor > 1:
        size = (crop.shape[0] // plan.factor,) * 2
        crop, alpha = (cv2.resize(part, size, interpolation=cv2.INTER_AREA) for part in (crop, alpha))
    # One warp of four channels takes half the time of two. Outside of the crop all four are 0.
    size, flags = (plan.width, plan.height), cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    both = cv2.warpAffine(cv2.merge([crop, alpha]), plan.matrix, size, flags=flags, borderMode=cv2.BORDER_CONSTANT, borderValue=0)
    pixels, shown = np.empty((plan.height, plan.width, 3), np.uint8), np.empty((plan.height, plan.width), np.uint8)
    _part(both.reshape(plan.height, -1), pixels.reshape(plan.height, -1), shown)
    return Patch(pixels, shown, plan.left, plan.top)


@compiled("void(uint8[:, ::1], uint8[:, ::1], uint8[:, ::1])")
def _part(both: np.ndarray, pixels: np.ndarray, alpha: np.ndarray) -> None:
    """[h, 4·w] → [h, 3·w] and [h, w]: colours and alpha apart, so that what works on them takes many at once, as is done here."""
    for y in range(alpha.shape[0]):
        given, colours, levels = both[y], pixels[y], alpha[y]
        for x in range(levels.shape[0]):
            colours[3 * x], colours[3 * x + 1], colours[3 * x + 2] = given[4 * x], given[4 * x + 1], given[4 * x + 2]
            levels[x] = given[4 * x + 3]


@dataclass(frozen=True, slots=True)
class PastePlan:
    """Where in a picture a crop comes to lie."""

    left: int
    top: int
    width: int
    height: int
    factor: int
    """The crop is averaged by so much first: pixel i of the smaller one covers factor·i … factor·i + factor - 1."""
    matrix: np.ndarray
    """float32 [2, 3]: pixels of the box → pixels of the averaged crop."""


def paste_plan(matrix: np.ndarray, side: int, shape: tuple[int, ...]) -> PastePlan | None:
    """Of a crop [side, side] that was taken by ``matrix`` (picture → crop) from a picture of ``shape``; None where it lies outside.

    Less than two of the crop's pixels are left for one of the picture's: bilinear sampling reads four and would let a large crop of a
    small face flicker.
    """
    box = _box(matrix, side, shape)
    if box is None:
        return None
    factor = 1
    while math.hypot(matrix[0, 0], matrix[1, 0]) >= 2 * factor and side % (2 * factor) == 0:
        factor *= 2
    moved = matrix / np.float32(factor)
    moved[:, 2] -= (factor - 1) / (2 * factor)
    left, top, right, bottom = box
    moved[:, 2] += moved[:, :2] @ np.array([left, top], np.float32)
    return PastePlan(left, top, right - left, bottom - top, factor, moved)


def _box(matrix: np.ndarray, side: int, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of the crop's pixels in the picture, cut to it."""
    if not np.isfinite(matrix).all() or math.hypot(matrix[0, 0], matrix[1, 0]) < 1e-6:
        return None
    back = inverse(matrix)
    corners = np.array([[0, 0], [side, 0], [side, side], [0, side]], np.float32) - 0.5
    seen = corners @ back[:, :2].T + back[:, 2]
    height, width = shape[:2]
    left, top = np.maximum(np.floor(seen.min(0)).astype(int), 0)
    right, bottom = np.minimum(np.ceil(seen.max(0)).astype(int) + 1, [width, height])
    return None if right <= left or bottom <= top else (int(left), int(top), int(right), int(bottom))

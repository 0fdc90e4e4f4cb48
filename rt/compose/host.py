"""The compositor on the processor: patches over the frame, and regions hidden. Touches the region alone."""

from __future__ import annotations

import cv2
import numpy as np

from engines.jit import compiled
from engines.mask.shapes import Ramp, Shapes, drawn, limit, polygon
from engines.mesh.regions import OVAL
from engines.swap.contract import Patch

HIDE_MARGIN = 0.25
"""How far the hidden region reaches beyond the face's oval, in face widths."""

HIDE_EDGE = 0.06
"""Width of the soft edge around the hidden region, in face widths."""

HIDE_CELLS = 6
"""Cells across a hidden face: its features are a third of its width, so two or three cells each, and nobody can be told."""


def warm_up() -> None:
    """Compiles what the first patch, or the first face that is hidden, would otherwise wait for."""
    picture, patch = np.zeros((1, 1, 3), np.uint8), Patch(np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.uint8), 0, 0)
    blend(picture, patch)
    sharpen(picture, patch, 1)
    limit(patch, Shapes(polygon(np.eye(3, 2)), Ramp(0, 1)))


def blend(pixels: np.ndarray, patch: Patch, opacity: float = 1.0) -> None:
    """Lays ``patch`` over ``pixels`` (uint8 [H, W, 3] BGR), in place; ``opacity`` in [0, 1] scales its alpha."""
    _blend(_rows(_under(pixels, patch)), _rows(patch.pixels), patch.alpha, round(opacity * 256))


def _under(pixels: np.ndarray, patch: Patch) -> np.ndarray:
    """uint8 [h, w, 3], a view: what of ``pixels`` lies under ``patch``."""
    height, width = patch.alpha.shape
    return pixels[patch.top : patch.top + height, patch.left : patch.left + width]


def _rows(pixels: np.ndarray) -> np.ndarray:
    """uint8 [h, 3·w], a view of ``pixels`` [h, w, 3]: a processor takes 32 bytes at once where they stand in a row.

    Raises ValueError where pixels of a row do not stand side by side: in a mirrored view, say, which would have to be copied, and could not
    be written to then.
    """
    try:
        return pixels.reshape(len(pixels), -1, copy=False)
    except ValueError as error:
        steps = f"a view with steps of {pixels.strides} bytes was given"
        raise ValueError(f"{steps}; pixels of a row must stand side by side, as np.ascontiguousarray makes them") from error


@compiled("void(uint8[:, :], uint8[:, ::1], uint8[:, ::1], int64)")
def _blend(region: np.ndarray, pixels: np.ndarray, alpha: np.ndarray, opacity: int) -> None:
    """Integer arithmetic: (a · (255 · 256 - w) + b · w) / (255 · 256), rounded; w = alpha · opacity.

    With the whole opacity, 256 can be left out; then all of it has room in 16 bits, and x / 255 rounded is (y + y / 256) / 256 of
    y = x + 128 (Blinn 1994, "Three wrongs make a right").
    """
    whole, half, share = np.uint32(65280), np.uint32(32640), np.uint32(opacity)
    weights = np.empty(3 * alpha.shape[1], np.uint8)
    for y in range(alpha.shape[0]):
        below, above, levels = region[y], pixels[y], alpha[y]
        for x in range(levels.shape[0]):
            weights[3 * x], weights[3 * x + 1], weights[3 * x + 2] = levels[x], levels[x], levels[x]
        if opacity == 256:
            for i in range(below.shape[0]):
                weight = np.uint16(weights[i])
                both = np.uint16(below[i]) * np.uint16(255 - weight) + np.uint16(above[i]) * weight
                twice = np.uint16(both + np.uint16(128))
                below[i] = np.uint8(np.uint16(twice + np.uint16(twice >> np.uint16(8))) >> np.uint16(8))
        else:
            for i in range(below.shape[0]):
                part = np.uint32(weights[i]) * share
                below[i] = np.uint8(np.uint32(np.uint32(below[i]) * np.uint32(whole - part) + np.uint32(above[i]) * part + half) // whole)


SHARPEN_MOST = 1.5
"""Share of the detail that is added at the most: beyond it pores and compression are all that is seen."""

SHARPEN_SHARE, SHARPEN_MIN_PX, SHARPEN_MAX_PX = 0.006, 0.8, 10.0
"""What counts as detail: finer than this share of the patch's width, but than so many pixels at least and at most."""


def sharpen(pixels: np.ndarray, patch: Patch, amount: float) -> None:
    """Sharpens ``pixels`` (uint8 [H, W, 3] BGR), in place, where ``patch`` was laid over them, as far as it covers. ``amount``: 0 to 1.

    An unsharp mask of what is seen, so that the patch's edge meets no picture that is softer than its own.
    """
    region = _under(pixels, patch)
    soft = cv2.GaussianBlur(region, (0, 0), sharpen_sigma(patch.alpha.shape[1]))
    _sharpen(_rows(region), _rows(soft), patch.alpha, round(amount * SHARPEN_MOST * 256))


def sharpen_sigma(width: int) -> float:
    """Pixels: of the blur that takes the detail from a patch of so many."""
    return min(SHARPEN_MAX_PX, max(SHARPEN_MIN_PX, SHARPEN_SHARE * width))


@compiled("void(uint8[:, :], uint8[:, ::1], uint8[:, ::1], int64)")
def _sharpen(region: np.ndarray, soft: np.ndarray, alpha: np.ndarray, amount: int) -> None:
    """a + (a - b) · w / (255 · 256), rounded and cut to a byte; w = alpha · amount."""
    half, most = np.int32(32640), np.int32(512)  # more than (a - b) · w / (255 · 256): with it nothing is divided that is below 0
    weights = np.empty(3 * alpha.shape[1], np.uint8)
    for y in range(alpha.shape[0]):
        seen, blurred, levels = region[y], soft[y], alpha[y]
        for x in range(levels.shape[0]):
            weights[3 * x], weights[3 * x + 1], weights[3 * x + 2] = levels[x], levels[x], levels[x]
        for i in range(seen.shape[0]):
            weight = np.int32(np.int32(weights[i]) * np.int32(amount))
            detail = np.int32((np.int32(seen[i]) - np.int32(blurred[i])) * weight)
            added = np.int32(np.uint32(detail + half + most * np.int32(65280)) // np.uint32(65280)) - most
            seen[i] = np.uint8(min(np.int32(255), max(np.int32(0), np.int32(np.int32(seen[i]) + added))))


def blur_face(pixels: np.ndarray, points: np.ndarray) -> None:
    """Makes the face at ``points`` (float32 [468, 2+] pixels) unrecognisable in ``pixels`` (uint8 [H, W, 3] BGR), in place.

    Not a blur that can be sharpened again: the region is reduced to a handful of cells, and only these are shown, smoothed.
    """
    if not np.isfinite(points).all():
        return
    box = hidden_box(points, pixels.shape)
    if box is None:
        return
    left, top, right, bottom = box
    region = pixels[top:bottom, left:right]
    cells = hidden_cells(points, right - left, bottom - top)
    few = cv2.resize(region, cells, interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(few.astype(np.float32), (right - left, bottom - top), interpolation=cv2.INTER_LINEAR)
    oval = oval_of(points)
    shown = drawn(oval.seen_from(left, top), oval.ramp, (bottom - top, right - left))
    _blend(_rows(region), _rows(np.rint(coarse).astype(np.uint8)), shown, 256)


def hidden_cells(points: np.ndarray, width: int, height: int) -> tuple[int, int]:
    """Columns and rows to which a hidden box of so many pixels is reduced."""
    cell = max(1.0, float(np.ptp(points[:, 0])) / HIDE_CELLS)
    return max(1, round(width / cell)), max(1, round(height / cell))


def hidden_box(points: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of what is touched to hide a face in a picture of ``shape`` (H, W, …); None where it lies outside."""
    height, width = shape[:2]
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    margin = HIDE_MARGIN * float(np.max(high - low))
    left, top = np.clip(low - margin, 0, [width, height]).astype(int)
    right, bottom = np.clip(np.ceil(high + margin), 0, [width, height]).astype(int)
    return None if right <= left or bottom <= top else (int(left), int(top), int(right), int(bottom))


def oval_of(points: np.ndarray) -> Shapes:
    """255 over the face at ``points`` (float32 [468, 2+] pixels) and its margin, with a soft edge outside of it."""
    oval = points[OVAL, :2]
    centre = oval.mean(0)
    edge = max(1.0, float(np.ptp(points[:, 0])) * HIDE_EDGE)
    return Shapes(polygon(centre + (oval - centre) * (1 + HIDE_MARGIN)), Ramp(255, -255 / edge))

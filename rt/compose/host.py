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
    match_seam(picture, patch)
    _add_membrane(_rows(patch.pixels), np.zeros((1, 1, 3), np.uint8))
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

    Raises ValueError where pixels of a row do not stand side by side.
    """
    return pixels.reshape(len(pixels), -1, copy=False)


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


SEAM_CELLS = 48
"""The colour step along the seam is known and spread on a grid of at most so many cells a side: it is smooth by nature."""

SEAM_ALPHA = (8, 200)
"""Alpha of the ring in which patch and frame are compared: where the eye compares them."""


SEAM_SPREAD = 24.0
"""Levels by which the step may differ from its median along the seam: more is hair, a hand or the background, not light."""


def match_seam(pixels: np.ndarray, patch: Patch, strength: float = 1.0) -> None:
    """Moves ``patch.pixels`` (in place, by 127 levels at most) so that along its seam they have the colours of ``pixels``
    (uint8 [H, W, 3] BGR); with less ``strength``, 0 to 1, only so far.

    The step between the two is taken in the ring where the patch fades and continued smoothly over its inside: the membrane
    that pasting gradients amounts to (Farbman et al. 2009, "Coordinates for instant image cloning"), filled by pull and push
    (Gortler et al. 1996, "The lumigraph", 6.2) on a coarse grid.
    """
    cells = _cells(_under(pixels, patch), patch)
    below, above, alpha = cells[..., :3], cells[..., 3:6], cells[..., 6]
    ring = ((alpha >= SEAM_ALPHA[0]) & (alpha <= SEAM_ALPHA[1])).astype(np.float32)
    if not ring.any():
        return
    step = _usual(below.astype(np.float32) - above, ring > 0) * ring[..., None]
    membrane = np.clip(np.round(_filled(step, ring) * strength) + 128, 0, 255).astype(np.uint8)
    _add_membrane(_rows(patch.pixels), membrane)


@compiled("void(uint8[:, ::1], uint8[:, :, ::1])")
def _add_membrane(pixels: np.ndarray, membrane: np.ndarray) -> None:
    """Adds ``membrane`` (uint8 [rows, columns, 3], 128 + levels, each in the middle of its cell) to ``pixels`` [h, 3·w], in place. Between
    the middles it goes over in whole 256ths of a cell, so that a device does the very same. Across first, which is few rows."""
    rows, columns = membrane.shape[:2]
    height, width = pixels.shape[0], pixels.shape[1] // 3
    wide = np.empty((rows, 3 * width), np.uint16)
    for x in range(width):
        place = min(256 * (columns - 1), max(0, (2 * x + 1) * columns * 128 // width - 128))
        column, share = place >> 8, np.uint16(place & 255)
        after = min(column + 1, columns - 1)
        for row in range(rows):
            for c in range(3):
                wide[row, 3 * x + c] = (
                    np.uint16(membrane[row, column, c]) * np.uint16(256 - share) + np.uint16(membrane[row, after, c]) * share
                )
    for y in range(height):
        place = min(256 * (rows - 1), max(0, (2 * y + 1) * rows * 128 // height - 128))
        part = np.uint32(place & 255)
        upper, lower, line = wide[place >> 8], wide[min((place >> 8) + 1, rows - 1)], pixels[y]
        for i in range(3 * width):
            added = (np.uint32(upper[i]) * np.uint32(256 - part) + np.uint32(lower[i]) * part + np.uint32(32768)) >> np.uint32(16)
            line[i] = np.uint8(min(np.int32(255), max(np.int32(0), np.int32(np.int32(line[i]) + np.int32(added) - np.int32(128)))))


def _usual(step: np.ndarray, ring: np.ndarray) -> np.ndarray:
    """``step`` without what is no step between two skins: a strand of hair or a finger on the seam would darken half of the face."""
    middle = np.median(step[ring], axis=0)
    usual: np.ndarray = np.clip(step, middle - SEAM_SPREAD, middle + SEAM_SPREAD)
    return usual


def seam_cells(width: int, height: int) -> tuple[int, int, int]:
    """Side of a cell in pixels, columns and rows of cells for a patch of so many pixels; a rest at the far borders is left out."""
    side = -(-max(height, width) // SEAM_CELLS)
    return side, max(1, width // side), max(1, height // side)


def _cells(region: np.ndarray, patch: Patch) -> np.ndarray:
    """uint8 [rows, columns, 7]: means of ``region`` and of the patch's colours where the patch is seen, and of its alpha everywhere.

    What is not seen of a patch may be of any colour.
    """
    side, columns, rows = seam_cells(patch.alpha.shape[1], patch.alpha.shape[0])
    cells = np.empty((rows, columns, 7), np.uint8)
    _average(_rows(region), _rows(patch.pixels), patch.alpha, side, cells)
    return cells


@compiled("void(uint8[:, :], uint8[:, ::1], uint8[:, ::1], int64, uint8[:, :, ::1])")
def _average(region: np.ndarray, pixels: np.ndarray, alpha: np.ndarray, side: int, cells: np.ndarray) -> None:
    """Columns of pixels are summed first, many at once, and then those of a cell."""
    rows, columns = cells.shape[:2]
    across, down = min(side, alpha.shape[1]), min(side, alpha.shape[0])
    width = columns * across
    seen = np.empty(3 * width, np.uint8)
    below, above = np.empty(3 * width, np.uint32), np.empty(3 * width, np.uint32)
    covers, counts = np.empty(width, np.uint32), np.empty(width, np.uint32)
    sums = np.empty(8, np.int64)  # as in a cell, and how many are seen
    for row in range(rows):
        below[:], above[:], covers[:], counts[:] = 0, 0, 0, 0
        for y in range(row * side, row * side + down):
            frame, patch, levels = region[y], pixels[y], alpha[y]
            for x in range(width):
                level = levels[x]
                is_seen = np.uint8(255) if level else np.uint8(0)
                seen[3 * x], seen[3 * x + 1], seen[3 * x + 2] = is_seen, is_seen, is_seen
                covers[x] += level
                counts[x] += is_seen & np.uint8(1)
            for i in range(3 * width):
                below[i] += frame[i] & seen[i]
                above[i] += patch[i] & seen[i]
        for column in range(columns):
            sums[:] = 0
            for x in range(column * across, (column + 1) * across):
                for c in range(3):
                    sums[c] += below[3 * x + c]
                    sums[3 + c] += above[3 * x + c]
                sums[6] += covers[x]
                sums[7] += counts[x]
            for c in range(7):
                count = across * down if c == 6 else max(1, sums[7])
                cells[row, column, c] = (2 * sums[c] + count) // (2 * count)


def _filled(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """float32 [h, w, 3]: ``values`` (times ``weight`` [h, w] in [0, 1]) where the weight is 1, a smooth continuation elsewhere."""
    if max(weight.shape) == 1:
        return values / max(float(weight[0, 0]), 1e-6)
    half = ((weight.shape[1] + 1) // 2, (weight.shape[0] + 1) // 2)
    few, some = (cv2.resize(part, half, interpolation=cv2.INTER_AREA) for part in (values, weight))
    known = np.minimum(1, 4 * some)  # one cell of four is enough to know the coarse one
    coarse = _filled(few * (known / np.maximum(some, 1e-6))[..., None], known)
    rest = cv2.resize(coarse, weight.shape[::-1], interpolation=cv2.INTER_LINEAR)
    filled: np.ndarray = values + rest * (1 - weight)[..., None]
    return filled


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

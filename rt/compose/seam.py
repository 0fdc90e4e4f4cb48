"""How a patch takes the colours of what it is laid over, on the processor: along its seam, by gradients, in bands, or as a whole.

All of it is reckoned on cells, at most 48 a side: colours that differ from one cell to the next are detail, which stays the patch's own.
What comes out is the same for all ways, levels to be added to the patch, so that its alpha says where; ``kernels/seam.cu`` does the same.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from engines.face import Patch
from engines.jit import compiled
from rt.options import Blending

SEAM_CELLS = 48
"""The colour step along the seam is known and spread on a grid of at most so many cells a side: it is smooth by nature."""

SEAM_ALPHA = (8, 200)
"""Alpha of the ring in which patch and frame are compared: where the eye compares them."""

SEAM_SPREAD = 24.0
"""Levels by which the step may differ from its median along the seam: more is hair, a hand or the background, not light."""

TRANSFER_GAIN = 2.0
"""Contrast is drawn out, or pressed together, by so much at the most."""

BINOMIAL = np.array([1, 4, 6, 4, 1], np.float32) / 16
"""The window under which a level is halved: ``cv2.pyrDown``'s."""

BAND_CELLS = 12
"""A level of cells that has fewer than so many a side is not halved again."""


def match_colours(pixels: np.ndarray, patch: Patch, blending: Blending, strength: float = 1.0, transfer: float = 0.0) -> None:
    """Moves ``patch.pixels``, in place, to the colours of ``pixels`` (uint8 [H, W, 3] BGR) below it, as ``blending`` says.

    ``strength`` and ``transfer``: ``colour_match`` and ``colour_transfer`` of ``rt.options.Look``.
    """
    if blending is Blending.SOFT and not transfer:
        return
    height, width = patch.alpha.shape
    cells = _cells(pixels[patch.top : patch.top + height, patch.left : patch.left + width], patch)
    if transfer:
        table = transfer_table(cells, transfer)
        cv2.LUT(patch.pixels, table[None], dst=patch.pixels)
        for channel in range(3):
            cells[..., 3 + channel] = table[cells[..., 3 + channel], channel]
    if blending is not Blending.SOFT:
        step = strength * STEPS[blending](cells)
        _add_membrane(patch.pixels.reshape(height, -1), np.clip(np.round(step) + 128, 0, 255).astype(np.uint8))


def warm_up() -> None:
    """Compiles what the first patch would otherwise wait for."""
    match_colours(np.zeros((1, 1, 3), np.uint8), Patch(np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.uint8), 0, 0), Blending.SEAMLESS)


def seam_cells(width: int, height: int) -> tuple[int, int, int]:
    """Side of a cell in pixels, columns and rows of cells for a patch of so many pixels; a rest at the far borders is left out."""
    side = -(-max(height, width) // SEAM_CELLS)
    return side, max(1, width // side), max(1, height // side)


# --- as a whole ---


def transfer_table(cells: np.ndarray, transfer: float) -> np.ndarray:
    """uint8 [256, 3]: levels of the patch → levels by which mean and contrast of each channel are the frame's (Reinhard et al. 2001, "Color
    transfer between images"), from cell to cell and weighted by alpha; with less ``transfer``, 0 to 1, only so far.

    Sums are whole numbers and the rest float32, rounded step by step: a device does the very same.
    """
    below, above, alpha = (part.astype(np.int64) for part in (cells[..., :3], cells[..., 3:6], cells[..., 6:]))
    total = int(alpha.sum())
    if not total:
        return np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1)
    share, least, most = np.float32(transfer), np.float32(1 / TRANSFER_GAIN), np.float32(TRANSFER_GAIN)
    (frame, frame_spread), (patch, patch_spread) = (_sums(part, alpha, total) for part in (below, above))
    flat = patch_spread < total * total  # its deviation is below one level: there is no contrast to be drawn out
    ratio = np.sqrt(frame_spread.astype(np.float32) / np.maximum(1, patch_spread).astype(np.float32))
    gain = 1 + share * (np.where(flat, np.float32(1), np.clip(ratio, least, most)) - 1)
    mean, wanted = (part.astype(np.float32) / np.float32(total) for part in (patch, frame))
    shift = (mean + share * (wanted - mean)) - gain * mean
    table: np.ndarray = np.clip(np.arange(256, dtype=np.float32)[:, None] * gain + shift + np.float32(0.5), 0, 255).astype(np.uint8)
    return table


def _sums(values: np.ndarray, alpha: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [3] each: of the channels, weighted; and the variance, times the square of the weights' ``total``."""
    plain = (alpha * values).sum((0, 1))
    return plain, total * (alpha * values * values).sum((0, 1)) - plain * plain


# --- along the seam, by gradients, in bands: float32 [rows, columns, 3], levels to be added to the patch ---


def _membrane(cells: np.ndarray) -> np.ndarray:
    """The step between the two is taken in the ring where the patch fades and continued smoothly over its inside: the membrane that pasting
    gradients amounts to (Farbman et al. 2009, "Coordinates for instant image cloning"), filled by pull and push (Gortler et al. 1996,
    "The lumigraph", 6.2)."""
    step, ring = _step(cells), _ring(cells)
    return _filled(step * ring[..., None], ring) if ring.any() else np.zeros_like(step)


def _gradients(cells: np.ndarray) -> np.ndarray:
    """Pérez et al. 2003, "Poisson image editing". With f the frame, p the patch, a its alpha and d = f - p, the picture u whose gradients
    are those of f and p mixed by a is f - a d + s, where the Laplacian of s is div(d grad a) and s is 0 at the edge. To p is added
    u - p = s + (1 - a) d. Solved by sine transforms (DST-I)."""
    if not _ring(cells).any():
        return np.zeros((*cells.shape[:2], 3), np.float32)
    alpha, step = cells[..., 6].astype(np.float32) / 255, _step(cells)
    around, rise = np.pad(alpha, 1), np.pad(step, ((1, 1), (1, 1), (0, 0)), mode="edge")
    right = np.zeros_like(step)
    rows, columns = alpha.shape
    for y, x in ((1, 2), (1, 0), (2, 1), (0, 1)):
        there = np.s_[y : y + rows, x : x + columns]
        right += (around[there] - alpha)[..., None] * (step + rise[there]) / 2
    down, across = _sines(rows), _sines(columns)
    spectrum = np.einsum("jy,yxc,xi->jic", down, right, across, optimize=True)
    spectrum *= (4 / ((rows + 1) * (columns + 1)) / (_falls(rows)[:, None] + _falls(columns)))[..., None]
    smooth = np.einsum("yj,jic,ix->yxc", down, spectrum, across, optimize=True)
    both: np.ndarray = (smooth + (1 - alpha)[..., None] * step).astype(np.float32)
    return both


def _sines(count: int) -> np.ndarray:
    """float64 [count, count], symmetric: its own inverse but for the factor (count + 1) / 2."""
    numbers = np.arange(1, count + 1)
    sines: np.ndarray = np.sin(np.pi * numbers[:, None] * numbers / (count + 1))
    return sines


def _falls(count: int) -> np.ndarray:
    """float64 [count]: what the second difference multiplies each sine by."""
    falls: np.ndarray = 2 * np.cos(np.pi * np.arange(1, count + 1) / (count + 1)) - 2
    return falls


def _bands(cells: np.ndarray) -> np.ndarray:
    """Burt and Adelson 1983, "A multiresolution spline with application to image mosaics": coarse differences fade over a wide seam, fine
    ones over a narrow one. The pyramids of patch and frame are linear, so that of their difference is enough: the frame gets the sum of
    its bands, each times alpha as smooth as the band is coarse. Of a smoothed alpha the upper half is drawn out over its range, as masks
    have it: it then ends where alpha ends, and what is coarse fades inside of the face. What is finer than a cell is laid by alpha itself.
    """
    alpha, ring = cells[..., 6].astype(np.float32) / 255, _ring(cells)
    if not ring.any():
        return np.zeros((*ring.shape, 3), np.float32)
    levels: list[tuple[np.ndarray, np.ndarray]] = [(-_step(cells), alpha)]
    while min(levels[-1][1].shape) >= BAND_CELLS:
        difference, cover = levels[-1]
        smooth: np.ndarray = cv2.sepFilter2D(
            cover, -1, BINOMIAL, BINOMIAL, borderType=cv2.BORDER_CONSTANT
        )  # nothing is seen beyond the border
        half: np.ndarray = cv2.pyrDown(difference)
        levels.append((half, smooth[::2, ::2]))
    covers = [alpha, *(np.clip(2 * smooth - 1, 0, 1) for _, smooth in levels[1:])]
    total = levels[-1][0] * covers[-1][..., None]
    for k in range(len(levels) - 2, -1, -1):
        shape = covers[k].shape
        band = levels[k][0] - _expanded(levels[k + 1][0], shape)
        total = _expanded(total, shape) + band * covers[k][..., None]
    added: np.ndarray = np.divide(total, alpha[..., None], out=levels[0][0].copy(), where=alpha[..., None] > 0) - levels[0][0]
    return added


def _expanded(half: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """float32 [*shape, 3]: the way up, where what lies between two is their mean."""
    near, far = [], []
    for size, count in zip(shape, half.shape[:2], strict=True):
        places = np.arange(size)
        near.append(places // 2)
        far.append(np.minimum(places // 2 + places % 2, count - 1))
    (top, left), (bottom, right) = near, far
    upper, lower = half[top], half[bottom]
    mean: np.ndarray = (upper[:, left] + upper[:, right] + lower[:, left] + lower[:, right]) / 4
    return mean


STEPS: dict[Blending, Callable[[np.ndarray], np.ndarray]] = {
    Blending.SEAMLESS: _membrane,
    Blending.POISSON: _gradients,
    Blending.MULTIBAND: _bands,
}


def _ring(cells: np.ndarray) -> np.ndarray:
    """float32 [rows, columns]: 1 where patch and frame are compared."""
    return ((cells[..., 6] >= SEAM_ALPHA[0]) & (cells[..., 6] <= SEAM_ALPHA[1])).astype(np.float32)


def _step(cells: np.ndarray) -> np.ndarray:
    """float32 [rows, columns, 3], from patch to frame, without what is no step between two skins: a strand of hair or a finger on the seam
    would darken half of the face. Where the patch is not seen it is the usual one."""
    step, ring = cells[..., :3].astype(np.float32) - cells[..., 3:6], _ring(cells)
    if not ring.any():
        return step
    middle = np.median(step[ring > 0], axis=0)
    usual: np.ndarray = np.where(cells[..., 6:] > 0, np.clip(step, middle - SEAM_SPREAD, middle + SEAM_SPREAD), middle)
    return usual


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


# --- pixels → cells → pixels ---


def _cells(region: np.ndarray, patch: Patch) -> np.ndarray:
    """uint8 [rows, columns, 7]: means of ``region`` and of the patch's colours where the patch is seen, and of its alpha everywhere.

    What is not seen of a patch may be of any colour.
    """
    side, columns, rows = seam_cells(patch.alpha.shape[1], patch.alpha.shape[0])
    cells = np.empty((rows, columns, 7), np.uint8)
    below, above = (part.reshape(len(part), -1, copy=False) for part in (region, patch.pixels))
    _average(below, above, patch.alpha, side, cells)
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

"""Loops over pixels, compiled by numba without the interpreter's lock. Compiled code is cached beside this file."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

SHOULDER = 70.0
"""Grey levels below white from which highlights are bent."""

_jit = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "arcp", "nsz"})


@_jit
def sample(image: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """``out`` [N, 3] = bilinear ``image`` [H, W, 3] (H, W ≥ 2) at pixel coordinates ``x``, ``y`` [N], clamped to the border."""
    height, width = image.shape[:2]
    for i in range(x.shape[0]):
        px = min(max(x[i], 0.0), width - 1.001)
        py = min(max(y[i], 0.0), height - 1.001)
        left, top = int(px), int(py)
        fx, fy = px - left, py - top
        for c in range(3):
            upper = image[top, left, c] * (1 - fx) + image[top, left + 1, c] * fx
            lower = image[top + 1, left, c] * (1 - fx) + image[top + 1, left + 1, c] * fx
            out[i, c] = upper * (1 - fy) + lower * fy


@_jit
def spread(place: np.ndarray, triangles: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Paints values [V, K] of vertices at ``place`` [V, 2] (pixels of ``out``) over the triangles into ``out`` float32 [H, W, K]."""
    height, width, count = out.shape
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = place[a, 0], place[a, 1], place[b, 0], place[b, 1], place[c, 0], place[c, 1]
        twice = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        if abs(twice) < 1e-6:
            continue
        for y in range(max(0, int(min(ay, by, cy))), min(height - 1, int(max(ay, by, cy)) + 1) + 1):
            for x in range(max(0, int(min(ax, bx, cx))), min(width - 1, int(max(ax, bx, cx)) + 1) + 1):
                u = ((by - cy) * (x - cx) + (cx - bx) * (y - cy)) / twice
                v = ((cy - ay) * (x - cx) + (ax - cx) * (y - cy)) / twice
                w = 1 - u - v
                if u >= -1e-3 and v >= -1e-3 and w >= -1e-3:
                    for k in range(count):
                        out[y, x, k] = u * values[a, k] + v * values[b, k] + w * values[c, k]


# --- The face itself: which triangle is seen at each pixel, then its colours, a block of a row at a time

_exact = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
"""Each step is rounded to float32 as it is written: a GPU then finds the same bits. Bare numbers would be float64."""

_f = np.float32

S, T, COVER, GAIN, BIAS, KINDS = 0, 1, 2, 3, 6, 9
"""Columns of what varies over a triangle: place in the texture in texels, cover in [0, 1], factors of B, G, R, and what is added after
them."""

LANES = 16
"""A processor reckons so many pixels of a row at once, or half as many; a run of pixels is filled up to whole ones, and what is too much
is overwritten by the next run."""

BLOCK = 256
"""Pixels of a row that are shaded together: what varies over them stays in the nearest cache."""

STRIDE = BLOCK + LANES


@_exact
def draw(
    pixels: np.ndarray,
    alpha: np.ndarray,
    place: np.ndarray,
    triangles: np.ndarray,
    order: np.ndarray,
    values: np.ndarray,
    texture: np.ndarray,
) -> None:
    """Draws the textured mesh, far triangles first, into ``pixels`` uint8 [h, w, 3] and ``alpha`` uint8 [h, w] (to be zero before).

    ``place`` float32 [V, 2+] pixels of the patch, ``values`` float32 [V, KINDS], ``texture`` uint8 [T, T, 4] BGRA. Pixels are colours
    where alpha is not 0.
    """
    height, width = alpha.shape
    nearest = np.zeros((height, width), np.int16)
    steps = np.empty((triangles.shape[0], KINDS), np.float32)
    _raster(nearest, steps, place, triangles, order, values)
    rows = pixels.reshape(height, 3 * width)
    texels, side = texture.view(np.uint32).reshape(-1), texture.shape[0]  # one read for four bytes
    across = np.zeros(KINDS * STRIDE, np.float32)
    index, corners = np.empty(BLOCK, np.int32), np.empty(4 * BLOCK, np.uint32)
    for y in range(height):
        for left in range(0, width, BLOCK):
            right = min(left + BLOCK, width)
            if _interpolate(across, nearest[y, left:right], steps, place, triangles, values, left, y):
                _find(index[: right - left], across, side)
                _fetch(corners, index[: right - left], texels, side)
                _shade(rows[y, 3 * left : 3 * right], alpha[y, left:right], across, corners, side)


@_exact
def _raster(
    nearest: np.ndarray, steps: np.ndarray, place: np.ndarray, triangles: np.ndarray, order: np.ndarray, values: np.ndarray
) -> None:
    """Into ``nearest`` int16 [h, w] (0 before) the number from 1 on of the triangle that is drawn last at each pixel; into ``steps``
    float32 [T, KINDS] what its values grow by with each pixel to the right.

    Spans are half open and an edge is walked from its upper end, so that triangles that share one share no pixel and miss none; triangles
    that face away are left out.
    """
    height, width = nearest.shape
    left, right = np.empty(height, np.float32), np.empty(height, np.float32)
    for position in range(order.shape[0]):
        t = order[position]
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = place[a, 0], place[a, 1], place[b, 0], place[b, 1], place[c, 0], place[c, 1]
        twice = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        if twice >= _f(-1e-3) or values[a, COVER] + values[b, COVER] + values[c, COVER] <= 0:
            continue
        scale = _f(1) / twice
        du, dv = (by - cy) * scale, (cy - ay) * scale
        dw = -du - dv
        for k in range(KINDS):
            steps[t, k] = du * values[a, k] + dv * values[b, k] + dw * values[c, k]
        top, bottom = max(0, int(np.ceil(min(ay, by, cy)))), min(height, int(np.ceil(max(ay, by, cy))))
        left[top:bottom], right[top:bottom] = _f(1e9), _f(-1e9)
        _walk(left, right, ax, ay, bx, by)
        _walk(left, right, bx, by, cx, cy)
        _walk(left, right, cx, cy, ax, ay)
        for y in range(top, bottom):
            for x in range(max(0, int(np.ceil(left[y]))), min(width, int(np.ceil(right[y])))):
                nearest[y, x] = t + 1


@_exact
def _walk(left: np.ndarray, right: np.ndarray, x1: Any, y1: Any, x2: Any, y2: Any) -> None:
    """Widens the spans ``left`` and ``right`` float32 [h] of the rows that the edge crosses to where it does."""
    if y1 > y2:
        x1, y1, x2, y2 = x2, y2, x1, y1
    for y in range(max(0, int(np.ceil(y1))), min(left.shape[0], int(np.ceil(y2)))):
        crossing = x1 + (_f(y) - y1) * (x2 - x1) / (y2 - y1)
        left[y], right[y] = min(left[y], crossing), max(right[y], crossing)


@_exact
def _interpolate(
    across: np.ndarray,
    nearest: np.ndarray,
    steps: np.ndarray,
    place: np.ndarray,
    triangles: np.ndarray,
    values: np.ndarray,
    left: int,
    y: int,
) -> bool:
    """Into ``across`` float32 [KINDS · STRIDE] the values at each pixel of a block, whose triangles ``nearest`` int16 [n] says and which
    begins in column ``left`` of row ``y``. False where there is no triangle."""
    count = nearest.shape[0]
    is_seen = False
    start = 0
    while start < count:
        number, end = nearest[start], start + 1
        while end < count and nearest[end] == number:
            end += 1
        if number:
            is_seen = True
            t = number - 1
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            ax, ay, bx, by, cx, cy = place[a, 0], place[a, 1], place[b, 0], place[b, 1], place[c, 0], place[c, 1]
            scale = _f(1) / ((by - cy) * (ax - cx) + (cx - bx) * (ay - cy))
            u, v = (cx - bx) * scale * (_f(y) - cy), (ax - cx) * scale * (_f(y) - cy)
            w = _f(1) - u - v
            run, first, filled = across[start:], _f(left + start), (end - start + LANES - 1) & -LANES
            for k in range(KINDS):
                value = u * values[a, k] + v * values[b, k] + w * values[c, k]
                if k >= BIAS:
                    value += _f(0.5)  # levels are rounded down
                step = steps[t, k]
                for i in range(filled):
                    run[k * STRIDE + i] = value + step * (first + _f(np.int32(i)) - cx)
        else:
            across[COVER * STRIDE + start : COVER * STRIDE + end] = 0
        start = end
    return is_seen


@_exact
def _find(index: np.ndarray, across: np.ndarray, side: int) -> None:
    """Into ``index`` int32 [n] which texel is at the upper left of each pixel of a block. Whole numbers below 2^24 are exact as float32."""
    last = _f(side) - _f(1.001)
    for x in range(index.shape[0]):
        s, t = min(max(across[S * STRIDE + x], _f(0)), last), min(max(across[T * STRIDE + x], _f(0)), last)
        index[x] = np.int32(_f(np.int32(t)) * _f(side) + _f(np.int32(s)))


@_exact
def _fetch(corners: np.ndarray, index: np.ndarray, texels: np.ndarray, side: int) -> None:
    """Into ``corners`` uint32 [4 · BLOCK] the four texels around each pixel. A loop of its own: nothing else of a block depends on
    addresses."""
    for x in range(index.shape[0]):
        upper, lower = np.uint32(index[x]), np.uint32(index[x] + side)
        corners[x], corners[BLOCK + x] = texels[upper], texels[np.uint32(upper + 1)]
        corners[2 * BLOCK + x], corners[3 * BLOCK + x] = texels[lower], texels[np.uint32(lower + 1)]


@_exact
def _shade(pixels: np.ndarray, alpha: np.ndarray, across: np.ndarray, corners: np.ndarray, side: int) -> None:
    """``pixels`` uint8 [3 · n] and ``alpha`` uint8 [n] of a block. Without a branch, so that the compiler takes many pixels at once."""
    last = _f(side) - _f(1.001)
    for x in range(alpha.shape[0]):
        s, t = min(max(across[S * STRIDE + x], _f(0)), last), min(max(across[T * STRIDE + x], _f(0)), last)
        fs, ft = s - _f(np.int32(s)), t - _f(np.int32(t))
        w11 = fs * ft
        w10, w01, w00 = fs - w11, ft - w11, _f(1) - fs - ft + w11
        t00, t10, t01, t11 = corners[x], corners[BLOCK + x], corners[2 * BLOCK + x], corners[3 * BLOCK + x]
        q = min(max(across[COVER * STRIDE + x], _f(0)), _f(1))
        q = q * q * (_f(3) - _f(2) * q)
        alpha[x] = np.uint8(q * _between(t00, t10, t01, t11, 3, w00, w10, w01, w11) + _f(0.5))
        blue, green, red = across[GAIN * STRIDE + x], across[(GAIN + 1) * STRIDE + x], across[(GAIN + 2) * STRIDE + x]
        b0, b1, b2 = across[BIAS * STRIDE + x], across[(BIAS + 1) * STRIDE + x], across[(BIAS + 2) * STRIDE + x]
        pixels[3 * x] = _level(_between(t00, t10, t01, t11, 0, w00, w10, w01, w11) * blue + b0, green)
        pixels[3 * x + 1] = _level(_between(t00, t10, t01, t11, 1, w00, w10, w01, w11) * green + b1, green)
        pixels[3 * x + 2] = _level(_between(t00, t10, t01, t11, 2, w00, w10, w01, w11) * red + b2, green)


@_exact
def _between(t00: Any, t10: Any, t01: Any, t11: Any, c: int, w00: Any, w10: Any, w01: Any, w11: Any) -> Any:
    """Channel ``c`` between four texels."""
    upper = _channel(t00, c) * w00 + _channel(t10, c) * w10
    return upper + _channel(t01, c) * w01 + _channel(t11, c) * w11


@_exact
def _channel(texel: Any, c: int) -> Any:
    return _f(np.int32((texel >> np.uint32(8 * c)) & np.uint32(255)))


@_exact
def _level(value: Any, gain: Any) -> np.uint8:
    """A grey level. Where the texture is brightened (``gain`` above 1), what would burn out is bent below white: a dark photo's shine
    and teeth are near white already, and are not to glow on a bright face."""
    white = _f(255)
    room = _f(SHOULDER) * min(_f(1), max(_f(0), _f(2) * (gain - _f(1))))
    over = value - (white - room)
    if over > 0 and room > 0:
        value = white - room + over * room / (room + over)
    return np.uint8(min(white, max(_f(0), value)))

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


_exact = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
"""Each step is rounded to float32 as it is written: a GPU then finds the same bits. Bare numbers would be float64."""

_f = np.float32


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


@_exact
def _between(texture: np.ndarray, j: Any, i: Any, c: int, w00: Any, w10: Any, w01: Any, w11: Any) -> Any:
    """Channel ``c`` between four texels, of which the first is in row ``j`` and column ``i``."""
    upper = _f(texture[j, i, c]) * w00 + _f(texture[j, i + 1, c]) * w10
    return upper + _f(texture[j + 1, i, c]) * w01 + _f(texture[j + 1, i + 1, c]) * w11


@_exact
def draw(
    pixels: np.ndarray,
    alpha: np.ndarray,
    place: np.ndarray,
    uv: np.ndarray,
    triangles: np.ndarray,
    order: np.ndarray,
    cover: np.ndarray,
    gain: np.ndarray,
    bias: np.ndarray,
    texture: np.ndarray,
) -> None:
    """Draws the textured mesh, far triangles first, into ``pixels`` uint8 [h, w, 3] and ``alpha`` uint8 [h, w] (to be zero before).

    ``place`` float32 [V, 2+] pixels of the patch, ``uv`` float32 [V, 2] texels, ``cover`` float32 [V] in [0, 1], ``gain`` float32
    [V, 3] BGR factors and ``bias`` float32 [V, 3] added after them, ``texture`` uint8 [T, T, 4] BGRA. Spans are half open and an edge is
    walked from its upper end, so that triangles that share one share no pixel and miss none; triangles that face away are left out.
    """
    height, width = alpha.shape
    last_s, last_t = _f(texture.shape[1]) - _f(1.001), _f(texture.shape[0]) - _f(1.001)
    one, two, three, half = _f(1), _f(2), _f(3), _f(0.5)
    for position in range(order.shape[0]):
        t = order[position]
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = place[a, 0], place[a, 1], place[b, 0], place[b, 1], place[c, 0], place[c, 1]
        twice = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        if twice >= _f(-1e-3) or cover[a] + cover[b] + cover[c] <= 0:
            continue
        scale = one / twice
        du_x, du_y, dv_x, dv_y = (by - cy) * scale, (cx - bx) * scale, (cy - ay) * scale, (ax - cx) * scale
        dw_x = -du_x - dv_x
        step_s = du_x * uv[a, 0] + dv_x * uv[b, 0] + dw_x * uv[c, 0]
        step_t = du_x * uv[a, 1] + dv_x * uv[b, 1] + dw_x * uv[c, 1]
        step_cover = du_x * cover[a] + dv_x * cover[b] + dw_x * cover[c]
        step_0 = du_x * gain[a, 0] + dv_x * gain[b, 0] + dw_x * gain[c, 0]
        lift_0 = du_x * bias[a, 0] + dv_x * bias[b, 0] + dw_x * bias[c, 0]
        step_1 = du_x * gain[a, 1] + dv_x * gain[b, 1] + dw_x * gain[c, 1]
        lift_1 = du_x * bias[a, 1] + dv_x * bias[b, 1] + dw_x * bias[c, 1]
        step_2 = du_x * gain[a, 2] + dv_x * gain[b, 2] + dw_x * gain[c, 2]
        lift_2 = du_x * bias[a, 2] + dv_x * bias[b, 2] + dw_x * bias[c, 2]
        for y in range(max(0, int(np.ceil(min(ay, by, cy)))), min(height, int(np.ceil(max(ay, by, cy))))):
            row = _f(y)
            left, right = _f(1e9), _f(-1e9)
            for edge in range(3):
                if edge == 0:
                    x1, y1, x2, y2 = ax, ay, bx, by
                elif edge == 1:
                    x1, y1, x2, y2 = bx, by, cx, cy
                else:
                    x1, y1, x2, y2 = cx, cy, ax, ay
                if y1 > y2:
                    x1, y1, x2, y2 = x2, y2, x1, y1
                if y1 <= row < y2:
                    crossing = x1 + (row - y1) * (x2 - x1) / (y2 - y1)
                    left, right = min(left, crossing), max(right, crossing)
            first, last = max(0, int(np.ceil(left))), min(width, int(np.ceil(right)))
            if last <= first:
                continue
            u, v = du_y * (row - cy), dv_y * (row - cy)
            w = one - u - v
            from_s = u * uv[a, 0] + v * uv[b, 0] + w * uv[c, 0]
            from_t = u * uv[a, 1] + v * uv[b, 1] + w * uv[c, 1]
            from_cover = u * cover[a] + v * cover[b] + w * cover[c]
            g0 = u * gain[a, 0] + v * gain[b, 0] + w * gain[c, 0]
            o0 = u * bias[a, 0] + v * bias[b, 0] + w * bias[c, 0] + half
            g1 = u * gain[a, 1] + v * gain[b, 1] + w * gain[c, 1]
            o1 = u * bias[a, 1] + v * bias[b, 1] + w * bias[c, 1] + half
            g2 = u * gain[a, 2] + v * gain[b, 2] + w * gain[c, 2]
            o2 = u * bias[a, 2] + v * bias[b, 2] + w * bias[c, 2] + half
            for x in range(first, last):
                px = _f(x) - cx
                q = min(max(from_cover + step_cover * px, _f(0)), one)
                q = q * q * (three - two * q)
                s, r = min(max(from_s + step_s * px, _f(0)), last_s), min(max(from_t + step_t * px, _f(0)), last_t)
                i, j = np.uint32(s), np.uint32(r)
                fs, ft = s - _f(i), r - _f(j)
                w11 = fs * ft
                w10, w01, w00 = fs - w11, ft - w11, one - fs - ft + w11
                opaque = _between(texture, j, i, 3, w00, w10, w01, w11)
                alpha[y, x] = np.uint8(q * opaque + half)
                if alpha[y, x]:  # hair, rims and what is turned away cost no colours
                    b0 = _between(texture, j, i, 0, w00, w10, w01, w11)
                    b1 = _between(texture, j, i, 1, w00, w10, w01, w11)
                    b2 = _between(texture, j, i, 2, w00, w10, w01, w11)
                    green = g1 + step_1 * px
                    pixels[y, x, 0] = _level(b0 * (g0 + step_0 * px) + (o0 + lift_0 * px), green)
                    pixels[y, x, 1] = _level(b1 * green + (o1 + lift_1 * px), green)
                    pixels[y, x, 2] = _level(b2 * (g2 + step_2 * px) + (o2 + lift_2 * px), green)

"""Capsules and polygons as masks: a level is a ramp of the distance to their edge, so that edges are soft and do not crawl.

``rt/compose/kernels/shapes.cuh`` is the same on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engines.face import Patch
from engines.jit import compiled

CAPSULE, EDGE, CLOSING = 0, 1, 2
"""Last number of a segment: a capsule; an edge of a polygon; its last edge."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """Level at the signed distance d (pixels, negative inside): ``offset + slope · d``, cut to ``least`` … ``most``."""

    offset: float
    slope: float
    least: float = 0.0
    most: float = 255.0

    def numbers(self) -> np.ndarray:
        """float32 [4]."""
        return np.array([self.offset, self.slope, self.least, self.most], np.float32)

    @property
    def reach(self) -> float:
        """Pixels from the edge beyond which nothing changes any more."""
        return max(abs(self.offset - self.least), abs(self.most - self.offset)) / max(abs(self.slope), 1e-6)


@dataclass(frozen=True, slots=True)
class Shapes:
    """What is drawn: segments and how their edge fades."""

    segments: np.ndarray
    """float32 [N, 6], pixels of the picture."""
    ramp: Ramp

    def seen_from(self, left: int, top: int) -> np.ndarray:
        """float32 [N, 6]: the segments in pixels of a part of the picture that begins there."""
        return self.segments - np.array([left, top, left, top, 0, 0], np.float32)

    def box(self, left: int, top: int, right: int, bottom: int) -> tuple[int, int, int, int] | None:
        """What of that box is not as far outside of the shapes as to be the same everywhere; None where nothing is."""
        ends = self.segments[:, :4].reshape(-1, 2)
        around = self.segments[:, 4].max() + self.ramp.reach + 1
        low, high = np.floor(ends.min(0) - around), np.ceil(ends.max(0) + around) + 1
        x, y = np.clip(low, [left, top], [right, bottom]).astype(int)
        end_x, end_y = np.clip(high, [left, top], [right, bottom]).astype(int)
        return None if end_x <= x or end_y <= y else (int(x), int(y), int(end_x), int(end_y))


def limit(patch: Patch, shapes: Shapes) -> None:
    """Where the level of ``shapes`` is less than ``patch.alpha``, that becomes as little, in place. Far outside it must be 255."""
    height, width = patch.alpha.shape
    box = shapes.box(patch.left, patch.top, patch.left + width, patch.top + height)
    if box is None:
        return
    left, top, right, bottom = box
    alpha = patch.alpha[top - patch.top : bottom - patch.top, left - patch.left : right - patch.left]
    np.minimum(alpha, drawn(shapes.seen_from(left, top), shapes.ramp, alpha.shape), out=alpha)


def limit_all(patch: Patch, drawn: Sequence[Shapes]) -> None:
    """As ``limit`` for each of ``drawn``."""
    for shapes in drawn:
        limit(patch, shapes)


def capsules(chains: list[np.ndarray], radius: float) -> np.ndarray:
    """float32 [N, 6]: every stretch of the ``chains`` (float [K, 2] each), round and ``radius`` thick."""
    rows = [np.c_[chain[:-1], chain[1:]] for chain in chains]
    return _segments(np.concatenate(rows), radius, CAPSULE)


def polygon(ring: np.ndarray, radius: float = 0.0) -> np.ndarray:
    """float32 [N, 6]: what the closed ``ring`` [N, 2] surrounds (even-odd), widened by ``radius``."""
    segments = _segments(np.c_[ring, np.roll(ring, -1, 0)], radius, EDGE)
    segments[-1, 5] = CLOSING
    return segments


def _segments(ends: np.ndarray, radius: float, what: int) -> np.ndarray:
    return np.c_[ends, np.full(len(ends), radius), np.full(len(ends), what)].astype(np.float32)


def drawn(segments: np.ndarray, ramp: Ramp, shape: tuple[int, ...]) -> np.ndarray:
    """uint8 of ``shape`` [H, W]: the levels of the union of all ``segments``."""
    out = np.empty(shape, np.uint8)
    far, inside = np.float32(1e9), np.zeros(shape, np.uint8)
    distance, edge = np.full(shape, far, np.float32), np.full(shape, far, np.float32)
    _measure(segments, float(ramp.reach + 1), distance, edge, inside)
    _levels(distance, ramp.numbers(), out)
    return out


@compiled("void(float32[:, ::1], float32, float32[:, ::1], float32[:, ::1], uint8[:, ::1])")
def _measure(segments: np.ndarray, reach: float, distance: np.ndarray, edge: np.ndarray, inside: np.ndarray) -> None:
    """``distance`` float32 [H, W], large before: signed distance to the union where it is less than ``reach``, else something beyond.

    Only pixels near a segment are looked at; ``edge`` (large before) and ``inside`` (0 before) are for one polygon at a time.
    """
    height, width = distance.shape
    for k in range(len(segments)):
        ax, ay, bx, by, radius, what = segments[k]
        around = abs(radius) + reach
        top, bottom = max(0, int(np.ceil(min(ay, by) - around))), min(height - 1, int(max(ay, by) + around))
        left, right = max(0, int(np.ceil(min(ax, bx) - around))), min(width - 1, int(max(ax, bx) + around))
        dx, dy = bx - ax, by - ay
        length = max(dx * dx + dy * dy, np.float32(1e-12))
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                px, py = np.float32(x) - ax, np.float32(y) - ay
                along = min(np.float32(1), max(np.float32(0), (px * dx + py * dy) / length))
                px -= along * dx
                py -= along * dy
                away = np.sqrt(px * px + py * py)
                if what == CAPSULE:
                    distance[y, x] = min(distance[y, x], away - radius)
                else:
                    edge[y, x] = min(edge[y, x], away)
        if what == CAPSULE:
            continue
        for y in range(max(0, int(np.ceil(min(ay, by)))), min(height - 1, int(max(ay, by))) + 1):
            if (ay <= y) != (by <= y):
                crossing = ax + (np.float32(y) - ay) * (bx - ax) / (by - ay)
                for x in range(min(width, max(0, int(np.ceil(crossing))))):
                    inside[y, x] ^= 1
        if what == CLOSING:
            for y in range(height):
                for x in range(width):
                    signed = -edge[y, x] if inside[y, x] else edge[y, x]
                    distance[y, x] = min(distance[y, x], signed - radius)
                    edge[y, x], inside[y, x] = np.float32(1e9), 0


@compiled("void(float32[:, ::1], float32[::1], uint8[:, ::1])")
def _levels(distance: np.ndarray, ramp: np.ndarray, out: np.ndarray) -> None:
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            level = min(ramp[3], max(ramp[2], ramp[0] + ramp[1] * distance[y, x]))
            out[y, x] = np.uint8(min(np.float32(255), max(np.float32(0), level + np.float32(0.5))))

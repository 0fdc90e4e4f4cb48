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
    inside = np.zeros(shape, np.uint8)
    distance, edge = np.full(shape, 1e9, np.float32), np.full(shape, 1e18, np.float32)
    _measure(segments, float(ramp.reach + 1), distance, edge, inside)
    _levels(distance, ramp.numbers(), out)
    return out


@compiled("void(float32[:, ::1], float32, float32[:, ::1], float32[:, ::1], uint8[:, ::1])")
def _measure(segments: np.ndarray, reach: float, distance: np.ndarray, edge: np.ndarray, inside: np.ndarray) -> None:
    """``distance`` float32 [H, W], large before: signed distance to the union where it is less than ``reach``, else something beyond.

    Only pixels near a segment are looked at. ``edge`` (the squared way to it, large before) and ``inside`` (0 before) are for one polygon,
    or for capsules of one thickness, at a time: one root for all of them.
    """
    height, width = distance.shape
    first_x, first_y, last_x, last_y = width, height, -1, -1
    for k in range(len(segments)):
        ax, ay, bx, by, radius, what = segments[k]
        around = abs(radius) + reach
        top, bottom = max(0, int(np.ceil(min(ay, by) - around))), min(height - 1, int(max(ay, by) + around))
        left, right = max(0, int(np.ceil(min(ax, bx) - around))), min(width - 1, int(max(ax, bx) + around))
        first_x, first_y, last_x, last_y = min(first_x, left), min(first_y, top), max(last_x, right), max(last_y, bottom)
        dx, dy = bx - ax, by - ay
        share = np.float32(1) / max(dx * dx + dy * dy, np.float32(1e-12))
        for y in range(top, bottom + 1):
            down, row = np.float32(y) - ay, edge[y, left : right + 1]  # a row of its own: its indices count from 0, and several go at once
            for i in range(row.shape[0]):
                px = np.float32(left + i) - ax
                along = (px * dx + down * dy) * share
                along = along if along > 0 else np.float32(0)
                along = along if along < 1 else np.float32(1)
                px, py = px - along * dx, down - along * dy
                squared = px * px + py * py
                row[i] = squared if squared < row[i] else row[i]
        if what != CAPSULE:
            for y in range(max(0, int(np.ceil(min(ay, by)))), min(height - 1, int(max(ay, by))) + 1):
                if (ay <= y) != (by <= y):
                    crossing = ax + (np.float32(y) - ay) * (bx - ax) / (by - ay)
                    for x in range(min(width, max(0, int(np.ceil(crossing))))):
                        inside[y, x] ^= 1
            first_x = 0  # all to the left of a crossing was turned
        is_last = k + 1 == len(segments) or segments[k + 1, 5] != CAPSULE or segments[k + 1, 4] != radius
        if what == CLOSING or (what == CAPSULE and is_last):
            for y in range(first_y, last_y + 1):
                near, nearest, within = edge[y, first_x : last_x + 1], distance[y, first_x : last_x + 1], inside[y, first_x : last_x + 1]
                for i in range(near.shape[0]):
                    away = np.sqrt(near[i])
                    signed = (-away if within[i] else away) - radius
                    nearest[i] = signed if signed < nearest[i] else nearest[i]
                    near[i], within[i] = np.float32(1e18), 0
            first_x, first_y, last_x, last_y = width, height, -1, -1


@compiled("void(float32[:, ::1], float32[::1], uint8[:, ::1])")
def _levels(distance: np.ndarray, ramp: np.ndarray, out: np.ndarray) -> None:
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            level = min(ramp[3], max(ramp[2], ramp[0] + ramp[1] * distance[y, x]))
            out[y, x] = np.uint8(min(np.float32(255), max(np.float32(0), level + np.float32(0.5))))

"""Steady landmarks without lag: the one-euro filter in coordinates of the face itself.

Casiez, Roussel, Vogel: "1€ Filter", CHI 2012: a low-pass whose cutoff rises with the speed of what it filters. Here it runs
twice: on where the face is (centre and size), whose speed opens it at once, and on its shape (points relative to centre and
size), which hardly moves and may be filtered hard.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

PLACE_HZ, PLACE_HZ_PER_SPEED = 1.0, 45.0
"""Cutoff of centre and log size at rest, and its rise per face size a second. Measured on webcam clips, with the shape's: against
(1, 30) and (0.8, 10) swapped faces lie 2.44 % of the eyes' distance off their place instead of 2.49, and a still face trembles by
0.11 pixels at noise σ 4 instead of 0.10; opening them further gains nothing."""

SHAPE_HZ, SHAPE_HZ_PER_SPEED = 1.0, 16.0
"""The same for every point of the shape."""

SPEED_HZ = 3.0
"""Cutoff of the speeds themselves."""

JUMP_SIZES, JUMP_LOG_SIZE = 0.6, 0.25
"""A move of more than this many face sizes, or of this much in log size, between two frames is a cut, not a movement."""

GAP_S = 0.5
"""After so long without a frame nothing is known of the speed."""


class LandmarkFilter:
    """One face's filter. One thread."""

    def __init__(self, strength: float = 1.0) -> None:
        """``strength``: 0 passes everything, 1 filters fully; between them the output is mixed."""
        self.strength = strength
        self._at_ns: int | None = None
        self._place = np.zeros(3)
        self._place_speed = np.zeros(3)
        self._shape = np.zeros((0, 3), np.float32)
        self._shape_speed = np.zeros((0, 3), np.float32)

    def reset(self) -> None:
        """Forgets everything: the next points pass as they are."""
        self._at_ns = None

    def __call__(self, points: np.ndarray, captured_ns: int) -> np.ndarray:
        """``points``: float32 [N, 3] pixels. Returns them steadied, float32 [N, 3], an array of its own."""
        place, shape = _take_apart(points)
        if self._must_restart(place, captured_ns):
            self._restart(place, shape, captured_ns)
            return points.astype(np.float32)  # a copy
        assert self._at_ns is not None
        elapsed_s = (captured_ns - self._at_ns) / 1e9
        self._at_ns = captured_ns
        self._filter_place(place, elapsed_s)
        self._filter_shape(shape, elapsed_s)
        smooth = _put_together(self._place, self._shape)
        if self.strength < 1:
            smooth = points + (smooth - points) * np.float32(self.strength)
        return smooth

    def _must_restart(self, place: np.ndarray, captured_ns: int) -> bool:
        if self._at_ns is None or not 0 < captured_ns - self._at_ns < GAP_S * 1e9:
            return True
        moved_px = math.hypot(*(place[:2] - self._place[:2]))
        return moved_px > JUMP_SIZES * math.exp(self._place[2]) or abs(place[2] - self._place[2]) > JUMP_LOG_SIZE

    def _restart(self, place: np.ndarray, shape: np.ndarray, captured_ns: int) -> None:
        self._at_ns = captured_ns
        self._place, self._place_speed = place, np.zeros(3)
        self._shape, self._shape_speed = shape, np.zeros_like(shape)

    def _filter_place(self, place: np.ndarray, elapsed_s: float) -> None:
        speed = (place - self._place) / elapsed_s
        speed[:2] /= math.exp(place[2])
        self._place_speed += _gain(SPEED_HZ, elapsed_s) * (speed - self._place_speed)
        rush = np.array([math.hypot(*self._place_speed[:2])] * 2 + [abs(self._place_speed[2])])
        self._place = self._place + _gain(PLACE_HZ + PLACE_HZ_PER_SPEED * rush, elapsed_s) * (place - self._place)

    def _filter_shape(self, shape: np.ndarray, elapsed_s: float) -> None:
        ahead = shape - self._shape
        self._shape_speed += (ahead * np.float32(1 / elapsed_s) - self._shape_speed) * np.float32(_gain(SPEED_HZ, elapsed_s))
        rush = np.sqrt(np.einsum("ij,ij->i", self._shape_speed[:, :2], self._shape_speed[:, :2]))  # as seen: depth is a guess
        self._shape = self._shape + ahead * _gain(SHAPE_HZ + SHAPE_HZ_PER_SPEED * rush, elapsed_s)[:, None]


@overload
def _gain(cutoff_hz: float, elapsed_s: float) -> float: ...
@overload
def _gain(cutoff_hz: np.ndarray, elapsed_s: float) -> np.ndarray: ...
def _gain(cutoff_hz: float | np.ndarray, elapsed_s: float) -> float | np.ndarray:
    """The share of the new value in a first-order low-pass: r / (r + 1) with r = 2π · cutoff · time."""
    r = 2 * math.pi * elapsed_s * cutoff_hz
    return r / (r + 1)


def _take_apart(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place, float64 [centre x, centre y, log size], and shape, float32 [N, 3] in sizes.

    The size is 1.2 times the points' RMS distance to the centre, and at least a pixel.
    """
    centre = points[:, :2].mean(0)
    shape = np.array(points, np.float32)
    shape[:, :2] -= centre
    size = max(1.0, 1.2 * math.sqrt(float(np.vdot(shape[:, :2], shape[:, :2])) / len(shape)))
    return np.array([*centre, math.log(size)], np.float64), shape * np.float32(1 / size)


def _put_together(place: np.ndarray, shape: np.ndarray) -> np.ndarray:
    points: np.ndarray = shape * np.float32(math.exp(place[2]))
    points[:, :2] += place[:2].astype(np.float32)
    return points

"""One face's memory from frame to frame."""

from __future__ import annotations

import numpy as np

from engines.face import Landmarks
from rt.frame import FaceState, TrackedFace
from rt.track.smoothing import LandmarkFilter

SPEED_SIZES_MAX = 2.0
"""A prediction moves at most so many face widths a second: half a width within the default hold at 25 frames a second."""

DAMPING_S = 0.08
"""A predicted movement dies away with this time constant: heads turn back more often than they go on."""


class Track:
    """A face that was found, and is looked for in every frame since. One thread."""

    def __init__(self, face_id: int, face: Landmarks, captured_ns: int, smoothing: float) -> None:
        self.id = face_id
        self.missing_frames = 0
        self.first_ns = self.seen_ns = captured_ns
        self.raw = face.points
        """float32 [468, 3]: unfiltered points of the last frame in which it was seen, moved on by the prediction since."""
        self.best_score = face.score
        self._score = face.score
        self._filter = LandmarkFilter(smoothing)
        self._shown = self._filter(face.points, captured_ns)
        self._speed = np.zeros(2, np.float32)  # pixels a second
        self._at_ns = captured_ns

    @property
    def is_missing(self) -> bool:
        return self.missing_frames > 0

    @property
    def width_px(self) -> float:
        return float(np.ptp(self.raw[:, 0]))

    @property
    def centre(self) -> np.ndarray:
        """float32 [2] pixels."""
        centre: np.ndarray = self.raw[:, :2].mean(0)
        return centre

    @property
    def box(self) -> np.ndarray:
        """float32 [4]: left, top, right, bottom of its points, pixels."""
        return box_of(self.raw)

    def accept(self, face: Landmarks, captured_ns: int, smoothing: float) -> None:
        """It was found in the frame of ``captured_ns``."""
        self._filter.strength = smoothing
        shown = self._filter(face.points, captured_ns)
        if not self.is_missing and captured_ns > self._at_ns:
            self._speed = (shown - self._shown)[:, :2].mean(0) * np.float32(1e9 / (captured_ns - self._at_ns))
        self.raw, self._shown, self._score = face.points, shown, face.score
        self.best_score = max(self.best_score, face.score)
        self.seen_ns = self._at_ns = captured_ns
        self.missing_frames = 0

    def miss(self, captured_ns: int, hold_frames: int) -> None:
        """It was not found; for ``hold_frames`` its movement goes on, bounded and damped."""
        self.missing_frames += 1
        if self.missing_frames == 1:
            self._bound_speed()
        elapsed_s = max(0, captured_ns - self._at_ns) / 1e9
        self._at_ns = captured_ns
        if self.missing_frames > hold_frames:
            return
        step = np.zeros(3, np.float32)
        step[:2] = self._speed * elapsed_s
        self._shown = self._shown + step
        self.raw = self.raw + step
        self._speed = self._speed * np.float32(np.exp(-elapsed_s / DAMPING_S))

    def _bound_speed(self) -> None:
        speed, limit = float(np.hypot(*self._speed)), SPEED_SIZES_MAX * self.width_px
        if speed > limit:
            self._speed = self._speed * np.float32(limit / speed)

    def is_lost(self, hold_frames: int) -> bool:
        return self.missing_frames > hold_frames

    def report(self, hold_frames: int) -> TrackedFace:
        if not self.is_missing:
            state = FaceState.SEEN
        else:
            state = FaceState.LOST if self.is_lost(hold_frames) else FaceState.HELD
        return TrackedFace(self.id, self._shown, state, self._score)


def box_of(points: np.ndarray) -> np.ndarray:
    """float32 [4]: left, top, right, bottom of points [N, 2 or 3]."""
    return np.concatenate([points[:, :2].min(0), points[:, :2].max(0)])


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two boxes [left, top, right, bottom]."""
    size = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    if (size <= 0).any():
        return 0.0
    shared = float(size.prod())
    return shared / float((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - shared)

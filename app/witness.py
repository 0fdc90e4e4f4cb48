"""Before and after: copies of a few frames as they came and as they went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rt.frame import Frame


@dataclass(slots=True)
class Moment:
    """One frame, twice."""

    seq: int
    seconds: float
    before: np.ndarray
    """uint8 [H, W, 3] BGR as captured."""
    after: np.ndarray | None = None
    """The same as it was handed to the sinks."""


class Snapshots:
    """A ``rt.lane.Witness`` that keeps the first frame at or after each of the given seconds since the first frame."""

    def __init__(self, at_seconds: Sequence[float]) -> None:
        self._wanted_s = sorted(at_seconds)
        self._first_ns: int | None = None
        self._open: Moment | None = None
        self.moments: list[Moment] = []
        """Read it when the line has ended."""

    def before(self, frame: Frame) -> None:
        self._first_ns = frame.captured_ns if self._first_ns is None else self._first_ns
        seconds = (frame.captured_ns - self._first_ns) / 1e9
        if self._wanted_s and seconds >= self._wanted_s[0]:
            self._wanted_s.pop(0)
            self._open = Moment(frame.seq, seconds, frame.pixels.copy())

    def after(self, frame: Frame) -> None:
        if self._open is not None and self._open.seq == frame.seq:
            self._open.after = frame.pixels.copy()
            self.moments.append(self._open)
            self._open = None

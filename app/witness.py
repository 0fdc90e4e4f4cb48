"""Before and after: copies of a few frames as they came and as they went."""

from __future__ import annotations

import threading
from bisect import insort
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
    wanted_s: float
    """When it was asked for."""
    after: np.ndarray | None = None
    """The same as it was handed to the sinks."""


class Snapshots:
    """A ``rt.witness.Witness`` that keeps the first frame at or after each of the given seconds since the first frame."""

    def __init__(self, at_seconds: Sequence[float]) -> None:
        self._lock = threading.Lock()
        self._wanted_s = sorted(at_seconds)  # guarded by _lock, as is all below
        self._first_ns: int | None = None
        self._open: dict[int, Moment] = {}
        self.moments: list[Moment] = []
        """Read it when the line has ended."""

    def before(self, frame: Frame) -> None:
        with self._lock:
            self._first_ns = frame.captured_ns if self._first_ns is None else self._first_ns
            seconds = (frame.captured_ns - self._first_ns) / 1e9
            if self._wanted_s and seconds >= self._wanted_s[0]:
                self._open[frame.seq] = Moment(frame.seq, seconds, frame.pixels.copy(), self._wanted_s.pop(0))

    def after(self, frame: Frame) -> None:
        with self._lock:
            for seq in [seq for seq in self._open if seq < frame.seq]:  # lost on the way: the next one will do
                insort(self._wanted_s, self._open.pop(seq).wanted_s)
            moment = self._open.pop(frame.seq, None)
            if moment is not None:
                moment.after = frame.pixels.copy()
                self.moments.append(moment)

"""The smallest parts of a line that a test can say everything of: faces by a script, a swapper that paints a square, grey pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.face import Patch
from engines.mesh.topology import topology
from rt.audio import AudioBus
from rt.capture.contract import Grab
from rt.clock import MonotonicClock
from rt.frame import FaceState, Frame, TrackedFace, VideoFormat

WORN, MS = 255, 1_000_000
FACE = (topology().shape * 20 + [80, 45, 0]).astype(np.float32)
MIDDLE = np.s_[35:55, 70:90]


class Scripted:
    """A tracker that says of the same face what ``state`` says of a picture's number."""

    patience = 1

    def __init__(self, state: Callable[[int], FaceState] = lambda number: FaceState.SEEN, faces: int = 1) -> None:
        self._state = state
        self._faces = faces
        self._number = -1

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        self._number += 1
        return tuple(TrackedFace(n, FACE, self._state(self._number), 1.0) for n in range(1, self._faces + 1))


@dataclass
class Painting:
    """A swapper that paints a white square over the face, after ``act`` was called with the time of the picture."""

    act: Callable[[int], None] = lambda captured_ns: None
    name: str = "painting"
    needs_photo: bool = False

    def swap(self, image: np.ndarray, points: np.ndarray, identity: Any, face_id: int, captured_ns: int) -> Patch:
        self.act(captured_ns)
        return Patch(np.full((20, 20, 3), WORN, np.uint8), np.full((20, 20), 255, np.uint8), 70, 35)

    def forget(self, face_id: int) -> None:
        """Nothing is remembered."""


class Keeping:
    """A sink that keeps numbers and the middle of pictures, and says when it has so many."""

    name = "keeping"
    lossless = True

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.middles: list[np.ndarray] = []
        self.repeated: list[bool] = []

    def open(self, video: VideoFormat) -> None: ...

    def write(self, frame: Frame) -> None:
        self.middles.append(frame.pixels[MIDDLE].copy())
        self.repeated.append(frame.repeated)
        self.seqs.append(frame.seq)

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None: ...

    def close(self) -> None: ...

    def statistics(self) -> dict[str, Any]:
        return {}


class Grey:
    """A source of grey pictures: so many as fast as they are taken, or without end, one every 3 ms."""

    def __init__(self, frames: int | None, clock: MonotonicClock) -> None:
        self.live = frames is None
        self._frames = frames
        self._clock = clock
        self._stop = threading.Event()
        self._number = -1

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._stop = stop
        return VideoFormat(160, 90, 100)

    def grab(self) -> Grab | None:
        self._number += 1
        if self._stop.is_set() or self._number == self._frames:
            return None
        now_ns = self._clock.now_ns()
        if self.live and not self._clock.wait_until(now_ns + 3 * MS, self._stop):
            return None
        return Grab(self._clock.now_ns(), self._number * 10 * MS)

    def retrieve(self, into: np.ndarray) -> None:
        into[...] = 90

    def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {}

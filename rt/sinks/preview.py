"""The sink that a window looks at: keeps a copy of the newest picture and nothing else, so that a slow window holds nobody."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from rt.frame import Frame, TrackedFace, VideoFormat


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame as a window gets it; owns its pixels."""

    pixels: np.ndarray
    """uint8 [H, W, 3] BGR."""
    before: np.ndarray | None
    """The same frame as it was filmed, where ``PreviewSink.keep_before`` was on."""
    faces: tuple[TrackedFace, ...]
    seq: int
    captured_ns: int


class PreviewSink:
    """A sink, and the lane's witness where the picture before the swap is wanted too. ``take`` is any one thread's."""

    name = "preview"
    lossless = False

    def __init__(self) -> None:
        self.keep_before = False
        """Costs the lane one copy a frame, so it is off until somebody looks."""
        self.visible = True
        """False copies nothing: the window is hidden."""
        self._lock = threading.Lock()
        self._newest: Picture | None = None  # guarded by _lock, as is _befores
        self._befores: dict[int, np.ndarray] = {}

    def take(self) -> Picture | None:
        """The newest picture that was not taken yet, or None. Never waits for the line."""
        with self._lock:
            picture, self._newest = self._newest, None
            return picture

    # --- witness: the lane's compute stream ---

    def before(self, frame: Frame) -> None:
        if not (self.keep_before and self.visible):
            return
        copy = frame.pixels.copy()
        with self._lock:
            self._befores[frame.seq] = copy

    def after(self, frame: Frame) -> None:
        """Nothing: the sink gets it."""

    # --- sink: the runner's thread ---

    def open(self, video: VideoFormat) -> None:
        """Nothing to open."""

    def write(self, frame: Frame) -> None:
        if not self.visible:
            return
        pixels = frame.pixels.copy()
        with self._lock:
            before = self._befores.pop(frame.seq, None)
            for old in [seq for seq in self._befores if seq < frame.seq]:  # of frames that were not written
                del self._befores[old]
            self._newest = Picture(pixels, before, frame.faces, frame.seq, frame.captured_ns)

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called."""

    def close(self) -> None:
        with self._lock:
            self._befores.clear()

    def statistics(self) -> dict[str, Any]:
        return {}

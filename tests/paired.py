"""Witnesses that have both pictures of a frame at hand."""

from __future__ import annotations

import numpy as np

from rt.frame import Frame


class Paired:
    """Keeps ``rt.witness.Witness``."""

    def __init__(self) -> None:
        self._befores: dict[int, np.ndarray] = {}

    def before(self, frame: Frame) -> None:
        self._befores[frame.seq] = frame.pixels.copy()

    def after(self, frame: Frame) -> None:
        for seq in [seq for seq in self._befores if seq < frame.seq]:  # lost on the way
            del self._befores[seq]
        self.compare(self._befores.pop(frame.seq), frame)

    def compare(self, before: np.ndarray, frame: Frame) -> None:
        """``before``: uint8 [H, W, 3], what was filmed. On the order thread."""
        raise NotImplementedError

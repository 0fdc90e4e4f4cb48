"""The contract of every enhancer."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from engines.face import Patch


class Enhancer(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        """The face at ``points`` (float32 [468, 3] FaceMesh landmarks, pixels) of ``image`` (uint8 [H, W, 3] BGR, swapped already, only
        read) as a patch to be blended over it; None where nothing of it lies inside the picture. Valid until the next call."""
        ...

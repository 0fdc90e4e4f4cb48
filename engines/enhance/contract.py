"""The contract of every enhancer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from engines.face import Patch


class Enhancer(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        """The face at ``points`` (float32 [468, 3] FaceMesh landmarks, pixels) of ``image`` (uint8 [H, W, 3] BGR, swapped already, only
        read) as a patch to be blended over it; None where nothing of it lies inside the picture. Valid until the next call."""
        ...


@runtime_checkable
class BatchEnhancer(Protocol):
    """What an enhancer offers beside ``Enhancer`` if several faces of a picture cost it less together than one by one."""

    def enhance_all(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> Sequence[Patch | None]:
        """``enhance`` for the points of every face of ``image``, in order. All patches are valid until the next call."""
        ...

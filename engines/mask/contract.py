"""The contract of every mask: it takes away from a patch what should stay the target's own."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from engines.face import Patch


class Mask(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def limit(self, image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
        """Lowers ``patch.alpha`` in place where the target is to be seen.

        ``image``: uint8 [H, W, 3] BGR, the frame before the swap, only read. ``points``: float32 [468, 3] FaceMesh landmarks in its
        pixels.
        """
        ...

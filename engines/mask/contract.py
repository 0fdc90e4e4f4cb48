"""The contract of every mask: it takes away from a patch what should stay the target's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from engines.face import Patch
from engines.mask.shapes import Shapes


class Mask(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def limit(self, image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
        """Lowers ``patch.alpha`` in place where the target is to be seen.

        ``image``: uint8 [H, W, 3] BGR, the frame before the swap, only read. ``points``: float32 [468, 3] FaceMesh landmarks in its
        pixels.
        """
        ...


@runtime_checkable
class ShapeMask(Protocol):
    """What a mask offers beside ``Mask`` if all it takes away is drawn: then a device can draw it where the patch lies."""

    def shapes(self, image: np.ndarray, points: np.ndarray) -> Sequence[Shapes]:
        """Instead of ``limit``: ``alpha`` is to become as little as the levels of each of these, which are 255 far outside."""
        ...

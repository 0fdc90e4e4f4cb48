"""The contract of every mask: it takes away from a patch what should stay the target's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from engines.face import Patch
from engines.mask.shapes import Shapes

Cover = Callable[[Patch], None]
"""Lowers ``patch.alpha`` in place where the target is to be seen. For any number of patches of one face, until its mask looks again."""


class Mask(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> Sequence[Cover]:
        """Looks at every face that is to be swapped, once a frame: a cover for each, in order.

        ``image``: uint8 [H, W, 3] BGR, the frame before any swap, only read. ``faces``: float32 [468, 3] FaceMesh landmarks in its
        pixels.
        """
        ...


@runtime_checkable
class ShapeMask(Protocol):
    """What a mask offers beside ``Mask`` if all it takes away is drawn: then a device can draw it where the patch lies."""

    def shapes(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> Sequence[Sequence[Shapes]]:
        """Instead of ``covers``, for each face in order: ``alpha`` is to become as little as the levels of each of these, which are 255
        far outside."""
        ...


def leave(patch: Patch) -> None:
    """The cover of a face of which nothing is known: the patch stays as it is."""

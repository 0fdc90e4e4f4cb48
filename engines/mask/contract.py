"""The contract of every mask: it takes away from a patch what should stay the target's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from engines.face import Patch

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


def leave(patch: Patch) -> None:
    """The cover of a face of which nothing is known: the patch stays as it is."""

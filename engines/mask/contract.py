"""The contract of every mask: it takes away from a patch what should stay the target's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from engines.align import Aligner
from engines.crop_model import CropNetwork
from engines.face import Patch
from engines.mask.shapes import Shapes
from engines.tensor import Norm

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


@dataclass(frozen=True, slots=True)
class MaskRecipe:
    """How a network's crops are taken, and how a mask of ``engines.mask.lower.SIDE`` pixels is made of what it gives."""

    wanted: np.ndarray
    """float32 [5, 2]: where the five points lie in the crop, pixels."""
    side: int
    """Pixels of the crop; a multiple of the mask's."""
    given: Norm
    """Of what the network takes."""
    is_planar: bool
    """It takes [N, 3, S, S] RGB; else [N, S, S, 3] BGR."""
    made: tuple[int, ...]
    """Shape of what it gives for one crop."""
    kept: np.ndarray | None
    """bool [C], which classes are seen, where ``made`` is a score [C, S, S] of each; None where it is the share in [0, 1] that is."""


@runtime_checkable
class NetworkMask(Protocol):
    """What a mask offers beside ``Mask`` if all it does is crop → network → ``softened``: then pictures do not leave a device for it.
    One thread at a time."""

    aligner: Aligner

    @property
    def recipe(self) -> MaskRecipe: ...

    @property
    def network(self) -> CropNetwork: ...

    def feeds(self, identity: None, count: int) -> Mapping[str, np.ndarray]:
        """See ``engines.crop_model.CropModel``."""
        ...

    def check_made(self, pictures: np.ndarray) -> None:
        """See ``engines.crop_model.CropModel``."""
        ...


def leave(patch: Patch) -> None:
    """The cover of a face of which nothing is known: the patch stays as it is."""

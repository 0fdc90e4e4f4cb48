"""The contract of every swapper: a prepared identity and a tracked face in, a patch out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engines.face import Patch, SourceFace


class Swapper(Protocol):
    """Draws one identity. ``prepare`` may be called from any thread; ``swap`` from the lane's alone."""

    name: str
    needs_photo: bool
    """False where the swapper is made for one person and draws nobody else."""

    def warm_up(self) -> None:
        """Compiles and allocates what the first picture would otherwise wait for: seconds, once. Raises what the first swap would."""
        ...

    def prepare(self, faces: Sequence[SourceFace]) -> Any:
        """The identity of one person, from one or more photos: hundreds of milliseconds, once. Raises ``PhotoError``."""
        ...

    def swap(self, image: np.ndarray, points: np.ndarray, identity: Any, face_id: int, captured_ns: int) -> Patch | None:
        """Draws ``identity`` onto the face in ``image``.

        ``image``: uint8 [H, W, 3] BGR, only read; of faces that overlap the nearer is given the picture as it was filmed too, since its
        light is that of who was filmed; one that works on crops (``engines.crop_model``) is given what the face behind left.
        ``points``: float32 [468, 3] FaceMesh landmarks in its pixels.
        ``face_id`` keys what the swapper remembers of a face from frame to frame (light, colour); ``captured_ns`` dates it.
        None where nothing of the face lies inside the picture.
        """
        ...

    def forget(self, face_id: int) -> None:
        """Drops what is remembered of a face that has left."""
        ...


@runtime_checkable
class ScalableSwapper(Protocol):
    """What a swapper offers beside ``Swapper`` if it can do with less."""

    smaller: Swapper | None
    """Draws the same identity with less work, on the same thread; None where this is the least."""


@runtime_checkable
class MatchesColours(Protocol):
    """What a swapper offers beside ``Swapper`` if it gives the face the target's colours itself."""

    colour_match: float
    """How far, 0 to 1. Set between two swaps."""


@runtime_checkable
class FadesAtSeam(Protocol):
    """What a swapper offers beside ``Swapper`` if it can be told over how wide a seam its face fades out."""

    seam_width: float
    """So many times as wide as the swapper has it by itself. Set between two swaps."""


@runtime_checkable
class BatchSwapper(Protocol):
    """What a swapper offers beside ``Swapper`` if several faces of a picture cost it less together than one by one."""

    def swap_all(self, image: np.ndarray, faces: Sequence[np.ndarray], identity: Any) -> Sequence[Patch | None]:
        """``swap`` for the points of every face of ``image``, in order. All patches are valid until the next call."""
        ...

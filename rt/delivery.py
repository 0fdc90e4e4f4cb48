"""In which form those behind a lane want its picture: as pixels of the host, or as an encoder takes it where it was composed.

A picture that nobody reads on the host is not brought there. Who has been asked and reads it all the same sees black, not what was filmed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rt.frame import Place, PlanarPicture


@dataclass(frozen=True, slots=True)
class Delivery:
    """What of a picture is to be there."""

    pixels: bool = True
    """On the host, as uint8 [H, W, 3] BGR."""
    matrix: int | None = None
    """As NV12, limited range, by this matrix (601 or 709), in the lane's own memory; None where nobody takes that."""

    def __or__(self, other: Delivery) -> Delivery:
        return Delivery(self.pixels or other.pixels, self.matrix or other.matrix)


NOTHING = Delivery(pixels=False)


@runtime_checkable
class Selective(Protocol):
    """What a sink or a witness offers that does not read the pixels of every frame."""

    def wants(self, place: Place | None) -> Delivery:
        """Of the next picture, of a lane that leaves it in ``place``; None leaves pixels alone. Any thread."""
        ...


@runtime_checkable
class ReadsInPlace(Selective, Protocol):
    """A sink that takes pictures where they were composed."""

    def lie_in(self, places: frozenset[Place]) -> None:
        """Before it is opened: where lanes leave pictures."""
        ...


def wanted_by(readers: Iterable[Any], place: Place | None) -> Delivery:
    """What all of them want together of a lane that leaves pictures in ``place``."""
    wanted = NOTHING
    for reader in readers:
        wanted = wanted | (reader.wants(place) if isinstance(reader, Selective) else Delivery())
    return wanted


def can_read(reader: Any, picture: PlanarPicture | None) -> bool:
    """Whether ``reader`` takes ``picture``, whose pixels are not on the host."""
    return picture is not None and isinstance(reader, ReadsInPlace) and reader.wants(picture.place).matrix == picture.matrix

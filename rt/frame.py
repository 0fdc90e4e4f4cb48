"""Frame: one picture on its way from the camera to the sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rt.ring import Slot


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """What a source delivers or a sink is opened with."""

    width: int
    """Pixels, at least 2."""
    height: int
    """Pixels, at least 2."""
    fps: float
    """Nominal frames per second; for a variable-rate source its average."""

    def __post_init__(self) -> None:
        if self.width < 2 or self.height < 2 or not 0 < self.fps <= 1000:
            raise ValueError(f"unusable video format {self}: width and height ≥ 2, 0 < fps ≤ 1000")

    @property
    def period_ns(self) -> int:
        """The time from one picture to the next, in nanoseconds."""
        return round(1e9 / self.fps)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}@{self.fps:g}"


class FaceState(StrEnum):
    """How sure the tracker is that a face is where it says."""

    SEEN = "seen"
    """Found in this very frame."""
    HELD = "held"
    """Not found in this frame; its place is predicted from the frames before."""
    LOST = "lost"
    """Not found for longer than the hold; its last place is all that is known."""


@dataclass(slots=True)
class TrackedFace:
    """One face in one frame."""

    id: int
    """Rises with every new face; the same face keeps its id from frame to frame."""
    points: np.ndarray
    """float32 [468, 3]: FaceMesh landmarks, x and y in frame pixels, z in the same unit (nearer is smaller); smoothed.

    An array of this frame alone, never written to: parts keep by it what they found out of a face of a frame."""
    state: FaceState
    score: float
    """Probability in [0, 1] that this is a face, of the last frame in which it was seen."""
    iris: np.ndarray | None = None
    """float32 [2, 5, 2] frame pixels (right eye, left eye of the person; centre first), where the iris model ran."""
    person: int = 0
    """Whose it is (``rt.track.people``), from 1; 0 where nobody was asked."""
    perhaps: frozenset[int] = frozenset()
    """People out of sight, any of whom it may be instead."""
    treatment: str = ""
    """What was done with it (``rt.compose.lost.Treatment``), once a lane has begun with the frame."""
    seat: int = 0
    """From 0, the lowest that was free when this person came: those in sight have each their own."""


Place = tuple[int, int]
"""Whose memory it is, as DLPack numbers devices: (1, 0) is the processor's, (2, 1) that of the second NVIDIA GPU."""


@dataclass(frozen=True, slots=True)
class PlanarPicture:
    """A picture as a decoder left it, or as an encoder takes it, in the memory of the device that did so."""

    layout: str
    """``nv12`` or ``p010``."""
    planes: tuple[Any, Any]
    """Luma [H, W] and chroma [H/2, W/2, 2], uint8 or uint16; they tell where they lie by DLPack."""
    matrix: int
    """601 or 709."""
    is_full_range: bool

    @property
    def place(self) -> Place:
        kind, number = self.planes[0].__dlpack_device__()
        return int(kind), int(number)


@dataclass(slots=True)
class Frame:
    """One picture. Owned by one stage at a time until it is published; read-only from then on."""

    pixels: np.ndarray
    """uint8 [H, W, 3], BGR, full range, C-contiguous; a view of ``slot`` where there is one."""
    seq: int
    """Number given by the capture thread; only rises. A gap is a dropped frame."""
    captured_ns: int
    """When the driver (or the file's own clock) handed the picture over, on the line's monotonic clock."""
    media_ns: int = 0
    """The source's own presentation time, nanoseconds from its start."""
    marks: dict[str, int] = field(default_factory=dict)
    """Stage name → time spent in it, nanoseconds."""
    faces: tuple[TrackedFace, ...] = ()
    slot: Slot | None = None
    """What holds the pixels' memory; None for pixels that own theirs."""
    planar: PlanarPicture | None = None
    """The same picture where it was decoded, until a lane has taken it: decoders have few of them."""
    is_good: bool = False
    """The freeze policy may show it again: all faces in it were found."""
    wants_good: bool = False
    """The freeze policy is to show the last good picture for it. Its lost face is blurred until then."""
    stands_in: bool = False
    """Nobody is in it: its source gives no pictures for now (``rt.capture.reconnect``)."""
    is_here: bool = True
    """``pixels`` are what is to be shown; else they are black, since nobody had asked for them (``rt.delivery``)."""
    composed: PlanarPicture | None = None
    """What is to be shown where a lane composed it, for an encoder that reads it there."""
    repeated: bool = False
    """The picture is the one before it, shown again."""

    def age_ms(self, now_ns: int) -> float:
        """Milliseconds since capture."""
        return (now_ns - self.captured_ns) / 1e6

    @property
    def height(self) -> int:
        return self.pixels.shape[0]

    @property
    def width(self) -> int:
        return self.pixels.shape[1]

    def __repr__(self) -> str:
        return f"Frame(seq={self.seq}, {self.width}x{self.height}, captured_ns={self.captured_ns}, faces={len(self.faces)})"

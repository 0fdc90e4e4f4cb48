"""Mirrored, turned and cropped: what becomes of a source's picture before anybody else sees it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, cast

import cv2
import numpy as np

from rt.audio import AudioBus
from rt.capture.contract import Adjustable, Decodes, Grab, Source
from rt.errors import OptionError
from rt.frame import PlanarPicture, VideoFormat
from rt.options import CROP_LEAVES_MIN, CropFit

TURNS = (0, 90, 180, 270)
"""Degrees, clockwise."""

FLIPS: dict[tuple[int, bool], tuple[bool, int | None]] = {
    (0, False): (False, None),
    (0, True): (False, 1),
    (180, False): (False, -1),
    (180, True): (False, 0),
    (90, False): (True, 1),
    (90, True): (True, None),
    (270, False): (True, 0),
    (270, True): (True, -1),
}
"""Degrees and mirrored → transposed, and OpenCV's flip after it: all eight are one or two passes over the picture."""

SIDE_MIN = 16
"""Pixels: a smaller side is no picture."""


@dataclass(frozen=True, slots=True)
class Framing:
    """Turned first, then mirrored, then cropped: a crop's sides are those of the picture that is seen."""

    mirror: bool = False
    turn: int = 0
    """Degrees clockwise, one of ``TURNS``."""
    crop: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Shares of the sides that are cut away: left, top, right, bottom."""
    fit: CropFit = CropFit.FILL

    def __post_init__(self) -> None:
        """Raises ``OptionError``."""
        if self.turn not in TURNS:
            raise OptionError(f"a turn by {self.turn} was given; give one of {', '.join(map(str, TURNS))} degrees")
        left, top, right, bottom = self.crop
        if min(self.crop) < 0 or max(left + right, top + bottom) > 1 - CROP_LEAVES_MIN:
            raise OptionError(f"a crop of {self.crop} was given; each is 0 or more, and {CROP_LEAVES_MIN:.0%} of each side must be left")

    @property
    def changes_nothing(self) -> bool:
        return not (self.mirror or self.turn or any(self.crop))

    def keeps_size(self, other: Framing) -> bool:
        """Whether pictures framed by ``other`` are as large as these, whatever the source."""
        cut, cut_before = (any(framing.crop) and framing.fit is CropFit.PART for framing in (other, self))
        return self.turn % 180 == other.turn % 180 and (self.crop == other.crop if cut and cut_before else not cut and not cut_before)

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Of what a picture of ``width`` × ``height`` becomes; a part has even sides, which encoders ask for."""
        whole = self._turned_size(width, height)
        if self.fit is CropFit.FILL or not any(self.crop):
            return whole
        left, top, right, bottom = self.box(width, height)
        return right - left, bottom - top

    def box(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of what is left, in pixels of the turned picture."""
        wide, high = self._turned_size(width, height)
        if not any(self.crop):
            return 0, 0, wide, high
        left, top, right, bottom = self.crop
        x, y = round(left * wide), round(top * high)
        across, down = max(2, wide - round(right * wide) - x), max(2, high - round(bottom * high) - y)
        if self.fit is CropFit.PART:
            across, down = _even(across, wide - x), _even(down, high - y)
        else:
            scale = min(across / wide, down / high)
            kept_across, kept_down = max(2, round(wide * scale)), max(2, round(high * scale))
            x, y = x + (across - kept_across) // 2, y + (down - kept_down) // 2
            across, down = kept_across, kept_down
        x, y = max(0, min(x, wide - across)), max(0, min(y, high - down))
        return x, y, x + across, y + down

    def apply(self, picture: np.ndarray, into: np.ndarray) -> None:
        """``picture`` uint8 [H, W, 3], only read; ``into`` uint8 of the size that ``size`` says."""
        left, top, right, bottom = self.box(picture.shape[1], picture.shape[0])
        whole = (right - left, bottom - top) == self._turned_size(picture.shape[1], picture.shape[0])
        transposed, flip = FLIPS[self.turn, self.mirror]
        turned = cv2.transpose(picture) if transposed else picture
        if flip is not None:
            turned = cv2.flip(turned, flip, dst=into if whole else None)
        part = turned[top:bottom, left:right]
        if part.shape != into.shape:
            cv2.resize(part, into.shape[1::-1], dst=into, interpolation=cv2.INTER_LINEAR)
        elif turned is not into:
            np.copyto(into, part)

    def __str__(self) -> str:
        """Empty where nothing is changed."""
        turned = [f"turned by {self.turn}°"] if self.turn else []
        mirrored = ["mirrored"] if self.mirror else []
        cropped = [f"cropped by {', '.join(f'{share:.0%}' for share in self.crop)}"] if any(self.crop) else []
        return "; ".join(turned + mirrored + cropped)

    def _turned_size(self, width: int, height: int) -> tuple[int, int]:
        return (width, height) if self.turn % 180 == 0 else (height, width)


class FramedSource:
    """Any source, framed. ``reframe`` and ``expose`` may be called while it runs."""

    def __init__(self, source: Source, framing: Framing) -> None:
        self._source = source
        self.live = source.live
        self._framing = framing  # replaced as a whole, by any thread
        self._given = np.empty((0, 0, 3), np.uint8)  # capture thread

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        """Raises ``SourceError``; ``OptionError`` where a crop leaves too little."""
        video = self._source.open(stop, audio)
        width, height = self._framing.size(video.width, video.height)
        if min(width, height) < min(SIDE_MIN, video.width, video.height):
            raise OptionError(f"the crop leaves {width}x{height} of {video.width}x{video.height} pixels; leave {SIDE_MIN} of each side")
        self._given = np.empty((video.height, video.width, 3), np.uint8)
        return VideoFormat(width, height, video.fps)

    def grab(self) -> Grab | None:
        return self._source.grab()

    def retrieve(self, into: np.ndarray) -> None:
        framing = self._framing
        if framing.changes_nothing:
            self._source.retrieve(into)
        else:
            self._source.retrieve(self._given)
            framing.apply(self._given, into)

    def planar(self) -> PlanarPicture | None:
        """As ``rt.capture.contract.Decodes``; a picture that is framed is not what was decoded."""
        whole = self._framing.changes_nothing and isinstance(self._source, Decodes)
        return cast(Decodes, self._source).planar() if whole else None

    def close(self) -> None:
        self._source.close()

    def describe(self) -> dict[str, Any]:
        facts = self._source.describe()
        framed = str(self._framing)
        return {**facts, "framing": framed} if framed else facts

    def reframe(self, framing: Framing) -> None:
        """From the next picture on. It must keep the size, see ``Framing.keeps_size``. Any thread."""
        self._framing = framing

    def expose(self, exposure_ms: float | None) -> None:
        """As ``rt.capture.contract.Adjustable``; a source that has no shutter does nothing. Any thread."""
        if isinstance(self._source, Adjustable):
            self._source.expose(exposure_ms)


def _even(side: int, room: int) -> int:
    """The nearest even number of pixels that ``room`` has."""
    return side if side % 2 == 0 else side + 1 if side < room else side - 1

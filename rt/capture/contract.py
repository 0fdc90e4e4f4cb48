"""The contract of every source of pictures. A source is one file that registers itself in ``rt.capture.sources``."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rt.audio import AudioBus
from rt.frame import PlanarPicture, VideoFormat


@dataclass(frozen=True, slots=True)
class Grab:
    """A picture that is there to be fetched."""

    captured_ns: int
    """When it was handed over, on the line's clock (the driver's own stamp where it gives one)."""
    media_ns: int
    """The source's own presentation time from its start."""
    stands_in: bool = False
    """It is in the place of a picture that did not come (``rt.capture.reconnect``): there is nobody in it."""


class Source(Protocol):
    """A camera, a file, a drawing. Every method but ``describe`` is called on the capture thread."""

    live: bool
    """True where pictures pass whether or not they are fetched; False where reading waits (a file in an offline job)."""

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        """Makes the source ready and says what was granted. Sound, where there is any, is published to ``audio``.

        ``stop``: set when the line is to end; every wait inside the source must end with it. Raises ``SourceError``. After
        ``SourceLostError`` and ``close`` it may be called again, and finds the same device.
        """
        ...

    def grab(self) -> Grab | None:
        """Blocks until the next picture is there. None at the end or after ``stop``. Raises ``SourceError``; ``SourceLostError`` where it
        may come back."""
        ...

    def retrieve(self, into: np.ndarray) -> None:
        """Writes the picture of the last ``grab`` into ``into``: uint8 [H, W, 3] BGR full range, of the opened size.

        Not called for a picture that the line has no room for.
        """
        ...

    def close(self) -> None:
        """Releases the device. May be called twice, and after a failed ``open``."""
        ...

    def describe(self) -> dict[str, Any]:
        """JSON-ready: what was asked for, what was granted, backend (any thread)."""
        ...


@runtime_checkable
class Decodes(Protocol):
    """What a source offers beside ``Source`` if its pictures lie on a device before they lie here."""

    def planar(self) -> PlanarPicture | None:
        """The picture of the last ``retrieve`` where it was decoded; None where it is not there, or was turned. Capture thread."""
        ...


@runtime_checkable
class Adjustable(Protocol):
    """What a source offers beside ``Source`` if it has a shutter."""

    def expose(self, exposure_ms: float | None) -> None:
        """From soon on, also before ``open``. None leaves it as it is, 0 is the camera's own choice, else how long a picture is exposed.

        What the camera does not offer is told by ``describe`` and is no error: pictures are worth more. Any thread.
        """
        ...

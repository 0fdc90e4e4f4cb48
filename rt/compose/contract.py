"""What puts a look onto the picture of a frame, where that picture lies on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from engines.device.contract import Stream
from engines.registry import Registry
from rt.frame import Frame, Place, PlanarPicture
from rt.options import Look


class Compositor(Protocol):
    """Of one device. One thread, that which gives its streams their work."""

    def refusal(self, look: Look) -> str:
        """Why ``look`` cannot be composed here, as a sentence; empty where it can."""
        ...

    def compose(self, stream: Stream, frame: Frame, image: Any, look: Look) -> None:
        """Asynchronous: gives ``stream`` all that is to be done to ``image``, the device's copy of ``frame.pixels``.

        ``frame.faces`` are known, and told their ``treatment`` here; ``frame.pixels`` are as they were filmed: faces, light and masks are
        looked at there, before this returns. Both must stay as they are until the work is done, and so must this object: it is called
        again only then. Raises ``DeviceError`` for a look that is refused, and what swapper, enhancer and masks raise.
        """
        ...

    def unpack(self, stream: Stream, picture: PlanarPicture, image: Any) -> bool:
        """Asynchronous: gives ``stream`` the work of writing ``picture`` into ``image`` (uint8 [H, W, 3] BGR). False, and nothing is given,
        where it does not lie on this device, or is of another size."""
        ...

    @property
    def place(self) -> Place:
        """Where its pictures lie."""
        ...

    def pack(self, stream: Stream, image: Any, matrix: int) -> PlanarPicture:
        """Asynchronous: gives ``stream`` the work of writing ``image`` into an NV12 picture of limited range, which is whole with an event
        after it, and whose memory is used again once nobody holds its planes. An odd last column or row is left out."""
        ...

    def clear(self) -> None:
        """Frees all that is kept on the device, and what was recorded. Nothing may be under way; a frame may follow, also where the device
        raises at that."""
        ...


compositors: Registry[Callable[[], Compositor]] = Registry("compositor", "rt.compose.device")
"""By the kind of device, the part of its name before the colon. Made once for a device, with that being current; compiles: seconds.

A device without an entry has its pictures composed by the processor (``rt.compose.lay``).
"""

"""The contract of every sink. A sink is one file; ``app/build.py`` knows which name stands for which."""

from __future__ import annotations

from typing import Any, Protocol

from rt.frame import Frame, VideoFormat


class Sink(Protocol):
    """An output. Every method is called on the sink's own thread, in this order: open, write…, close (open again after a retry)."""

    name: str
    """Unique on a line: ``rtmp``, ``record``, ``virtual-camera``, ``null``."""
    lossless: bool
    """True for a sink that must see every frame: the line pushes back instead of dropping."""

    def open(self, video: VideoFormat) -> None:
        """Makes the output ready. Raises ``SinkError``, or ``SinkRetryError`` where a later try may work."""
        ...

    def write(self, frame: Frame) -> None:
        """Takes one frame, whose pixels are read-only and valid only during the call. May block: only this sink waits.

        Raises ``SinkError`` or ``SinkRetryError``.
        """
        ...

    def deadline_ns(self) -> int | None:
        """When ``idle`` wants to be called if no frame comes before; None for never."""
        ...

    def idle(self, now_ns: int) -> None:
        """Called when ``deadline_ns`` passed without a frame: a constant-rate output repeats its last picture here."""
        ...

    def close(self) -> None:
        """Flushes and closes so that nothing written is lost. Called once per open, also after an error.

        Must not raise for an output that broke.
        """
        ...

    def statistics(self) -> dict[str, Any]:
        """JSON-ready facts for the report (any thread)."""
        ...

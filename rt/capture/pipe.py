"""Pictures from standard input: MPEG-TS (or any container that can be read without seeking), or raw frames."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from rt.audio import AudioBus
from rt.capture import sources
from rt.capture.contract import Grab, Source
from rt.capture.media import MediaSource
from rt.capture.request import CaptureRequest, parse_options
from rt.clock import Clock
from rt.errors import OptionError, SourceError
from rt.frame import VideoFormat

ACCEPTED = {"size": "WIDTHxHEIGHT", "fps": "NUMBER"}


def recognises(spec: str) -> bool:
    return spec in ("-", "pipe", "raw") or spec.startswith(("pipe:", "raw:"))


@sources.register("pipe")
def open_pipe(spec: str, request: CaptureRequest, clock: Clock) -> Source:
    """``-`` or ``pipe:`` is a container on standard input; ``raw:size=1280x720,fps=30`` is BGR frames of that size."""
    if spec.startswith("raw"):
        return RawSource(spec, clock)
    return MediaSource("standard input", request, clock, file=sys.stdin.buffer)


class RawSource:
    """Frame after frame of uint8 [H, W, 3] BGR, stamped when its last byte has come."""

    live = True

    def __init__(self, spec: str, clock: Clock) -> None:
        options = parse_options(spec, ACCEPTED)
        try:
            width, height = map(int, options["size"].lower().split("x"))
            self._video = VideoFormat(width, height, float(options.get("fps", 30)))
        except (KeyError, ValueError):
            raise OptionError(f"input {spec!r} was given; write raw:size=WIDTHxHEIGHT,fps=NUMBER") from None
        self._spec = spec
        self._clock = clock
        self._stop = threading.Event()
        self._buffer = np.empty((height, width, 3), np.uint8)
        self._first_ns: int | None = None

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._stop = stop
        return self._video

    def grab(self) -> Grab | None:
        wanted = memoryview(self._buffer).cast("B")
        filled = 0
        while filled < len(wanted) and not self._stop.is_set():
            got = sys.stdin.buffer.readinto1(wanted[filled:])  # type: ignore[attr-defined]
            if not got:
                break
            filled += got
        if filled == 0 or self._stop.is_set():
            return None
        if filled < len(wanted):
            raise SourceError(f"standard input ended in the middle of a frame ({filled} of {len(wanted)} bytes); check size={self._video.width}x{self._video.height}")
        now_ns = self._clock.now_ns()
        self._first_ns = now_ns if self._first_ns is None else self._first_ns
        return Grab(now_ns, now_ns - self._first_ns)

    def retrieve(self, into: np.ndarray) -> None:
        np.copyto(into, self._buffer)

    def close(self) -> None:
        self._first_ns = None

    def describe(self) -> dict[str, Any]:
        return {"spec": self._spec, "granted": f"raw {self._video}"}

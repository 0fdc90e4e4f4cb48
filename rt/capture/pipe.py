"""Pictures from standard input: MPEG-TS (or any container that can be read without seeking), or raw frames."""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import Any

import cv2
import numpy as np

from rt.audio import AudioBus
from rt.capture import SourceKind, sources
from rt.capture.contract import Grab, Source
from rt.capture.media import MediaSource
from rt.capture.request import CaptureRequest, parse_options
from rt.clock import Clock
from rt.errors import OptionError, SourceError
from rt.frame import VideoFormat

FORMATS = {"bgr24": None, "rgb24": cv2.COLOR_RGB2BGR}
"""Order of the bytes of a raw pixel → what makes BGR of it."""

ACCEPTED = {"size": "WIDTHxHEIGHT", "fps": "NUMBER", "format": "|".join(FORMATS)}

WAKE_S = 0.1
"""How often a read that waits looks whether the line is to end."""

CAN_SELECT = sys.platform != "win32"
"""Windows can select sockets alone: there a stop waits for the next bytes."""


def recognises(spec: str) -> bool:
    return spec in ("-", "pipe") or spec.startswith("pipe:")


def open_pipe(spec: str, request: CaptureRequest, clock: Clock) -> Source:
    """``-`` or ``pipe:`` is a container on standard input; ``pipe:raw,size=1280x720,fps=30,format=bgr24`` is frames of that size."""
    kind, _, options = spec.removeprefix("pipe:").partition(",")
    if kind == "raw":
        return RawSource(spec, options, clock)
    if spec not in ("-", "pipe", "pipe:"):
        raise OptionError(f"input {spec!r} was given; write - for a container on standard input, or {_usage()} for raw frames")
    return MediaSource("standard input", request, clock, reader=StandardInput)


class StandardInput:
    """Reads of the process's standard input that end when ``stop`` is set."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._handle = sys.stdin.fileno()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, as soon as some are there; none at the end or after ``stop``."""
        while CAN_SELECT and not self._stop.is_set() and not select.select([self._handle], [], [], WAKE_S)[0]:
            pass
        return b"" if self._stop.is_set() else os.read(self._handle, size)


class RawSource:
    """Frame after frame of uint8 [H, W, 3], stamped when its last byte has come."""

    live = True

    def __init__(self, spec: str, options: str, clock: Clock) -> None:
        given = parse_options(f"pipe:{options}", ACCEPTED)
        try:
            width, height = map(int, given["size"].lower().split("x"))
            self._video = VideoFormat(width, height, float(given.get("fps", 30)))
            self._to_bgr = FORMATS[given.get("format", "bgr24")]
        except (KeyError, ValueError):
            raise OptionError(f"input {spec!r} was given; write {_usage()}") from None
        self._spec = spec
        self._clock = clock
        self._stop = threading.Event()
        self._input: StandardInput | None = None
        self._buffer = np.empty((height, width, 3), np.uint8)
        self._first_ns: int | None = None

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._stop = stop
        self._input = StandardInput(stop)
        return self._video

    def grab(self) -> Grab | None:
        filled = self._fill()
        if filled == 0 or self._stop.is_set():
            return None
        if filled < self._buffer.nbytes:
            size = f"{self._video.width}x{self._video.height}"
            raise SourceError(f"standard input ended in the middle of a frame ({filled} of {self._buffer.nbytes} bytes); check size={size}")
        now_ns = self._clock.now_ns()
        self._first_ns = now_ns if self._first_ns is None else self._first_ns
        return Grab(now_ns, now_ns - self._first_ns)

    def retrieve(self, into: np.ndarray) -> None:
        if self._to_bgr is None:
            np.copyto(into, self._buffer)
        else:
            cv2.cvtColor(self._buffer, self._to_bgr, dst=into)

    def close(self) -> None:
        self._input = None

    def describe(self) -> dict[str, Any]:
        return {"spec": self._spec, "granted": f"raw {self._video}"}

    def _fill(self) -> int:
        """Bytes of the next frame that came before the end."""
        assert self._input is not None
        wanted = self._buffer.data.cast("B")
        filled = 0
        while filled < len(wanted) and (got := self._input.read(len(wanted) - filled)):
            wanted[filled : filled + len(got)] = got
            filled += len(got)
        return filled


def _usage() -> str:
    return "pipe:raw," + ",".join(f"{name}={value}" for name, value in ACCEPTED.items())


sources.register("pipe")(SourceKind(recognises, open_pipe))

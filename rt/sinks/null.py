"""The sink that measures: it reads the time code in the pixels, so the age is proven by what a viewer would get."""

from __future__ import annotations

import threading
from typing import Any

from rt import timecode
from rt.clock import Clock
from rt.frame import Frame, VideoFormat
from rt.metrics import Samples


class NullSink:
    """Takes every frame and keeps none."""

    name = "null"
    lossless = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ages_ms = Samples()  # guarded by _lock, as is all below
        self._read = 0
        self._unread = 0
        self._out_of_order = 0
        self._last_seq = -1

    def open(self, video: VideoFormat) -> None:
        """Nothing to open."""

    def write(self, frame: Frame) -> None:
        value = timecode.read(frame.pixels)
        now_us = self._clock.now_ns() // 1000
        with self._lock:
            self._out_of_order += frame.seq <= self._last_seq
            self._last_seq = frame.seq
            if value is None:
                self._unread += 1
            else:
                self._read += 1
                self._ages_ms.add(timecode.age_us(now_us, value) / 1000)

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called."""

    def close(self) -> None:
        """Nothing to close."""

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            return {
                "timecodes": self._read,
                "without_timecode": self._unread,
                "out_of_order": self._out_of_order,
                "pixel_age_ms": self._ages_ms.summary(50, 95, 99),
            }

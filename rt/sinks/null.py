"""``null``: sends nothing and measures. The age it reports is read from the pixels, where a time code is burnt in."""

from __future__ import annotations

from typing import Any

import numpy as np

from rt import timecode
from rt.clock import Clock
from rt.frame import Frame, VideoFormat
from rt.sinks import sinks

KEPT_AGES = 100_000
"""The ages that percentiles are taken over: the first hour at 30 fps; memory stays bounded."""


@sinks.register("null")
class NullSink:
    """Counts frames, checks their order, and reads their time code."""

    name = "null"
    lossless = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._frames = 0
        self._out_of_order = 0
        self._last_seq = -1
        self._ages_ms = np.zeros(KEPT_AGES)
        self._aged = 0

    def open(self, video: VideoFormat) -> None:
        pass

    def write(self, frame: Frame) -> None:
        self._frames += 1
        self._out_of_order += frame.seq <= self._last_seq
        self._last_seq = max(frame.seq, self._last_seq)
        burnt_us = timecode.read(frame.pixels)
        if burnt_us is not None:
            self._note_age(timecode.age_us(self._clock.now_ns() // 1000, burnt_us) / 1e3)

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Nothing to keep alive."""

    def close(self) -> None:
        """Nothing is held."""

    def statistics(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "frames": self._frames,
            "timecode_frames": self._aged,
            "out_of_order": self._out_of_order,
        }
        if self._aged:
            facts["pixel_age_ms"] = self._percentiles()
        return facts

    def _note_age(self, age_ms: float) -> None:
        if self._aged < KEPT_AGES:
            self._ages_ms[self._aged] = age_ms
        self._aged += 1

    def _percentiles(self) -> dict[str, float]:
        ages_ms = self._ages_ms[: min(self._aged, KEPT_AGES)]
        values = np.percentile(ages_ms, [50, 95, 99, 100])
        return dict(zip(("p50", "p95", "p99", "max"), (round(float(value), 2) for value in values), strict=True))

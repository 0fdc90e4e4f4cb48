"""The measuring sink reads the age from the pixels."""

from __future__ import annotations

import numpy as np
import pytest

from rt import timecode
from rt.clock import ManualClock
from rt.frame import Frame, VideoFormat
from rt.sinks.null import NullSink


def test_age_is_read_from_the_pixels_and_disorder_is_counted() -> None:
    clock = ManualClock(10**12)
    sink = NullSink(clock)
    sink.open(VideoFormat(320, 240, 30))
    pixels = np.full((240, 320, 3), 60, np.uint8)
    timecode.burn(pixels, clock.now_ns() // 1000)
    clock.advance(25_000_000)
    for seq in (0, 2, 1):
        sink.write(Frame(pixels, seq, captured_ns=0))
    sink.close()
    facts = sink.statistics()
    assert facts["out_of_order"] == 1
    assert facts["pixel_age_ms"]["p50"] == pytest.approx(25.0, abs=0.01)


def test_pictures_without_a_time_code_have_no_age() -> None:
    sink = NullSink(ManualClock())
    sink.write(Frame(np.zeros((240, 320, 3), np.uint8), 0, 0))
    assert sink.statistics()["out_of_order"] == 0

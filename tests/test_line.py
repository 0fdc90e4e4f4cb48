"""The line joined from its real parts: order, drops, sinks that stall or break, the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from engines.detect import detectors
from engines.device.host import HostDevice
from engines.landmarks.facemesh import FaceMesh
from rt.audio import AudioBus
from rt.capture import CaptureRequest, open_spec
from rt.clock import MonotonicClock
from rt.errors import SinkError, SinkRetryError, SourceError
from rt.frame import Frame, VideoFormat
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look
from rt.sinks.null import NullSink
from rt.sinks.runner import SinkState
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker
from rt.tracking import Tracking

CAMERA = "synthetic:size=320x180,fps=60,frames={}"


class GatedSink:
    """Takes a frame only while its gate is open; fails as often as it is told, at open or at write."""

    def __init__(
        self,
        name: str = "gated",
        *,
        lossless: bool = False,
        open_failures: tuple[SinkError, ...] = (),
        write_failures: tuple[SinkError, ...] = (),
    ) -> None:
        self.name = name
        self.lossless = lossless
        self.gate = threading.Event()
        self.gate.set()
        self.seqs: list[int] = []
        self.threads: set[str] = set()
        self.closed = 0
        self._open_failures = list(open_failures)
        self._write_failures = list(write_failures)

    def open(self, video: VideoFormat) -> None:
        self.threads.add(threading.current_thread().name)
        if self._open_failures:
            raise self._open_failures.pop(0)

    def write(self, frame: Frame) -> None:
        self.threads.add(threading.current_thread().name)
        self.gate.wait()
        if self._write_failures:
            raise self._write_failures.pop(0)
        self.seqs.append(frame.seq)

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        raise AssertionError("a sink without a deadline was called idle")

    def close(self) -> None:
        self.threads.add(threading.current_thread().name)
        self.closed += 1

    def statistics(self) -> dict[str, Any]:
        return {}


@contextmanager
def running(spec: str, *sinks: Any, slow_ms: dict[str, float] | None = None) -> Iterator[tuple[Line, Metrics]]:
    clock, metrics = MonotonicClock(), Metrics()
    tracker = Tracker(detectors["blazeface-short"](), FaceMesh(), TrackOptions())
    tracking, lane = Tracking(tracker, metrics, clock), Lane(HostDevice(), clock, slow_ms=slow_ms)
    source = open_spec(spec, CaptureRequest(), clock)
    line = Line(source, tracking, [lane], sinks, [Look()], clock, metrics, AudioBus(), burn_timecode=True)
    line.start()
    try:
        yield line, metrics
    finally:
        line.stop()
        line.wait()
        line.join()


def test_every_frame_is_delivered_or_counted_and_sequence_numbers_only_rise() -> None:
    sink = GatedSink()
    with running(CAMERA.format(40), sink, NullSink(MonotonicClock())) as (line, metrics):
        assert line.wait(30)
    seen = metrics.snapshot()
    assert seen.frames_in == seen.frames_out + seen.dropped.get("infer", 0) + seen.dropped.get("capture", 0)
    assert len(sink.seqs) == seen.frames_out - seen.dropped.get("sink:gated", 0)
    assert sink.seqs == sorted(set(sink.seqs))
    assert sink.seqs[-1] + 1 == seen.frames_in - seen.dropped.get("capture", 0)  # no gap but for drops
    assert line.error is None


def test_the_time_code_reaches_the_sink_in_the_pixels() -> None:
    sink = NullSink(MonotonicClock())
    with running(CAMERA.format(10), sink) as (line, _):
        assert line.wait(30)
    facts = sink.statistics()
    assert facts["timecodes"] > 0
    assert facts["without_timecode"] == 0
    assert facts["out_of_order"] == 0


def test_a_stalled_sink_does_not_hold_another() -> None:
    stalled, free = GatedSink("stalled"), GatedSink("free")
    stalled.gate.clear()
    with running(CAMERA.format(40), stalled, free) as (line, metrics):
        assert line.wait(30)
        stalled.gate.set()
    dropped = metrics.snapshot().dropped
    assert dropped["sink:stalled"] >= metrics.snapshot().frames_out - 2
    assert len(free.seqs) >= metrics.snapshot().frames_out - dropped.get("sink:free", 0)


def test_every_call_of_a_sink_comes_from_its_own_thread() -> None:
    sink = GatedSink()
    with running(CAMERA.format(5), sink) as (line, _):
        assert line.wait(30)
    assert sink.threads == {"sink-gated"}
    assert sink.closed == 1


def test_a_slow_stage_drops_at_its_door_and_nothing_is_late_in_order() -> None:
    sink = NullSink(MonotonicClock())
    with running(CAMERA.format(30), sink, slow_ms={"swap": 60.0}) as (line, metrics):
        assert line.wait(30)
    assert metrics.snapshot().dropped["infer"] > 0
    assert sink.statistics()["out_of_order"] == 0


def test_a_lossless_sink_gets_everything_that_was_worked_on() -> None:
    keeper = GatedSink("keeper", lossless=True)
    with running(CAMERA.format(40), keeper) as (line, metrics):
        assert line.wait(30)
    assert len(keeper.seqs) == metrics.snapshot().frames_out
    assert "sink:keeper" not in metrics.snapshot().dropped


def test_a_broken_sink_leaves_and_the_rest_goes_on() -> None:
    broken = GatedSink("broken", write_failures=(SinkError("the disk is full"),))
    well = GatedSink("well")
    with running(CAMERA.format(20), broken, well) as (line, _):
        assert line.wait(30)
    states = {runner.sink.name: runner.state for runner in line.runners}
    assert states == {"broken": SinkState.FAILED, "well": SinkState.CLOSED}
    assert len(well.seqs) > 5
    assert broken.closed == 1
    assert line.error is None


def test_when_no_sink_is_left_the_line_ends_and_says_why() -> None:
    with running("synthetic:size=320x180", GatedSink(open_failures=(SinkError("no such device"),))) as (line, _):
        assert line.wait(30)
    assert str(line.error) == "no such device"


def test_a_connection_that_breaks_is_made_again() -> None:
    sink = GatedSink(write_failures=(SinkRetryError("the server went away"),))
    with running("synthetic:size=320x180,fps=30,frames=60", sink) as (line, metrics):
        assert line.wait(30)
    facts = line.runners[0].statistics()
    assert facts["reconnects"] == 1
    assert sink.closed == 2
    assert len(sink.seqs) > 5
    seen = metrics.snapshot()
    assert len(sink.seqs) + seen.dropped["sink:gated"] == seen.frames_out  # the one that broke and those of the pause are counted


def test_an_input_that_cannot_be_opened_is_an_error_of_start(tmp_path: Any) -> None:
    missing = tmp_path / "no.mp4"
    with pytest.raises(SourceError, match="does not exist"), running(str(missing), GatedSink()):
        pass


def test_stop_ends_an_endless_camera_and_gives_every_slot_back() -> None:
    sink = GatedSink()
    with running("synthetic:size=320x180,fps=60", sink) as (line, metrics):
        while metrics.snapshot().frames_out < 5:
            assert not line.wait(0.01)
        line.stop()
        assert line.wait(30)
    assert line.error is None
    assert line._ring is not None
    assert line._ring.free == len(line._ring)


def test_an_unexpected_exception_in_a_sink_is_an_error_of_that_sink() -> None:
    class Surprising(GatedSink):
        def write(self, frame: Frame) -> None:
            raise ZeroDivisionError("surprise")

    well = GatedSink("well")
    with running(CAMERA.format(10), Surprising("odd"), well) as (line, _):
        assert line.wait(30)
    facts = line.runners[0].statistics()
    assert facts["state"] == "failed"
    assert "ZeroDivisionError" in facts["error"]
    assert len(well.seqs) > 0


def test_pixels_are_the_frame_s_own_while_a_sink_reads_them() -> None:
    """A slot is not filled again while a slow reader still holds it."""
    changed: list[bool] = []

    class Reader(GatedSink):
        def write(self, frame: Frame) -> None:
            first = frame.pixels.copy()
            super().write(frame)
            changed.append(not np.array_equal(first, frame.pixels))

    reader = Reader("reader")
    with running(CAMERA.format(40), reader) as (line, _):
        assert line.wait(30)
    assert changed
    assert not any(changed)


def test_a_sink_comes_and_goes_while_the_line_runs() -> None:
    """…and what stays gets every frame; a sink that waits to be tried again is let go at once."""
    stays, lossless, retries = GatedSink("stays"), GatedSink("comes", lossless=True), GatedSink("retries")
    retries._open_failures = [SinkRetryError("not yet")] * 9
    with running("synthetic:size=320x180,fps=60", stays) as (line, metrics):
        for sink in (lossless, retries):
            line.add(sink)
        while len(lossless.seqs) < 20:
            assert not line.wait(0.01)
        runners = [line.remove(sink) for sink in (lossless, retries)]
        assert all(runner is not None and runner.join(10) for runner in runners)
        assert lossless.closed == 1
        assert line.remove(lossless) is None
        seen = len(stays.seqs)
        while len(stays.seqs) < seen + 10:
            assert not line.wait(0.01)
        line.stop()
        assert line.wait(30)
        with pytest.raises(SinkError, match="not running"):
            line.add(GatedSink("late"))
    dropped = metrics.snapshot().dropped
    assert "sink:comes" not in dropped
    assert lossless.seqs == list(range(lossless.seqs[0], lossless.seqs[-1] + 1)) or "infer" in dropped or "capture" in dropped
    assert line.error is None

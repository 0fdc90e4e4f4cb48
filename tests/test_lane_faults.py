"""Faults that come together: in making a graph and in its end, in a retry and in the close before it, on two lanes at once, beside one that
hangs. The line goes on with what is left, or ends with its cause; every frame is shown or counted, and nothing is left over."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from small_line import Grey, Keeping, Painting, Scripted
from test_lanes import until

from engines.device.simulated import SimulatedDevice, SimulatedEvent, SimulatedGraph, SimulatedStream
from engines.device.threaded import ThreadedStream
from engines.errors import DeviceError
from rt import lanes
from rt.audio import AudioBus
from rt.clock import MonotonicClock
from rt.compose.device import DeviceCompositor
from rt.compose.kernels.idle import IdleKernels
from rt.errors import LaneError
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look
from rt.sinks.contract import Sink
from rt.tracking import Tracking

FRAMES = 150


class Faults:
    """Says which calls fail: the name of a call and its number, counted from 0, or ``all`` from a number on."""

    def __init__(self, *planned: tuple[str, int] | tuple[str, int, str]) -> None:
        self._planned = planned
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.met: list[str] = []

    def may(self, name: str) -> None:
        """Raises where it is this call's turn."""
        with self._lock:
            number = self.calls[name]
            self.calls[name] += 1
            fails = any(one[0] == name and (number == one[1] or (len(one) > 2 and number >= one[1])) for one in self._planned)
            if fails:
                self.met.append(name)
        if fails:
            raise DeviceError(f"{name} number {number} failed as it was asked to")


class FaultyGraph(SimulatedGraph):
    def __init__(self, work: Callable[[], None], faults: Faults) -> None:
        super().__init__(work)
        self._faults = faults

    def close(self) -> None:
        self._faults.may("graph.close")


class FaultyStream(SimulatedStream):
    def __init__(self, faults: Faults, work_ms: float) -> None:
        super().__init__(round(work_ms * 1e6), MonotonicClock().now_ns)
        self._faults = faults

    def call(self, work: Callable[..., Any], *args: Any) -> None:
        self._faults.may("call")
        super().call(work, *args)

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        self._faults.may("upload")
        super().upload(pixels, image)

    def download(self, image: Any, pixels: np.ndarray) -> None:
        self._faults.may("download")
        super().download(image, pixels)

    def record(self) -> SimulatedEvent:
        self._faults.may("record")
        return super().record()

    def capture(self, work: Callable[[], None]) -> SimulatedGraph:
        self._faults.may("capture")
        return FaultyGraph(work, self._faults)

    def launch(self, graph: SimulatedGraph) -> None:
        if isinstance(graph, FaultyGraph):
            self._faults.may("launch")
        super().launch(graph)

    def sync(self) -> None:
        self._faults.may("sync")
        super().sync()

    def close(self) -> None:
        super().close()
        self._faults.may("close")


class FaultyDevice(SimulatedDevice):
    def __init__(self, name: str, faults: Faults, work_ms: float) -> None:
        """``work_ms``: what each piece of work on pictures takes."""
        super().__init__({}, name)
        self._faults = faults
        self._work_ms = work_ms

    def stream(self, name: str) -> ThreadedStream:
        self._faults.may("stream")
        return ThreadedStream(name, FaultyStream(self._faults, self._work_ms if name == "compute" else 0))

    def mirror(self, pixels: np.ndarray) -> np.ndarray:
        self._faults.may("mirror")
        return super().mirror(pixels)


class FaultyKernels(IdleKernels):
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        self._faults.may("empty")
        return super().empty(shape, dtype)

    def put(self, values: np.ndarray, array: Any) -> None:
        self._faults.may("put")
        super().put(values, array)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a retry here."""
    monkeypatch.setattr(lanes, "BACK_OFF_S", (0,))


@contextmanager
def running(
    faults: Sequence[Faults], *, frames: int | None = FRAMES, sinks: Sequence[Sink] | None = None, act: Any = None
) -> Iterator[tuple[Line, Metrics, Keeping]]:
    """A lane for each of ``faults``; a camera (no ``frames``) has work for all of them. ``act``: of the first lane's swapper."""
    work_ms = 0.0 if frames else 2.5 * len(faults)
    clock, metrics, sink = MonotonicClock(), Metrics(), Keeping()
    made = [
        Lane(FaultyDevice(str(number), each, work_ms), clock, compositor=DeviceCompositor(FaultyKernels(each)))
        for number, each in enumerate(faults)
    ]
    looks = [look(act if not number else None) for number in range(len(made))]
    tracking = Tracking(Scripted(), metrics, clock)
    line = Line(Grey(frames, clock), tracking, made, [sink, *(sinks or [])], looks, clock, metrics, AudioBus())
    line.start()
    try:
        yield line, metrics, sink
    finally:
        line.stop()
        assert line.wait(60)
        line.join()
    seen = metrics.snapshot()
    assert sink.seqs == sorted(set(sink.seqs))
    if line.error is None:
        assert seen.frames_in == seen.frames_out + sum(seen.dropped.values()), "every frame is shown or counted"
    assert line._ring is not None
    assert line._ring.free == len(line._ring)


def look(act: Any = None) -> Look:
    return Look(Painting(act) if act else Painting(), "white")


GRAPHS = [
    [("capture", 0)],
    [("capture", 1), ("capture", 2), ("capture", 5)],
    [("capture", 0, "all")],
    [("launch", 0)],
    [("launch", 3), ("graph.close", 0)],
    [("launch", 0), ("graph.close", 0, "all")],
    [("launch", 0), ("capture", 3), ("graph.close", 1)],
    [("capture", 0), ("launch", 0), ("put", 2)],
]

RETRIES = [
    [("upload", 4), ("stream", 3)],
    [("upload", 4), ("stream", 4), ("stream", 6)],
    [("upload", 4), ("stream", 3), ("stream", 4), ("stream", 5), ("close", 0)],
    [("download", 3), ("close", 0), ("close", 1), ("close", 2)],
    [("download", 3), ("sync", 0), ("close", 2), ("graph.close", 0, "all")],
    [("record", 9), ("sync", 1), ("stream", 3)],
    [("call", 12), ("record", 40), ("empty", 3)],
    [("mirror", 1), ("empty", 8), ("stream", 5)],
    [("upload", 2), ("upload", 3), ("upload", 4), ("upload", 5)],
    [("record", 8, "all")],
]


@pytest.mark.parametrize("planned", [GRAPHS[2], GRAPHS[5], RETRIES[3], RETRIES[-1]], ids=str)
def test_the_other_lane_goes_on(planned: list[Any]) -> None:
    faults = Faults(*planned)
    with running([faults, Faults()]) as (line, _, sink):
        assert line.wait(60)
    assert line.error is None or "as it was asked to" in str(line.error), "at its very end a lane may fail to close, which is told"
    assert faults.met, "the plan fits the line"
    assert len(sink.seqs) >= FRAMES - 2 * len(faults.met)
    assert line.lanes.facts()["1"]["failures"] == 0


@pytest.mark.parametrize("planned", [*GRAPHS, *RETRIES[:-1]], ids=str)
def test_a_lane_that_failed_works_again(planned: list[Any]) -> None:
    """Beside one that never fails, so that it is tried again; for ever, until it is back."""
    faults = Faults(*planned)
    with running([faults, Faults()], frames=None) as (line, _, _):
        until(line, lambda: bool(faults.met) or line.lanes.facts()["0"]["frames"] > 60)
        done = line.lanes.facts()["0"]["frames"]
        until(line, lambda: line.lanes.facts()["0"]["frames"] > done + 20)
        assert line.lanes.facts()["0"]["state"] == "on"


@pytest.mark.parametrize("number", [0, 2])
def test_a_change_of_look_makes_graphs_anew_whatever_fails_meanwhile(number: int) -> None:
    """Graphs of the look before are closed, and those of the next recorded; one of both fails."""
    faults = Faults(("graph.close", number), ("capture", 2 + number))
    with running([faults, Faults()], frames=None) as (line, _, sink):
        for _ in range(4):
            until(line, lambda captured=faults.calls["capture"]: faults.calls["capture"] > captured or bool(faults.met))
            line.update(look(), look())
            seen = len(sink.seqs)
            until(line, lambda seen=seen: len(sink.seqs) > seen + 20)
        done = line.lanes.facts()["0"]["frames"]
        until(line, lambda: line.lanes.facts()["0"]["frames"] > done + 10)
    assert line.lanes.facts()["1"]["failures"] == 0


@pytest.mark.parametrize("planned", [[("upload", 5)], [("launch", 0)], [("download", 2), ("close", 0)]], ids=str)
def test_two_that_fail_at_once_end_the_line_with_both_causes_or_go_on(planned: list[Any]) -> None:
    """Whichever is seen first; both never stand still."""
    with running([Faults(*planned), Faults(*planned)]) as (line, _, _):
        assert line.wait(60)
    if line.error is not None:
        assert isinstance(line.error, LaneError)
        assert str(line.error).count("failed as it was asked to") == 2


def test_two_that_meet_at_their_failure_end_the_line_with_both_causes() -> None:
    meeting = threading.Barrier(2)

    def fall(captured_ns: int) -> None:
        meeting.wait(30)
        raise DeviceError("both fell off")

    clock, metrics, sink = MonotonicClock(), Metrics(), Keeping()
    made = [Lane(SimulatedDevice({}, name), clock) for name in ("one", "two")]
    line = Line(Grey(None, clock), Tracking(Scripted(), metrics, clock), made, [sink], [look(fall), look(fall)], clock, metrics, AudioBus())
    line.start()
    assert line.wait(60)
    line.join()
    assert str(line.error) == "no device is left to work on pictures: one: both fell off; two: both fell off"
    assert sink.seqs == []


def test_three_lanes_of_which_two_fail_at_once_go_on_with_the_third() -> None:
    with running([Faults(("upload", 3)), Faults(("upload", 3)), Faults()], frames=None) as (line, _, _):
        until(line, lambda: all(line.lanes.facts()[name]["failures"] == 1 for name in "01"))
        done = [line.lanes.facts()[name]["frames"] for name in "01"]
        until(line, lambda: all(line.lanes.facts()[name]["frames"] > count + 3 for name, count in zip("01", done, strict=True)))
    assert line.error is None


def test_what_a_lane_that_hangs_holds_is_late_and_it_fails_when_it_wakes() -> None:
    """The deadline passes while it hangs, the others go on; then it fails, and is tried again."""
    hangs, wakes = threading.Event(), threading.Event()
    numbers = iter(range(1 << 30))

    def hang(captured_ns: int) -> None:
        if next(numbers) == 2:
            hangs.set()
            wakes.wait()
            raise DeviceError("it woke up and fell off")

    with running([Faults(), Faults()], frames=None, act=hang) as (line, metrics, sink):
        until(line, hangs.is_set)
        seen = len(sink.seqs)
        until(line, lambda: len(sink.seqs) > seen + 30)
        assert line.lanes.facts()["0"]["state"] == "on", "nobody knows yet"
        wakes.set()
        until(line, lambda: line.lanes.facts()["0"]["failures"] == 1)
        done = line.lanes.facts()["0"]["frames"]
        until(line, lambda: line.lanes.facts()["0"]["frames"] > done + 5)
        assert metrics.snapshot().dropped["lane:0"] >= 1
    assert line.error is None


def test_the_end_comes_while_a_lane_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens, fails to close, and the line is over all the same."""
    opens, may_open = threading.Event(), threading.Event()
    faults = Faults(("upload", 3), ("close", 3), ("sync", 4))
    stream = FaultyDevice.stream

    def slowly(device: FaultyDevice, name: str) -> ThreadedStream:
        if faults.met and device.name == "0":
            opens.set()
            may_open.wait()
        return stream(device, name)

    monkeypatch.setattr(FaultyDevice, "stream", slowly)
    with running([faults, Faults()], frames=None) as (line, _, _):
        until(line, opens.is_set)
        line.stop()
        may_open.set()
        assert line.wait(60)
    assert line.error is None or "as it was asked to" in str(line.error)
    assert line.lanes.facts()["0"]["state"] == "closed"

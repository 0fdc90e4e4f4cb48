"""What a stream over a GPU promises, proven over the simulated device: the same threads, and a device whose time is a number."""

from __future__ import annotations

import threading
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.device.checking import CheckingDevice, OrderError
from engines.device.contract import Device, Step
from engines.device.graphs import KEPT, WARM_AFTER, Graphs
from engines.device.host import HostDevice
from engines.device.simulated import SimulatedDevice, SimulatedStream
from engines.device.threaded import ThreadedStream
from engines.errors import DeviceError

MS = 1_000_000


def ticking() -> Any:
    """A clock that goes on by a tenth of a millisecond whenever it is asked."""
    ticks = count(0, MS // 10)
    return lambda: next(ticks)


DEVICES: dict[str, Any] = {
    "host": HostDevice,
    "simulated": lambda: SimulatedDevice({"a": 3.0, "b": 2.0}, now_ns=ticking()),
    "checking": lambda: CheckingDevice(HostDevice()),
    "checking the simulated": lambda: CheckingDevice(SimulatedDevice({"a": 3.0}, now_ns=ticking())),
}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Device:
    made: Device = DEVICES[request.param]()
    return made


def test_the_way_of_a_picture_is_in_order(device: Device) -> None:
    pixels = device.pinned((6, 5, 3))
    pixels[...] = 7
    image = device.mirror(pixels)
    a, b, c = device.stream("a"), device.stream("b"), device.stream("c")
    a.upload(pixels, image)
    b.wait(a.record())
    b.enqueue(np.multiply, image, 3, image, reads=(image,), writes=(image,))
    done = b.record()
    c.wait(done)
    c.download(image, pixels)
    event = c.record()
    event.synchronize()
    assert event.done
    assert (pixels == 21).all()
    assert event.elapsed_ms(done) >= 0
    for stream in (a, b, c):
        stream.close()
        stream.close()


def test_the_time_between_events_is_the_device_s() -> None:
    stream = SimulatedDevice({"compute": 2.5}, now_ns=lambda: 0).stream("compute")
    before = stream.record()
    for _ in range(4):
        stream.enqueue(int)
    after = stream.record()
    after.given.synchronize()
    assert after.points[0] - before.points[0] == pytest.approx(10.0)
    assert not after.done
    with pytest.raises(DeviceError, match="before both were reached"):
        after.elapsed_ms(before)
    stream._native.sync = lambda: None  # its clock stands still
    stream.close()


def test_an_event_after_a_failed_step_still_waits_for_what_ran_before_it() -> None:
    clock = ticking()
    stream = SimulatedDevice({"s": 50.0}, now_ns=clock).stream("s")
    stream.enqueue(int)
    stream.enqueue(lambda: 1 / 0)
    event = stream.record()
    with pytest.raises(ZeroDivisionError):
        event.synchronize()
    assert len(event.points) == 1
    assert event.points[0].at_ns >= 50 * MS
    assert clock() >= event.points[0].at_ns
    stream.close()


def test_a_stream_that_waits_for_a_failed_one_is_still_behind_its_device_work() -> None:
    device = SimulatedDevice({"first": 50.0}, now_ns=ticking())
    first, second = device.stream("first"), device.stream("second")
    first.enqueue(int)
    first.enqueue(lambda: 1 / 0)
    second.wait(first.record())
    event = second.record()
    with pytest.raises(ZeroDivisionError):
        event.synchronize()
    assert event.points[0].at_ns >= 50 * MS
    first.close()
    second.close()


class Failing(SimulatedStream):
    """Fails at what it is told to."""

    def __init__(self, at: str) -> None:
        super().__init__(0, ticking())
        setattr(self, at, self._fail)

    def _fail(self, *arguments: Any) -> Any:
        raise DeviceError("the device is gone")


def test_close_closes_also_where_the_last_wait_fails() -> None:
    native = Failing("sync")
    stream = ThreadedStream("s", native)
    with pytest.raises(DeviceError, match="gone"):
        stream.close()
    assert native.closed
    stream.close()  # and has nothing more to say


def test_an_event_that_cannot_be_recorded_says_so_and_is_done() -> None:
    stream = ThreadedStream("s", Failing("record"))
    event = stream.record()
    with pytest.raises(DeviceError, match="gone"):
        event.synchronize()
    assert event.done
    stream.close()


# --- graphs ---

STEPS = {"add": lambda a, b: np.add(a, b, a), "double": lambda a, b: np.multiply(a, 2, a), "swap": lambda a, b: np.copyto(b, a)}


def steps_of(plan: list[str], one: np.ndarray, other: np.ndarray) -> list[Step]:
    return [Step(STEPS[name], (one, other), (one, other), (one, other)) for name in plan]


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=6), st.integers(1, 3), st.sampled_from(sorted(DEVICES)))
@settings(deadline=None, max_examples=40)
def test_a_replay_does_what_the_steps_do(plan: list[str], times: int, which: str) -> None:
    pairs = [(np.arange(4.0), np.ones(4)) for _ in range(2)]
    stream = DEVICES[which]().stream("a")
    graph = stream.capture(steps_of(plan, *pairs[0]))
    np.testing.assert_array_equal(pairs[0][0], np.arange(4.0))  # nothing was run
    touched = pairs[0] if plan else ()
    for _ in range(times):
        stream.replay(graph, reads=touched, writes=touched)
        for step in steps_of(plan, *pairs[1]):
            step.work(*step.args)
    stream.record().synchronize()
    graph.close()
    stream.close()
    for replayed, done in zip(*pairs, strict=True):
        np.testing.assert_array_equal(replayed, done)


def test_a_replay_costs_one_launch() -> None:
    stream = SimulatedDevice({"s": 2.0}, now_ns=lambda: 0).stream("s")
    graph = stream.capture([Step(int)] * 9)
    before = stream.record()
    stream.replay(graph)
    after = stream.record()
    after.given.synchronize()
    assert after.points[0] - before.points[0] == pytest.approx(2.0)
    stream._native.sync = lambda: None
    stream.close()


def test_the_checking_device_takes_a_graph_for_its_own_arrays_alone() -> None:
    device = CheckingDevice(HostDevice())
    stream, other = device.stream("a"), device.stream("b")
    one, two, three = np.zeros(2), np.zeros(2), np.zeros(2)
    graph = stream.capture([Step(int, (), (one,), (two,))])
    stream.replay(graph, reads=(one,), writes=(two,))
    for reads, writes in (((one,), (three,)), ((three,), (two,)), ((), (two,)), ((one, three), (two,))):
        with pytest.raises(OrderError, match="other"):
            stream.replay(graph, reads=reads, writes=writes)
    with pytest.raises(OrderError, match="before its writer's event"):
        other.enqueue(int, reads=(two,))  # a replay writes, too
    graph.close()
    with pytest.raises(OrderError, match="closed"):
        stream.replay(graph, reads=(one,), writes=(two,))
    device.steady = True
    with pytest.raises(OrderError, match="steady state"):
        stream.capture([])
    stream.close()
    other.close()


def test_steps_are_recorded_when_they_come_again_and_again_after_a_change() -> None:
    device = CheckingDevice(HostDevice())
    stream = device.stream("a")
    graphs, array, ran = Graphs(stream), np.zeros(1), []
    for key, name in [("one face", "x")] * 5 + [("two faces", "y")] * 4 + [("one face", "x")]:
        graphs.run(key, [Step(ran.append, (name,), (array,), (array,)), Step(int, (), (array,))])
    stream.record().synchronize()
    assert ran == ["x"] * 5 + ["y"] * 4 + ["x"]  # whichever way, each frame once
    assert device.summary()["capture"] == 2
    assert device.summary()["replay"] == graphs.replayed == (5 - WARM_AFTER) + (4 - WARM_AFTER) + 1
    graphs.clear()
    stream.close()


def test_what_cannot_be_recorded_goes_the_plain_way() -> None:
    stream, ran = ThreadedStream("s", Failing("capture")), []
    graphs = Graphs(stream)
    for number in range(6):
        graphs.run("key", [Step(ran.append, (number,))])
    stream.record().synchronize()
    stream.close()
    assert ran == list(range(6))
    assert "gone" in graphs.problem
    assert graphs.replayed == 0


def test_a_failure_before_a_capture_is_not_lost_in_it() -> None:
    stream = SimulatedDevice({}).stream("s")
    stream.enqueue(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        stream.capture([Step(int)])
    stream.close()


def test_old_graphs_are_closed() -> None:
    stream = CheckingDevice(HostDevice()).stream("s")
    graphs = Graphs(stream)
    for key in range(KEPT + 3):
        for _ in range(WARM_AFTER + 1):
            graphs.run(key, [])
    kept = list(graphs._graphs.values())
    assert len(kept) == KEPT
    graphs.clear()
    assert all(graph._closed for graph in kept)  # type: ignore[attr-defined]
    stream.close()


def test_giving_work_to_a_slow_device_does_not_wait() -> None:
    gate = threading.Event()
    stream = ThreadedStream("s", SimulatedStream(0, ticking()))
    stream.enqueue(gate.wait)
    event = stream.record()
    assert not event.done
    gate.set()
    event.synchronize()
    stream.close()


def test_a_mark_takes_no_failure_with_it(device: Device) -> None:
    """What comes after the failed step is skipped all the same, and the next event tells."""
    stream, ran = device.stream("a"), []
    begin = stream.mark()
    stream.enqueue(lambda: 1 / 0)
    mark = stream.mark()
    stream.enqueue(ran.append, 1)
    event = stream.record()
    with pytest.raises(ZeroDivisionError):
        event.synchronize()
    mark.synchronize()
    assert mark.elapsed_ms(begin) >= 0
    assert not ran
    stream.close()

"""The host device keeps CUDA's rules: order within a stream, order between streams by events alone."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.device.host import HostDevice
from engines.errors import DeviceError


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
@settings(deadline=None, max_examples=30)
def test_an_event_orders_streams(plan: list[int]) -> None:
    """Each piece of work goes to the stream the plan names and waits for the piece before: the whole runs in order."""
    streams = [HostDevice().stream(f"s{k}") for k in range(3)]
    ran: list[int] = []
    event = None
    for number, which in enumerate(plan):
        if event is not None:
            streams[which].wait(event)
        streams[which].enqueue(ran.append, number)
        event = streams[which].record()
    assert event is not None
    event.synchronize()
    for stream in streams:
        stream.close()
    assert ran == list(range(len(plan)))


def test_giving_work_returns_at_once_and_an_event_tells_when_it_is_done() -> None:
    stream = HostDevice().stream("slow")
    gate = threading.Event()
    stream.enqueue(gate.wait)
    event = stream.record()
    assert not event.done
    gate.set()
    event.synchronize()
    assert event.done
    stream.close()


def test_a_failure_skips_what_depends_on_it_and_is_raised_once() -> None:
    first, second = HostDevice().stream("first"), HostDevice().stream("second")
    ran: list[str] = []
    first.enqueue(lambda: 1 / 0)
    first.enqueue(ran.append, "same stream")
    second.wait(first.record())
    second.enqueue(ran.append, "other stream")
    with pytest.raises(ZeroDivisionError):
        second.record().synchronize()
    second.enqueue(ran.append, "afterwards")
    second.record().synchronize()
    first.close()
    second.close()
    assert ran == ["afterwards"]


def test_a_closed_stream_takes_no_work() -> None:
    stream = HostDevice().stream("closed")
    stream.close()
    stream.close()
    with pytest.raises(DeviceError, match="closed"):
        stream.enqueue(print)

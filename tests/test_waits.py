"""Where the host waits for a device: once a frame and lane, at the ends of things, and nowhere for a whole device.

A wait that is added anywhere fails here, or on the checking device; on a GPU it would cost what streams are there for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from small_line import Painting, Scripted

from engines.device.checking import CheckingDevice, OrderError
from engines.device.contract import Stream
from engines.device.host import HostDevice
from rt.clock import MonotonicClock
from rt.frame import Frame
from rt.lane import Lane
from rt.options import Look
from rt.ring import SlotRing

WAITS = {"synchronize", "sync", "cudaStreamSynchronize", "cudaEventSynchronize"}
"""Calls that wait for a stream or an event."""

MAY_WAIT = {
    "process": "a lane, once a frame, for its download",
    "settle": "a lane, after an error",
    "close": "a stream, at its end",
    "capture": "for what was given before, at warm-up",
    "synchronize": "an event that is waited for by the one who holds it",
    "sync": "a stream or an event, as its device has it",
    "wait": "a network that was asked by the host for arrays of the host",
}
"""Function in which such a call may stand → who waits there for what."""

NEVER = {
    "cudaDeviceSynchronize", "cuCtxSynchronize", "cudaMemcpy", "cudaMemset", "asnumpy", "deviceSynchronize",
}  # fmt: skip
"""They wait for all that a device does, or go by the stream that all others wait for."""


def calls_of(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, str, int]]:
    """(name of what is called, innermost function it stands in, line)."""
    for node in ast.iter_child_nodes(tree):
        name = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else inside
        if isinstance(node, ast.Call):
            called = node.func
            yield called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", ""), inside, node.lineno
        yield from calls_of(node, name)


def found_in(source: str) -> list[str]:
    """What of the rules above is broken, by line."""
    return [
        f"line {line}: {called} in {inside or 'the module'}"
        for called, inside, line in calls_of(ast.parse(source))
        if called in NEVER or (called in WAITS and inside not in MAY_WAIT)
    ]


@pytest.mark.parametrize("path", sorted([*(ROOT / "engines").rglob("*.py"), *(ROOT / "rt").rglob("*.py")]), ids=lambda path: path.stem)
def test_nobody_waits_for_a_device_but_where_it_is_written_down(path: Path) -> None:
    assert not found_in(path.read_text(encoding="utf-8")), f"{path}: order the work by events (Stream.record, Stream.wait)"


@pytest.mark.parametrize(
    "added",
    [
        "def swap(self, stream):\n    stream.record().synchronize()",
        "def compose(self):\n    self._device.sync()",
        "def run(self):\n    self._cuda.cudaDeviceSynchronize()",
        "def close(self):\n    cudaDeviceSynchronize()",
        "def fetch(array):\n    return cupy.asnumpy(array)",
    ],
)
def test_a_wait_that_is_added_is_found(added: str) -> None:
    assert found_in(added)


# --- and by the calls themselves ---


def frames_of(lane: Lane, device: CheckingDevice, count: int = 6) -> None:
    ring, look, tracker = SlotRing(2, 90, 160, lane.slot_memory), Look(Painting(), "white"), Scripted()
    try:
        for seq in range(count):
            slot = ring.acquire()
            assert slot is not None
            frame = Frame(slot.pixels, seq, seq, slot=slot)
            frame.faces = tracker.update(frame.pixels, seq)
            lane.process(frame, look)
            slot.release()
            device.steady = seq >= 2
    finally:
        device.steady = False
        lane.close()


class Waiting(Lane):
    """A lane with a wait too many: what a change might add."""

    def __init__(self, device: CheckingDevice, wait: Callable[[Stream], None]) -> None:
        super().__init__(device, MonotonicClock())
        self._wait = wait

    def _given(self, *args: Any) -> Iterator[Any]:
        for name, give in super()._given(*args):
            yield name, lambda stream, give=give: (give(stream), self._wait(stream))


@pytest.mark.parametrize(
    "wait",
    [lambda device, stream: stream.record().synchronize(), lambda device, stream: device.trim()],
    ids=["stream", "device"],
)
def test_the_checking_device_fails_a_lane_that_waits_between_its_steps(wait: Callable[[CheckingDevice, Stream], None]) -> None:
    device = CheckingDevice(HostDevice())
    with pytest.raises(OrderError, match=r"more than once in a frame of the steady state|was waited for in the steady state"):
        frames_of(Waiting(device, lambda stream: wait(device, stream)), device)


def test_a_lane_as_it_is_waits_once_a_frame() -> None:
    device = CheckingDevice(HostDevice())
    frames_of(Lane(device, MonotonicClock()), device)
    assert [frame.synchronisations for frame in device.frames] == [1] * 6
    assert "trim" not in device.summary()


def test_three_streams_of_a_lane_are_joined_by_two_events() -> None:
    """Up, compute, down: in every frame a stream waits for the one before it, and the host for the last alone."""
    device = CheckingDevice(HostDevice())
    frames_of(Lane(device, MonotonicClock()), device, count=3)
    of_frame = [call for call in device.calls if call[1] in ("upload", "wait", "download", "synchronize")]
    assert (
        of_frame
        == [("upload", "upload"), ("compute", "wait"), ("download", "wait"), ("download", "download"), ("download", "synchronize")] * 3
    )
    assert np.array_equal(device.frames[0].bytes_up, 160 * 90 * 3)

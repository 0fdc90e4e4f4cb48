"""A device that looks for races: it runs the work on another device and proves the order of what it is given.

The order is proven from the calls alone (vector clocks: L. Lamport, "Time, clocks, and the ordering of events in a distributed
system", 1978; F. Mattern, "Virtual time and global states of distributed systems", 1989), so a missing wait is found in every run,
whichever stream happens to be faster. What it cannot see: an array that a step touches and does not declare.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engines.device.contract import Device, Event, Graph, Step, Stream
from engines.errors import DeviceError, DeviceMemoryError

Moment = dict[str, int]
"""Stream name → how many of its calls are known to be done."""


class OrderError(DeviceError):
    """Work was given that could run before what it needs, or in the steady state something that does not belong there."""


@dataclass(slots=True)
class FrameCount:
    """What was asked of the device between two uploads."""

    bytes_up: int = 0
    bytes_down: int = 0
    bytes_other: int = 0
    """Of what is neither the picture going up nor coming down."""
    launches: int = 0
    synchronisations: int = 0


@dataclass(slots=True)
class _History:
    """Who touched an array last. Holds the array: its address is its own as long."""

    array: Any
    written: tuple[str, int] | None = None
    read: dict[str, int] = field(default_factory=dict)


class CheckingDevice:
    """Checks every call, then hands it on. One thread gives work; ``frames`` and ``calls`` are for when it is done.

    Gives steps memory of their own (``mirror``), as a GPU does, so that a step which works on the slot instead shows.
    """

    def __init__(self, inner: Device, *, fail_at: int | None = None, memory_bytes: int | None = None) -> None:
        """``fail_at``: that call, counted from 0, raises ``DeviceError``. ``memory_bytes``: what mirrors may take in all; the first one
        beyond it raises ``DeviceMemoryError``."""
        self.name = f"checking:{inner.name}"
        self.pins = inner.pins
        self.frames: list[FrameCount] = []
        self.calls: list[tuple[str, str]] = []
        """(stream, call), in the order given."""
        self.steady = False
        """Set it once everything is warm: allocations and more than one synchronisation a frame are errors from then on."""
        self._inner = inner
        self._fail_at = fail_at
        self._left_bytes = memory_bytes  # the thread that gives work
        self._lock = threading.RLock()
        self._host: Moment = {}  # all below guarded by _lock: what the host has waited for
        self._histories: dict[int, _History] = {}

    def stream(self, name: str) -> CheckingStream:
        self.call(name, "stream")
        self.forbid_allocation(f"the stream {name}")
        return CheckingStream(self, name, self._inner.stream(name))

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        self.call("", "pinned")
        self.forbid_allocation("page-locked memory")
        return self._inner.pinned(shape)

    def mirror(self, pixels: np.ndarray) -> np.ndarray:
        self.call("", "mirror")
        self.forbid_allocation("a picture's mirror")
        self._take_memory(pixels.nbytes)
        return np.full_like(pixels, 0xCD)  # what is read before the upload is seen not to be the picture

    def trim(self) -> None:
        self.call("", "trim")
        if self.steady:
            raise OrderError("the whole device was waited for in the steady state (trim); that is for what went wrong alone")
        self._inner.trim()

    def current(self) -> AbstractContextManager[None]:
        return self._inner.current()

    def _take_memory(self, nbytes: int) -> None:
        if self._left_bytes is None:
            return
        if nbytes > self._left_bytes:
            raise DeviceMemoryError(f"{self.name} has no memory left for {nbytes} bytes")
        self._left_bytes -= nbytes

    # --- for the streams ---

    def call(self, stream: str, what: str) -> None:
        """Notes a call, and raises where it is the one that is to fail."""
        with self._lock:
            number = len(self.calls)
            self.calls.append((stream, what))
        if number == self._fail_at:
            raise DeviceError(f"call {number}, {what} on {stream or 'the device'}, failed as it was asked to")

    def known_to_host(self, moment: Moment | None = None) -> Moment:
        """What the host has waited for, ``moment`` included from now on."""
        with self._lock:
            _merge(self._host, moment or {})
            return dict(self._host)

    def begin_frame(self, pixels: np.ndarray) -> None:
        """An upload begins: whoever filled the slot wrote into it, so all earlier work on it must have been waited for."""
        with self._lock:
            self.frames.append(FrameCount())
            history = self._history(pixels)
            self._expect([history.written, *history.read.items()], self._host, "a slot was filled again while it was in flight")
            history.written, history.read = None, {}

    def count(self, **by: int) -> None:
        """Adds to the numbers of this frame."""
        with self._lock:
            if self.frames:
                for name, number in by.items():
                    setattr(self.frames[-1], name, getattr(self.frames[-1], name) + number)
                if self.steady and self.frames[-1].synchronisations > 1:
                    raise OrderError("the host waited for the device more than once in a frame of the steady state")

    def touch(self, moment: Moment, stream: str, reads: Sequence[Any], writes: Sequence[Any]) -> None:
        """Proves that a step which knows ``moment`` may read and write these, and notes that it does."""
        with self._lock:
            for array in reads:
                self._expect([self._history(array).written], moment, f"{stream} reads an array before its writer's event")
            for array in writes:
                history = self._history(array)
                self._expect([history.written, *history.read.items()], moment, f"{stream} writes an array that is still in use")
            for array in reads:
                self._history(array).read[stream] = moment[stream]
            for array in writes:
                history = self._history(array)
                history.written, history.read = (stream, moment[stream]), {}

    @staticmethod
    def _expect(before: Sequence[tuple[str, int] | None], moment: Moment, what: str) -> None:
        for place in before:
            if place is not None and moment.get(place[0], 0) < place[1]:
                raise OrderError(f"{what}: call {place[1]} of the stream {place[0]}; wait for an event recorded after it")

    def _history(self, array: Any) -> _History:
        return self._histories.setdefault(id(array), _History(array))

    def forbid_allocation(self, what: str) -> None:
        if self.steady:
            raise OrderError(f"{what} was allocated in the steady state; make it before the first frame")

    def summary(self) -> Counter[str]:
        """How often each call was made."""
        return Counter(what for _, what in self.calls)


class CheckingStream:
    """A stream of the inner device, and what is known to be done where its next work begins."""

    def __init__(self, device: CheckingDevice, name: str, inner: Stream) -> None:
        self._device = device
        self._name = name
        self._inner = inner
        self._moment: Moment = {name: 0}

    def enqueue(self, work: Callable[..., Any], *args: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        self._device.call(self._name, "enqueue")
        self._advance(reads, writes)
        self._device.count(launches=1)
        self._inner.enqueue(work, *args)

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        self._device.call(self._name, "upload")
        self._device.begin_frame(pixels)
        self._advance((pixels,), (image,))
        self._device.count(bytes_up=pixels.nbytes)
        self._inner.upload(pixels, image)

    def download(self, image: Any, pixels: np.ndarray) -> None:
        self._device.call(self._name, "download")
        self._advance((image,), (pixels,))
        self._device.count(bytes_down=pixels.nbytes)
        self._inner.download(image, pixels)

    def record(self) -> CheckingEvent:
        self._device.call(self._name, "record")
        return CheckingEvent(self._device, self._name, dict(self._moment), self._inner.record())

    def mark(self) -> CheckingEvent:
        self._device.call(self._name, "mark")
        return CheckingEvent(self._device, self._name, dict(self._moment), self._inner.mark())

    def wait(self, event: Event) -> None:
        self._device.call(self._name, "wait")
        if not isinstance(event, CheckingEvent):
            raise OrderError("the event is of another device; wait on the host between devices")
        _merge(self._moment, event.moment)
        self._inner.wait(event.inner)

    def capture(self, steps: Sequence[Step]) -> CheckingGraph:
        self._device.call(self._name, "capture")
        self._device.forbid_allocation("a graph")
        return CheckingGraph(self._inner.capture(steps), _all_of(step.reads for step in steps), _all_of(step.writes for step in steps))

    def replay(self, graph: Graph, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        self._device.call(self._name, "replay")
        if not isinstance(graph, CheckingGraph):
            raise OrderError("the graph is of another device; record it on the stream that replays it")
        graph.expect(reads, writes)
        self._advance(graph.reads, graph.writes)
        self._device.count(launches=1)
        self._inner.replay(graph.inner)

    def close(self) -> None:
        self._inner.close()  # first: a call that is made to fail leaves no thread
        self._device.known_to_host(self._moment)
        self._device.call(self._name, "close")

    def _advance(self, reads: Sequence[Any], writes: Sequence[Any]) -> None:
        _merge(self._moment, self._device.known_to_host())
        self._moment[self._name] += 1
        self._device.touch(self._moment, self._name, reads, writes)


class CheckingGraph:
    """A graph of the inner device, and what its steps touch."""

    def __init__(self, inner: Graph, reads: tuple[Any, ...], writes: tuple[Any, ...]) -> None:
        self.inner = inner
        self.reads = reads
        self.writes = writes
        self._closed = False

    def expect(self, reads: Sequence[Any], writes: Sequence[Any]) -> None:
        """Its addresses are written into it: work on other arrays is another graph."""
        if self._closed:
            raise OrderError("a graph was replayed after it was closed")
        for what, given, recorded in (("reads", reads, self.reads), ("writes", writes, self.writes)):
            if {id(array) for array in given} != {id(array) for array in recorded}:
                raise OrderError(f"a graph was replayed for other {what} than it was recorded with; record one for these arrays")

    def close(self) -> None:
        self._closed = True
        self.inner.close()


class CheckingEvent:
    """An event of the inner device, and what is known to be done once it has come."""

    def __init__(self, device: CheckingDevice, stream: str, moment: Moment, inner: Event) -> None:
        self.moment = moment
        self.inner = inner
        self._device = device
        self._stream = stream

    def synchronize(self) -> None:
        self._device.call(self._stream, "synchronize")
        self._device.count(synchronisations=1)
        self.inner.synchronize()
        self._device.known_to_host(self.moment)

    @property
    def done(self) -> bool:
        return self.inner.done

    def elapsed_ms(self, since: CheckingEvent) -> float:
        return self.inner.elapsed_ms(since.inner)


def _all_of(groups: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    """Each array once."""
    return tuple({id(array): array for group in groups for array in group}.values())


def _merge(into: Moment, other: Moment) -> None:
    for name, number in other.items():
        into[name] = max(into.get(name, 0), number)

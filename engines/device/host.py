"""The host as a device: every stream is a thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from engines.device.contract import Event, Graph, Step, Stream
from engines.device.kinds import DeviceKind, devices
from engines.errors import DeviceError


class HostEvent:
    """A point in a host stream's work."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._error: BaseException | None = None  # written once, before _reached is set, as is _at_ns
        self._at_ns = 0

    def reach(self, error: BaseException | None) -> None:
        """Called on the stream's thread when all work before the point is done."""
        self._error, self._at_ns = error, time.monotonic_ns()
        self._reached.set()

    def synchronize(self) -> None:
        self._reached.wait()
        if self._error is not None:
            raise self._error

    @property
    def done(self) -> bool:
        return self._reached.is_set()

    def elapsed_ms(self, since: HostEvent) -> float:
        if not (self.done and since.done):
            raise DeviceError("the time between two events was asked for before both were reached; wait for the later one first")
        return (self._at_ns - since._at_ns) / 1e6


class HostGraph:
    """Steps, as they were given."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    def close(self) -> None:
        """Nothing is held."""


class HostStream:
    """Runs work in order on a thread of its own."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None  # the stream's own thread
        self._closed = False  # the giving thread
        self._thread = threading.Thread(target=self._run, name=f"stream-{name}", daemon=True)
        self._thread.start()

    def enqueue(self, work: Callable[..., Any], *args: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        self._give(lambda: self._attempt(work, *args))

    def always(self, work: Callable[[], Any]) -> None:
        """As ``enqueue``, but run also after a failure: for what keeps order. What it raises is a failure like any other."""
        self._give(lambda: self._run_step(work))

    def upload(self, pixels: np.ndarray, image: np.ndarray) -> None:
        if image is not pixels:
            self.enqueue(np.copyto, image, pixels)

    def download(self, image: np.ndarray, pixels: np.ndarray) -> None:
        if image is not pixels:
            self.enqueue(np.copyto, pixels, image)

    def record(self) -> HostEvent:
        event = HostEvent()
        self._give(lambda: self._reach(event))
        return event

    def mark(self) -> HostEvent:
        event = HostEvent()
        self._give(lambda: event.reach(None))
        return event

    def wait(self, event: Event) -> None:
        self._give(lambda: self._attempt(event.synchronize))

    def capture(self, steps: Sequence[Step]) -> HostGraph:
        return HostGraph(steps)

    def replay(self, graph: Graph, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        assert isinstance(graph, HostGraph), "a graph is replayed on the kind of stream that recorded it"
        for step in graph.steps:
            self.enqueue(step.work, *step.args)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._work.put(None)
        self._thread.join()

    def _give(self, step: Callable[[], None]) -> None:
        if self._closed:
            raise DeviceError("work was given to a stream that is closed; make a new stream")
        self._work.put(step)

    def _attempt(self, work: Callable[..., Any], *args: Any) -> None:
        if self._error is None:
            self._run_step(work, *args)

    def _run_step(self, work: Callable[..., Any], *args: Any) -> None:
        try:
            work(*args)
        except Exception as error:  # handed on to whoever waits for the next event
            self._error = self._error or error

    def _reach(self, event: HostEvent) -> None:
        error, self._error = self._error, None
        event.reach(error)

    def _run(self) -> None:
        while (step := self._work.get()) is not None:
            step()


class HostDevice:
    """The processor itself."""

    name = "host"
    pins = False

    def stream(self, name: str) -> Stream:
        return HostStream(name)

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, np.uint8)

    def mirror(self, pixels: np.ndarray) -> np.ndarray:
        return pixels

    def trim(self) -> None:
        """The operating system sees to it."""

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()


devices.register("host")(DeviceKind(lambda number, memory_bytes: HostDevice(), lambda number: ""))

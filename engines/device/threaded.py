"""Streams that a thread gives work to and something else runs: a GPU, or the simulated device.

Each is a host stream, whose thread calls the work, over a ``NativeStream``, on which what it asks of the device is done later. So a step
may be NumPy or kernels, and both keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from engines.device.contract import Event, Graph, Step
from engines.device.host import HostEvent, HostStream
from engines.errors import DeviceError


class NativeEvent(Protocol):
    """A point in the device's work."""

    def sync(self) -> None:
        """Blocks until it is reached. Raises what the device failed with."""
        ...

    @property
    def is_done(self) -> bool: ...

    def __sub__(self, earlier: Any) -> float:
        """Milliseconds of the device between the two, both reached."""
        ...


class NativeStream(Protocol):
    """What a device runs in order. All but ``sync`` and ``close`` is called on one thread, that which gives the work."""

    def call(self, work: Callable[..., Any], *args: Any) -> None:
        """Calls ``work``; what it asks of the device goes to this stream."""
        ...

    def upload(self, pixels: np.ndarray, image: Any) -> None: ...

    def download(self, image: Any, pixels: np.ndarray) -> None: ...

    def record(self) -> NativeEvent: ...

    def wait(self, event: Any) -> None:
        """Asynchronous: what comes later is run after ``event``."""
        ...

    def capture(self, work: Callable[[], None]) -> Any:
        """Calls ``work`` and keeps what it asks of the device, as a graph with ``close``, instead of having it run. May raise anything."""
        ...

    def launch(self, graph: Any) -> None: ...

    def sync(self) -> None:
        """Blocks until nothing is left to be done."""
        ...

    def close(self) -> None: ...


class ThreadedStream:
    """Keeps ``engines.device.contract.Stream``."""

    def __init__(self, name: str, native: NativeStream) -> None:
        """Takes over ``native``, which ``close`` closes."""
        self._native = native
        self._host = HostStream(name)
        self._closed = False

    def enqueue(self, work: Callable[..., Any], *args: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        self._host.enqueue(self._native.call, work, *args)

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        self._host.enqueue(self._native.upload, pixels, image)

    def download(self, image: Any, pixels: np.ndarray) -> None:
        self._host.enqueue(self._native.download, image, pixels)

    def record(self) -> ThreadedEvent:
        points = self._point()
        return ThreadedEvent(self._host.record(), points)

    def mark(self) -> ThreadedEvent:
        points = self._point()
        return ThreadedEvent(self._host.mark(), points)

    def _point(self) -> list[NativeEvent]:
        """Also after a failed step: what ran before it is still under way."""
        points: list[NativeEvent] = []
        self._host.always(lambda: points.append(self._native.record()))
        return points

    def wait(self, event: Event) -> None:
        if not isinstance(event, ThreadedEvent):
            raise DeviceError("an event of another device was given to a stream; wait for it on the host")
        self._host.wait(event.given)
        self._host.always(lambda: self._await(event))

    def capture(self, steps: Sequence[Step]) -> Graph:
        made: list[Graph | Exception] = []
        self._host.enqueue(self._build, steps, made)
        self._host.record().synchronize()  # raises what failed before it
        graph = made[0]
        if isinstance(graph, Exception):
            raise DeviceError(f"the device cannot record these steps ({graph}); they are given one by one") from graph
        return graph

    def replay(self, graph: Graph, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        self._host.enqueue(self._native.launch, graph)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._host.close()
            self._native.sync()
        finally:
            self._native.close()

    # --- the thread that gives the work ---

    def _await(self, event: ThreadedEvent) -> None:
        for point in event.points:
            self._native.wait(point)

    def _build(self, steps: Sequence[Step], made: list[Graph | Exception]) -> None:
        def give() -> None:
            for step in steps:
                step.work(*step.args)

        try:
            made.append(self._native.capture(give))
        except Exception as error:  # raised by capture: the stream itself is well
            made.append(error)


class ThreadedEvent:
    """First the work before the point was given, then the device has done it."""

    def __init__(self, given: HostEvent, points: list[NativeEvent]) -> None:
        self.given = given
        self.points = points
        """One, once ``given`` is reached; none where the device could not even record it."""

    def synchronize(self) -> None:
        try:
            self.given.synchronize()
        finally:  # what failed was given after other work, which may still be writing
            for point in self.points:
                point.sync()

    @property
    def done(self) -> bool:
        return self.given.done and all(point.is_done for point in self.points)

    def elapsed_ms(self, since: ThreadedEvent) -> float:
        if not (self.done and since.done and self.points and since.points):
            raise DeviceError("the time between two events was asked for before both were reached; wait for the later one first")
        return self.points[0] - since.points[0]

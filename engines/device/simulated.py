"""A device of declared times: work is done by the host at once and counts as done only when a device of that speed would have done it.

For trying out several lanes on a machine without a GPU, and for proving what a stream over a GPU does when something fails. It keeps the
rules of CUDA: in order within a stream, between streams by events, and whoever does not wait reads too early.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from engines.device.budget import MemoryBudget
from engines.device.kinds import DeviceKind, devices
from engines.device.threaded import ThreadedStream


class SimulatedDevice:
    """Any thread may ask for streams."""

    pins = False

    def __init__(
        self,
        times_ms: Mapping[str, float],
        name: str = "simulated",
        *,
        memory_bytes: int | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """``times_ms``: name of a stream → what each piece of its work takes; 0 where it is not named. ``memory_bytes``: what pictures and
        work may take in all; None has no limit."""
        self.name = name
        self._budget = MemoryBudget(memory_bytes or 0, name)
        self._times_ms = dict(times_ms)
        self._now_ns = now_ns

    def stream(self, name: str) -> ThreadedStream:
        return ThreadedStream(name, SimulatedStream(round(self._times_ms.get(name, 0.0) * 1e6), self._now_ns))

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, np.uint8)

    def mirror(self, pixels: np.ndarray) -> np.ndarray:
        taken = self._budget.take(pixels.nbytes, "a picture")
        image = np.empty_like(pixels)
        weakref.finalize(image, taken.give_back)
        return image

    @contextmanager
    def memory(self, nbytes: int) -> Iterator[None]:
        """What work takes meanwhile. Raises ``DeviceMemoryError`` where so much is not left."""
        taken = self._budget.take(nbytes, "a step")
        try:
            yield
        finally:
            taken.give_back()

    def trim(self) -> None:
        """Nothing is held."""

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()


class SimulatedEvent:
    """A moment of the simulated device."""

    def __init__(self, at_ns: int, now_ns: Callable[[], int]) -> None:
        self.at_ns = at_ns
        self._now_ns = now_ns

    def sync(self) -> None:
        never = threading.Event()
        while (left_ns := self.at_ns - self._now_ns()) > 0:
            never.wait(left_ns / 1e9)

    @property
    def is_done(self) -> bool:
        return self._now_ns() >= self.at_ns

    def __sub__(self, earlier: SimulatedEvent) -> float:
        return (self.at_ns - earlier.at_ns) / 1e6


class SimulatedGraph:
    """Work that costs the device one launch."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work

    def close(self) -> None:
        """Nothing is held."""


class SimulatedStream:
    """Keeps ``engines.device.threaded.NativeStream``. All but ``sync`` and ``close`` on one thread."""

    def __init__(self, work_ns: int, now_ns: Callable[[], int]) -> None:
        self._work_ns = work_ns
        self._now_ns = now_ns
        self._free_ns = 0
        """When all that was given is done."""
        self.closed = False

    def call(self, work: Callable[..., Any], *args: Any) -> None:
        self.launch(SimulatedGraph(partial(work, *args)))

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        self.launch(SimulatedGraph(partial(np.copyto, image, pixels)))

    def download(self, image: Any, pixels: np.ndarray) -> None:
        self.launch(SimulatedGraph(partial(np.copyto, pixels, image)))

    def record(self) -> SimulatedEvent:
        return SimulatedEvent(max(self._free_ns, self._now_ns()), self._now_ns)

    def wait(self, event: SimulatedEvent) -> None:
        self._free_ns = max(self._free_ns, event.at_ns)

    def capture(self, work: Callable[[], None]) -> SimulatedGraph:
        return SimulatedGraph(work)

    def launch(self, graph: SimulatedGraph) -> None:
        graph.work()
        self._free_ns = max(self._free_ns, self._now_ns()) + self._work_ns

    def sync(self) -> None:
        SimulatedEvent(self._free_ns, self._now_ns).sync()

    def close(self) -> None:
        self.closed = True


def _kernels(number: int, memory_bytes: int) -> SimulatedDevice:
    return SimulatedDevice({}, "kernels", memory_bytes=memory_bytes or None)


devices.register("kernels")(DeviceKind(_kernels, lambda number: "", has_memory=True, compositor="kernels"))

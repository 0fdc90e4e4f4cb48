"""The host as a device: every stream is a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engines.device.contract import Event, Stream
from engines.errors import DeviceError


class HostEvent:
    """A point in a host stream's work."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._error: BaseException | None = None  # written once, before _reached is set

    def reach(self, error: BaseException | None) -> None:
        """Called on the stream's thread when all work before the point is done."""
        self._error = error
        self._reached.set()

    def synchronize(self) -> None:
        self._reached.wait()
        if self._error is not None:
            raise self._error

    @property
    def done(self) -> bool:
        return self._reached.is_set()


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

    def wait(self, event: Event) -> None:
        self._give(lambda: self._attempt(event.synchronize))

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
        if self._error is not None:
            return
        try:
            work(*args)
        except Exception as error:  # handed on to whoever waits for the next event
            self._error = error

    def _reach(self, event: HostEvent) -> None:
        error, self._error = self._error, None
        event.reach(error)

    def _run(self) -> None:
        while (step := self._work.get()) is not None:
            step()


class HostDevice:
    """The processor itself."""

    name = "cpu"

    def stream(self, name: str) -> Stream:
        return HostStream(name)

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, np.uint8)

    def mirror(self, pixels: np.ndarray) -> np.ndarray:
        return pixels

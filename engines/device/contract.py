"""Streams and events: the one interface through which a lane gives its device work.

The rules are CUDA's: work on one stream runs in the order given; work on two streams runs in any order unless an event lies
between them; giving work returns at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Event(Protocol):
    """A point in a stream's work."""

    def synchronize(self) -> None:
        """Blocks the calling thread until the work before the point is done. Raises what that work raised."""
        ...

    @property
    def done(self) -> bool:
        """True once the work before the point is done; never blocks."""
        ...

    def elapsed_ms(self, since: Any) -> float:
        """The device's time between ``since``, an event of the same device, and this one. Both must be done. Raises ``DeviceError``."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of work, as ``Stream.enqueue`` takes it."""

    work: Callable[..., Any]
    args: tuple[Any, ...] = ()
    reads: tuple[Any, ...] = ()
    writes: tuple[Any, ...] = ()


class Graph(Protocol):
    """Steps that were recorded once and are given again as one. Of the stream that recorded it."""

    def close(self) -> None:
        """Frees it; any thread, when nothing of it is under way. May be called twice."""
        ...


class Stream(Protocol):
    """Work in order. One thread gives it work."""

    def enqueue(self, work: Callable[..., Any], *args: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        """Asynchronous: adds work to the end. After a failure later work is skipped until the error was raised.

        ``reads``, ``writes``: the arrays it touches. Only the checking device looks at them.
        """
        ...

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        """Asynchronous: copies a slot's pixels to their ``mirror``; nothing where both are the same memory."""
        ...

    def download(self, image: Any, pixels: np.ndarray) -> None:
        """Asynchronous: the way back."""
        ...

    def record(self) -> Event:
        """Asynchronous: the point after all work given so far."""
        ...

    def mark(self) -> Event:
        """As ``record``, for times alone: what failed before it stays with the stream, for the next ``record`` to tell."""
        ...

    def wait(self, event: Event) -> None:
        """Asynchronous: work given from now on runs after ``event``."""
        ...

    def capture(self, steps: Sequence[Step]) -> Graph:
        """Blocks until ``steps`` are recorded, after all work given so far; runs none of them. For warm-up, not for every frame.

        They may only give the device work on memory that is there: nothing is allocated, awaited or decided in them, for none of that
        would happen again. Raises ``DeviceError`` where the device cannot record them; give them one by one then.
        """
        ...

    def replay(self, graph: Graph, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        """Asynchronous: adds all steps of ``graph`` to the end, as one. ``reads``, ``writes``: what they touch, all together."""
        ...

    def close(self) -> None:
        """Finishes the work given and ends, also where that raises. May be called twice."""
        ...


class Device(Protocol):
    """Something that runs work: the host, a GPU."""

    name: str
    """``host``, ``cuda:0``."""
    pins: bool
    """Whether ``pinned`` is memory of another kind than any other."""

    def stream(self, name: str) -> Stream:
        """A new stream; the name is for people and profilers."""
        ...

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        """Zeroed uint8 memory of the host that this device copies from and to the fastest way. Raises ``DeviceError``."""
        ...

    def mirror(self, pixels: np.ndarray) -> Any:
        """The array in which steps work on a picture that lies in ``pixels``: ``pixels`` itself, or memory of the device, shaped alike.

        Allocates: ask once for each slot. Raises ``DeviceError``; ``DeviceMemoryError`` where there is none left.
        """
        ...

    def trim(self) -> None:
        """Gives back memory that nothing uses any more. Waits for the device: not for every frame."""
        ...

    def current(self) -> AbstractContextManager[None]:
        """What the calling thread opens meanwhile (a network, say) is opened for this device. Raises ``DeviceError``."""
        ...

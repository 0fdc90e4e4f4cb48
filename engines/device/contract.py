"""Streams and events: the one interface through which a lane gives its device work.

The rules are CUDA's: work on one stream runs in the order given; work on two streams runs in any order unless an event lies
between them; giving work returns at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    def wait(self, event: Event) -> None:
        """Asynchronous: work given from now on runs after ``event``."""
        ...

    def close(self) -> None:
        """Finishes the work given and ends. May be called twice."""
        ...


class Device(Protocol):
    """Something that runs work: the host, a GPU."""

    name: str
    """``cpu``, ``cuda:0``."""

    def stream(self, name: str) -> Stream:
        """A new stream; the name is for people and profilers."""
        ...

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        """Zeroed uint8 memory of the host that this device copies from and to the fastest way. Raises ``DeviceError``."""
        ...

    def mirror(self, pixels: np.ndarray) -> Any:
        """The array in which steps work on a picture that lies in ``pixels``: ``pixels`` itself, or memory of the device, shaped alike.

        Allocates: ask once for each slot. Raises ``DeviceError``.
        """
        ...

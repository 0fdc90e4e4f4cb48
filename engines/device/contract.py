"""Streams and events: the one interface through which a lane gives its device work.

The rules are CUDA's: work on one stream runs in the order given; work on two streams runs in any order unless an event lies
between them; giving work returns at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


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

    def enqueue(self, work: Callable[..., Any], *args: Any) -> None:
        """Asynchronous: adds work to the end. After a failure later work is skipped until the error was raised."""
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

"""The line's one clock: monotonic integer nanoseconds, given to whoever needs the time."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Any thread may call any method."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        ...

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        """Blocks until the deadline or until ``stop`` is set. True when the deadline was reached."""
        ...


class MonotonicClock:
    """The real one. Its zero is the operating system's monotonic clock, which V4L2 time stamps use too."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        remaining_ns = deadline_ns - time.monotonic_ns()
        while remaining_ns > 0:
            if stop.wait(remaining_ns / 1e9):
                return False
            remaining_ns = deadline_ns - time.monotonic_ns()
        return not stop.is_set()


class ManualClock:
    """A clock that stands still until told to move: its twin for tests and offline jobs."""

    def __init__(self, start_ns: int = 0) -> None:
        self._moved = threading.Condition()
        self._now_ns = start_ns  # guarded by _moved

    def now_ns(self) -> int:
        with self._moved:
            return self._now_ns

    def advance(self, nanoseconds: int) -> None:
        """Moves the clock forward and wakes who waits. Raises ValueError for a step back."""
        if nanoseconds < 0:
            raise ValueError(f"a clock cannot go back ({nanoseconds} ns); give 0 or more")
        with self._moved:
            self._now_ns += nanoseconds
            self._moved.notify_all()

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        with self._moved:
            while self._now_ns < deadline_ns and not stop.is_set():
                self._moved.wait(0.05)  # `stop` has no way to wake this condition
            return not stop.is_set()

"""Stages of the line: each notes in the frame how long it took, and can be made slower, to see the line under overload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rt.clock import Clock
from rt.frame import Frame


class Stages:
    """Runs stages by name. Any thread."""

    def __init__(self, clock: Clock, slow_ms: Mapping[str, float] | None = None) -> None:
        """``slow_ms``: stage name → milliseconds that the stage is made to take longer."""
        self._clock = clock
        self._slow_ns = {name: round(ms * 1e6) for name, ms in (slow_ms or {}).items()}

    def run(self, name: str, work: Callable[..., Any], frame: Frame, *args: Any) -> None:
        """Calls ``work(frame, *args)`` and leaves a mark in ``frame``."""
        begin_ns = self._clock.now_ns()
        work(frame, *args)
        self._linger(self._slow_ns.get(name, 0))
        frame.marks[name] = self._clock.now_ns() - begin_ns

    def _linger(self, extra_ns: int) -> None:
        until_ns = self._clock.now_ns() + extra_ns
        while extra_ns and self._clock.now_ns() < until_ns:
            pass  # busy on purpose: a slow stage keeps its core

"""Measures for how long the event loop did not come round: the time in which the window could not have answered a click.

A timer is due every few milliseconds. When it comes late, something else had the loop. (Qt's dispatcher says when it sleeps and wakes,
but with GLib it says so around the events, not between them, so that cannot be used.) From one tick to the next three times are known:

- what the clock says, beyond the timer's own interval;
- what the thread worked (its CPU time), which grows by computing alone, however busy the machine is;
- what it waited for a core although it could have run (Linux tells: ``/proc/…/schedstat``), which is the machine's doing and not ours.

The clock's time without the wait for a core is what the program itself kept the window from answering: its work, and whatever it waited
for (a lock, a disk, a socket, another Python thread). That is what is called blocked here.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, QTimer

log = logging.getLogger(__name__)

LIMIT_MS = 50.0
"""A turn that is longer is felt."""

TICK_MS = 10
"""How often the loop is asked whether it comes round."""


@dataclass(frozen=True, slots=True)
class Turn:
    """From one tick to the next, milliseconds."""

    late_ms: float
    """By how much the tick came late."""
    worked_ms: float
    blocked_ms: float
    """Late without the wait for a core; where the system does not tell that wait, the same."""


class Watchdog(QObject):
    """Main thread. Turns that were blocked for longer than the limit are logged and kept."""

    def __init__(self, limit_ms: float = LIMIT_MS) -> None:
        super().__init__()
        self._limit_ms = limit_ms
        self._delay_ns = wait_for_core()
        self._at = (0, 0, 0)
        self.turns = 0
        self.worst_work = self.worst_block = Turn(0, 0, 0)
        self.felt: list[Turn] = []
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)

    def start(self) -> None:
        self._at = self._now()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def __str__(self) -> str:
        return (
            f"{self.turns} turns of the event loop; most work {self.worst_work.worked_ms:.1f} ms, "
            f"longest block {self.worst_block.blocked_ms:.1f} ms, {len(self.felt)} over {self._limit_ms:g} ms"
        )

    def _now(self) -> tuple[int, int, int]:
        return time.monotonic_ns(), time.thread_time_ns(), self._delay_ns()

    def _tick(self) -> None:
        before, self._at = self._at, self._now()
        wall, worked, delayed = ((now - then) / 1e6 for now, then in zip(self._at, before, strict=True))
        late = max(0.0, wall - TICK_MS)
        self._note(Turn(late, worked, max(0.0, late - delayed)))

    def _note(self, turn: Turn) -> None:
        self.turns += 1
        self.worst_work = max(self.worst_work, turn, key=lambda one: one.worked_ms)
        self.worst_block = max(self.worst_block, turn, key=lambda one: one.blocked_ms)
        if turn.blocked_ms > self._limit_ms:
            self.felt.append(turn)
            log.warning("the window did not answer for %.0f ms, %.0f of them work", turn.blocked_ms, turn.worked_ms)


def wait_for_core() -> Callable[[], int]:
    """A clock of the calling thread: nanoseconds for which it could have run and had no core. Always 0 where the system does not tell."""
    if sys.platform != "linux":
        return lambda: 0
    try:
        file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        os.pread(file, 64, 0).split()[1]
    except (OSError, IndexError):  # a kernel without CONFIG_SCHED_INFO
        return lambda: 0
    return _SchedStat(file).read


class _SchedStat:
    """Holds the file open: opening it costs more than all the rest."""

    def __init__(self, file: int) -> None:
        self._file = file

    def read(self) -> int:
        return int(os.pread(self._file, 64, 0).split()[1])

    def __del__(self) -> None:
        os.close(self._file)

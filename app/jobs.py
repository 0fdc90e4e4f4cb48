"""Long work that a person waits for beside everything else: how far it is, how long it still takes, and its end by request."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.errors import AppError
from engines.errors import BuildCancelled, EngineError, PullCancelled
from rt.clock import Clock, MonotonicClock
from rt.errors import RtError

log = logging.getLogger(__name__)

CANCELLED = (PullCancelled, BuildCancelled)
"""How work says that it has stopped because it was asked to."""

SPEED_S = 10.0
"""The time left is told by the speed of so many seconds past."""

FIRST_S = 1.0
"""Before so long nothing is said of the time left: the first bytes come from a cache somewhere."""


class JobState(StrEnum):
    RUNNING = "running"
    STOPPING = "stopping"
    """Asked to end, and not yet there."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OVER = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobView:
    """How a job is at one moment."""

    number: int
    title: str
    state: JobState
    what: str = ""
    """What it does now."""
    done: int = 0
    total: int | None = None
    """None where nobody knows."""
    unit: str = ""
    """Of ``done`` and ``total``: ``B`` for bytes, else empty."""
    left_s: float | None = None
    error: str = ""


class Job:
    """One piece of work. Any thread."""

    def __init__(self, jobs: Jobs, number: int, title: str, cancel: Callable[[], None] | None, unit: str) -> None:
        self._jobs = jobs
        self._cancel = cancel
        self._lock = threading.Lock()
        self._view = JobView(number, title, JobState.RUNNING, unit=unit)  # guarded by _lock, as is _past
        self._past: deque[tuple[int, int]] = deque()

    @property
    def can_be_cancelled(self) -> bool:
        return self._cancel is not None

    @property
    def view(self) -> JobView:
        with self._lock:
            return self._view

    def report(self, done: int, total: int | None, what: str) -> None:
        """``total``: None or 0 where nobody knows."""
        now_ns = self._jobs.clock.now_ns()
        with self._lock:
            if done < self._view.done:  # from the start again
                self._past.clear()
            self._past.append((now_ns, done))
            while now_ns - self._past[0][0] > SPEED_S * 1e9:
                self._past.popleft()
            left_s = self._left_s(done, total or None)
            self._change(what=what, done=done, total=total or None, left_s=left_s)
        self._jobs.told()

    def ask_to_end(self) -> None:
        """Returns at once. Does nothing where it is over, or cannot."""
        with self._lock:
            if self._cancel is None or self._view.state is not JobState.RUNNING:
                return
            self._change(state=JobState.STOPPING, left_s=None)
        self._cancel()
        self._jobs.told()

    def end(self, error: BaseException | None = None) -> None:
        """It is over, well unless ``error`` says otherwise."""
        with self._lock:
            if error is None:
                self._change(state=JobState.DONE, left_s=None)
            elif isinstance(error, CANCELLED):
                self._change(state=JobState.CANCELLED, left_s=None)
            else:
                known = isinstance(error, AppError | RtError | EngineError)
                self._change(state=JobState.FAILED, left_s=None, error=str(error) if known else f"{type(error).__name__}: {error}")
        self._jobs.told()

    def _left_s(self, done: int, total: int | None) -> float | None:
        (first_ns, first), (last_ns, last) = self._past[0], self._past[-1]
        if total is None or last <= first or last_ns - first_ns < FIRST_S * 1e9:
            return None
        return max(0.0, (total - done) * (last_ns - first_ns) / 1e9 / (last - first))

    def _change(self, **facts: object) -> None:
        view = self._view
        kept = {name: getattr(view, name) for name in JobView.__slots__}
        self._view = JobView(**{**kept, **facts})


class Jobs:
    """All of a window. Any thread."""

    def __init__(self, told: Callable[[], None] = lambda: None, clock: Clock | None = None) -> None:
        """``told``: called after every change, on whichever thread made it; it must return at once."""
        self.told = told
        self.clock = clock or MonotonicClock()
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}  # guarded by _lock, as is _threads
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count(1)

    def begin(self, title: str, cancel: Callable[[], None] | None = None, unit: str = "") -> Job:
        """For work that somebody else does, who calls ``Job.end``. ``cancel``: asks for its end and returns at once."""
        with self._lock:
            job = Job(self, next(self._numbers), title, cancel, unit)
            self._jobs[job.view.number] = job
        self.told()
        return job

    def run(self, title: str, work: Callable[[Job], object], cancel: Callable[[], None], unit: str = "") -> Job:
        """``work(job)`` on a thread of its own; what it raises is how it failed."""
        job = self.begin(title, cancel, unit)
        thread = threading.Thread(target=self._do, args=(job, work), name=f"job {job.view.number}", daemon=True)
        with self._lock:
            self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        thread.start()
        return job

    def views(self) -> tuple[JobView, ...]:
        """In the order in which they began."""
        with self._lock:
            return tuple(job.view for job in self._jobs.values())

    def cancel(self, number: int) -> None:
        job = self._get(number)
        if job is not None:
            job.ask_to_end()

    def can_cancel(self, number: int) -> bool:
        job = self._get(number)
        return job is not None and job.can_be_cancelled

    def forget(self, number: int) -> None:
        """Takes one that is over off the list."""
        with self._lock:
            job = self._jobs.get(number)
            if job is not None and job.view.state in OVER:
                del self._jobs[number]
        self.told()

    def close(self, timeout_s: float = 10.0) -> None:
        """Asks all to end and waits for them."""
        with self._lock:
            jobs, threads = list(self._jobs.values()), self._threads
        for job in jobs:
            job.ask_to_end()
        for thread in threads:
            thread.join(timeout_s)

    def _get(self, number: int) -> Job | None:
        with self._lock:
            return self._jobs.get(number)

    @staticmethod
    def _do(job: Job, work: Callable[[Job], object]) -> None:
        try:
            work(job)
        except Exception as error:
            if not isinstance(error, AppError | RtError | EngineError):
                log.exception("%s broke unexpectedly", job.view.title)
            job.end(error)
        else:
            job.end()

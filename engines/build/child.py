"""A task in a process of its own: what crashes, eats memory or takes long there leaves this one untouched."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from engines.device.budget import says_none_is_left
from engines.errors import BuildCancelled, BuildError, EngineError

CANCEL_POLL_S = 0.1
"""How often the parent looks whether the task was called off."""

END_WAIT_S = 5.0
"""How long a child that was asked to end may take before it is killed."""


NICE = 10
"""How far a child stands back, as Unix counts it: 0 is usual, 19 takes what nobody else wants."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task is."""

    done: int
    total: int
    """0 where nobody knows."""
    what: str


class Task(Protocol):
    """A function at the top of a module, so that the child finds it. What it takes and returns must be picklable."""

    def __call__(self, report: Callable[[Progress], None], *args: Any) -> Any: ...


def run_in_child(
    task: Task,
    *args: Any,
    report: Callable[[Progress], None] = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
    memory_bytes: int | None = None,
) -> Any:
    """Runs ``task(report, *args)`` in a child process and returns its result; blocks the calling thread, which ``report`` is called on.

    ``memory_bytes``: what the child may allocate, where the system can say no (Linux; elsewhere it is not limited).
    Raises the ``EngineError`` that the task raised, ``BuildCancelled`` within a few tenths of a second after ``cancelled`` says so,
    and ``BuildError`` for any other end: an exception, a crash, no memory.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the parent's threads half-way through their work
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(theirs, memory_bytes, task, args), name="ffrt-build", daemon=True)
    with _interrupts_held():
        process.start()
    theirs.close()  # so that the pipe ends when the child does
    try:
        return _follow(process, ours, report, cancelled, memory_bytes)
    finally:
        ours.close()
        _end(process)


def _follow(
    process: SpawnProcess,
    pipe: Connection,
    report: Callable[[Progress], None],
    cancelled: Callable[[], bool],
    memory_bytes: int | None,
) -> Any:
    while True:
        if cancelled():
            raise BuildCancelled("the build was called off")
        if not wait([pipe], CANCEL_POLL_S):
            continue
        try:
            kind, value = pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):  # it ended, perhaps in the middle of a message
            process.join(END_WAIT_S)
            raise BuildError(_last_words(process.exitcode, memory_bytes)) from None
        if kind == "progress":
            report(value)
        elif kind == "result":
            return value
        elif isinstance(value, EngineError):
            raise value
        else:
            raise BuildError(str(value))


def _end(process: SpawnProcess) -> None:
    if process.is_alive():
        process.terminate()
        process.join(END_WAIT_S)
    if process.is_alive():
        process.kill()
    process.join()
    process.close()


def _last_words(exitcode: int | None, memory_bytes: int | None) -> str:
    """For a child that ended without a word."""
    how = f"with status {exitcode}"
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name if -exitcode in set(signal.Signals) else f"signal {-exitcode}"
        how = f"by {name}"
    hint = "the system may have been out of memory; close other programs, or build on another machine"
    if memory_bytes is not None:
        hint = f"it may have needed more than the {memory_bytes / 1e6:.0f} MB it was allowed; allow more"
    return f"the process of the build ended {how} before it was done: {hint}"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A child that starts meanwhile is deaf to Ctrl-C from its first instruction on: it reaches both processes, and while the child still
    loads Python it would end it with a traceback. What came for this thread comes afterwards. Windows starts no process so."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, memory_bytes: int | None, task: Task, args: tuple[Any, ...]) -> None:
    """The child's whole life."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is the one that decides
    _step_back()
    try:
        _limit_memory(memory_bytes)
        pipe.send(("result", task(lambda progress: pipe.send(("progress", progress)), *args)))
    except BrokenPipeError:  # the parent is gone, and nobody is left to be told
        sys.exit(1)
    except Exception as error:  # handed on to the parent, which raises it
        pipe.send(("error", _told(error, memory_bytes)))


def _told(error: Exception, memory_bytes: int | None) -> EngineError | str:
    """What the parent is to hear. Whoever ran out of memory may have said that a file is damaged instead."""
    if memory_bytes is not None and _is_for_want_of_memory(error):
        return f"the build needs more memory than the {memory_bytes / 1e6:.0f} MB it was allowed; allow more"
    if isinstance(error, EngineError):
        return error
    return f"the build failed: {type(error).__name__}: {error}"


def _is_for_want_of_memory(error: BaseException | None) -> bool:
    """By its kind, or by the words of C++ libraries, anywhere in the chain of causes."""
    while error is not None:
        if isinstance(error, MemoryError) or says_none_is_left(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _end_with_parent() -> None:
    """A build whose parent was killed serves nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _step_back() -> None:
    """A line that is live meanwhile comes first."""
    import psutil

    psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if sys.platform == "win32" else NICE)


def _limit_memory(nbytes: int | None) -> None:
    """Caps what the process may have written to, and not its address space: CUDA reserves more of that than any machine has."""
    if nbytes is None or sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = nbytes if hard == resource.RLIM_INFINITY else min(nbytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

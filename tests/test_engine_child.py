"""A task in a child process: what it says arrives, and whatever becomes of it is an error message here."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.context import SpawnProcess

import psutil
import pytest

from engines.build.child import Progress, run_in_child
from engines.errors import BuildCancelled, BuildError, ModelError

Report = Callable[[Progress], None]


def count(report: Report, total: int) -> int:
    for done in range(total):
        report(Progress(done, total, "counting"))
    return os.getpid()


def refuse(report: Report) -> None:
    raise ModelError("this is no model")


def stumble(report: Report) -> None:
    raise KeyError("x")


def die(report: Report, number: int) -> None:
    os.kill(os.getpid(), number)


def leave(report: Report) -> None:
    os._exit(3)


def wait_for_ever(report: Report) -> None:
    report(Progress(0, 0, str(os.getpid())))
    threading.Event().wait()


def wait_deaf(report: Report) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait_for_ever(report)


def fill(report: Report, nbytes: int) -> int:
    return len(bytearray(nbytes))


def misunderstand(report: Report) -> None:
    """As a parser does whose allocation was refused."""
    try:
        raise RuntimeError("Arena alloc failed")
    except RuntimeError as error:
        raise ModelError("the file is damaged") from error


def unpicklable(report: Report) -> object:
    return threading.Lock()


@pytest.fixture(autouse=True)
def no_child_is_left_behind():
    yield
    assert multiprocessing.active_children() == []


def test_result_and_progress_arrive() -> None:
    heard: list[Progress] = []
    pid = run_in_child(count, 3, report=heard.append)
    assert pid != os.getpid()
    assert heard == [Progress(done, 3, "counting") for done in range(3)]


def test_our_own_errors_keep_their_kind() -> None:
    with pytest.raises(ModelError, match="this is no model"):
        run_in_child(refuse)


@pytest.mark.parametrize(("task", "words"), [(stumble, "KeyError: 'x'"), (unpicklable, "pickle")])
def test_other_errors_are_told(task, words: str) -> None:
    with pytest.raises(BuildError, match=words):
        run_in_child(task)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash_is_an_error_message(number: signal.Signals) -> None:
    with pytest.raises(BuildError, match=rf"ended by {number.name}.*memory"):
        run_in_child(die, int(number))


def test_a_silent_end_is_an_error_message() -> None:
    with pytest.raises(BuildError, match="ended with status 3"):
        run_in_child(leave)


@pytest.mark.parametrize("task", [wait_for_ever, wait_deaf])
def test_cancel_ends_the_child(task, monkeypatch) -> None:
    monkeypatch.setattr("engines.build.child.END_WAIT_S", 0.2)
    started: list[int] = []
    with pytest.raises(BuildCancelled):
        run_in_child(task, report=lambda progress: started.append(int(progress.what)), cancelled=lambda: bool(started))
    assert not psutil.pid_exists(started[0])


def test_a_report_that_breaks_ends_the_child() -> None:
    started: list[int] = []

    def report(progress: Progress) -> None:
        started.append(int(progress.what))
        raise RuntimeError("the window is gone")

    with pytest.raises(RuntimeError, match="the window is gone"):
        run_in_child(wait_for_ever, report=report)
    assert not psutil.pid_exists(started[0])


PARENT = """
import sys
sys.path[:] = {path!r}
from engines.build.child import run_in_child
from test_engine_child import wait_for_ever
if __name__ == "__main__":
    run_in_child(wait_for_ever, report=lambda progress: print(progress.what, flush=True))
"""


def test_a_child_ends_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(path=sys.path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate(timeout=60)
    assert psutil.wait_procs([child], timeout=30)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the system must be able to say no")
def test_memory_has_a_cap() -> None:
    with pytest.raises(BuildError, match="more memory than the 600 MB"):
        run_in_child(fill, 2_000_000_000, memory_bytes=600_000_000)
    with pytest.raises(BuildError, match="more memory than the 600 MB"):
        run_in_child(misunderstand, memory_bytes=600_000_000)
    with pytest.raises(ModelError, match="damaged"):
        run_in_child(misunderstand)
    assert run_in_child(fill, 1_000_000, memory_bytes=600_000_000) == 1_000_000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows starts no process with signals held")
def test_ctrl_c_while_the_child_still_loads_python_is_the_parent_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal reaches both; a child that is only just started would end with a traceback."""
    start = SpawnProcess.start

    def start_and_interrupt(process: SpawnProcess) -> None:
        start(process)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", start_and_interrupt)
    assert run_in_child(count, 2) != os.getpid()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "the parent hears it again"

"""Runs a session to its end: by itself, after so many seconds, by Ctrl-C, SIGTERM, or a terminal that closes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from app.errors import AppError
from app.leftovers import sweep_leftovers
from app.report import write_json
from app.session import LiveSession
from app.settings import Settings
from engines.errors import EngineError
from rt.errors import RtError

INTERRUPTED = 130
"""Exit status of a program that a second Ctrl-C ended at once, as shells count it."""


def run_session(session: LiveSession) -> dict[str, Any]:
    """Starts, waits, closes, writes the report where one was asked for, and returns it. Main thread only."""
    settings = session.settings
    sweep_leftovers()
    with stop_signals(session.request_stop):
        session.start()
        try:
            session.wait(settings.run.seconds)
        finally:
            session.close()
    report = session.report()
    if settings.run.report is not None:
        write_json(settings.run.report, report)
    return report


def run_controlled(settings: Settings, port: int, tell: Callable[[str], None]) -> dict[str, Any] | None:
    """As ``run_session``, with a control interface on ``port``: the program ends when it is told to, not when the line does.

    It stays where the first start fails: whoever controls it reads why and tries again. ``tell`` is told that, and where it listens.
    Returns the report of the last run. Main thread only. Raises ``ControlError``, and where nothing was ever live, why.
    """
    from app.control.door import Door
    from app.control.guard import HOST
    from app.studio import Studio

    over = threading.Event()
    studio = Studio(settings)
    door = Door(studio, leave=over.set)
    problem: Exception | None = None
    sweep_leftovers()

    def leave() -> None:
        over.set()
        studio.request_stop()

    with stop_signals(leave):
        try:
            tell(f"control: http://{HOST}:{door.open(port)}; `ffrt ctl state` asks it, `ffrt ctl quit` ends it")
            try:
                studio.start()
            except (AppError, RtError, EngineError) as error:
                problem = error
                tell(f"not live: {error}; `ffrt ctl start` tries again")
            over.wait(settings.run.seconds)
        finally:
            studio.stop()
            door.close()
            report = studio.stop()  # a start that was under way when the first stop came
    if report is None and problem is not None:
        raise problem
    if report is not None and settings.run.report is not None:
        write_json(settings.run.report, report)
    return report


def exit_status(report: dict[str, Any]) -> int:
    """0 when everything that was asked for was delivered to its end; 1 when the line or a sink broke or never worked."""
    broken = any(sink["state"] == "failed" or sink["frames"] == 0 for sink in report["sinks"].values())
    return 1 if report["error"] or broken else 0


@contextmanager
def stop_signals(ask: Callable[[], None]) -> Iterator[None]:
    """The first of the signals asks for an orderly end, the second one ends the process at once."""
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)
        asked = True
        ask()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # a terminal that closes; nohup outlives it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Runs a session to its end: by itself, after so many seconds, by Ctrl-C, SIGTERM, or a terminal that closes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from app.report import write_json
from app.session import LiveSession

INTERRUPTED = 130
"""Exit status of a program that a second Ctrl-C ended at once, as shells count it."""


def run_session(session: LiveSession) -> dict[str, Any]:
    """Starts, waits, closes, writes the report where one was asked for, and returns it. Main thread only."""
    settings = session.settings
    with _stop_signals(session):
        session.start()
        try:
            session.wait(settings.run.seconds)
        finally:
            session.close()
    report = session.report()
    if settings.run.report is not None:
        write_json(settings.run.report, report)
    return report


def exit_status(report: dict[str, Any]) -> int:
    """0 when everything that was asked for was delivered to its end; 1 when the line or a sink broke or never worked."""
    broken = any(sink["state"] == "failed" or sink["frames"] == 0 for sink in report["sinks"].values())
    return 1 if report["error"] or broken else 0


@contextmanager
def _stop_signals(session: LiveSession) -> Iterator[None]:
    """The first of the signals asks for an orderly end, the second one ends the process at once."""
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)
        asked = True
        session.request_stop()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # a terminal that closes; nohup outlives it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

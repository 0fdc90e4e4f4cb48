"""A run in the terminal, and how it ended: what `--headless`, `demo` and `bench` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app import console
from app.loading import loading

if TYPE_CHECKING:
    from app.settings import Settings


def run(settings: Settings, as_json: bool) -> int:
    """Goes live until the end that the settings name or Ctrl-C, prints the report; the status is the program's."""
    with loading():
        from app.run import run_session
        from app.session import LiveSession

        session = LiveSession(settings)
    for remark in session.remarks():
        console.note(remark)
    return tell(run_session(session), as_json)


def run_controlled(settings: Settings, port: int, as_json: bool) -> int:
    """As ``run``, but started and stopped through the control interface at ``port``."""
    from app.run import run_controlled

    report = run_controlled(settings, port, console.note)
    return 0 if report is None else tell(report, as_json)


def tell(report: dict[str, Any], as_json: bool) -> int:
    """Prints a run's report and, if nothing told it before, its error. Returns the program's status."""
    from app.run import exit_status

    console.print_json(report) if as_json else console.print_report(report)
    said = {sink.get("error") for sink in report["sinks"].values()}  # each was logged when it happened
    if report["error"] and report["error"] not in said:
        console.fail(report["error"])
    return exit_status(report)

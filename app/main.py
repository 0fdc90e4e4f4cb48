"""The `ffrt` program's first lines: loads as little as it can before Ctrl-C is taken care of."""

from __future__ import annotations

import signal

from app.loading import loading


def main() -> None:
    """Until a session runs there is nothing to lose, so Ctrl-C ends the program at once and without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with loading():
        from app.cli import main as run
    run()

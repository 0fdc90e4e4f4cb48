"""The `ffrt` program's first lines: loads as little as it can before Ctrl-C is taken care of."""

from __future__ import annotations

import io
import os
import signal
import sys

from app.loading import loading


def main() -> None:
    """Until a session runs there is nothing to lose, so Ctrl-C ends the program at once and without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that a terminal or a file of another encoding lacks is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    os.environ.setdefault("OPENCV_LOG_LEVEL", "ERROR")  # what it warns of is said in our own words
    with loading():
        from app.cli import main as run
    run()

"""What the process says of itself, against what another process saw of it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

TICK_S = 0.011
"""The operating system counts the beginnings of processes in hundredths."""


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="the two processes share one monotonic clock there")
def test_the_age_of_a_process_lies_between_what_its_parent_saw() -> None:
    """Not earlier than it was asked for, not later than it was there: by one clock that both read."""
    code = "import time; from app.usage import process_age_s; print(time.monotonic() - process_age_s())"
    asked_s = time.monotonic()
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    there_s = time.monotonic()
    began_s = float(child.communicate()[0])
    assert asked_s - TICK_S <= began_s <= there_s + TICK_S

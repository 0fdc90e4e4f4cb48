"""How long a person waits: from the start of the program to the first picture with the face on, in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from app.errors import AppError
from app.report import machine, versions

STEPS = {"loaded": "the program is loaded", "prepared": "models are open, the face is prepared", "first_frame": "the first picture is out"}
"""Steps of a report's ``startup_s``, in order, and what each means."""


def run_start_bench(runs: int, source: Path, arguments: Sequence[str], progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """JSON-ready: ``startup_s`` {step: {``median``, ``max``}}, ``runs``, ``versions``, ``machine``.

    ``arguments``: further ones of `ffrt --headless`. Raises ``AppError`` with the program's own words when a run fails.
    """
    command = [sys.executable, "-c", "from app.main import main; main()", "--headless", "--source", str(source)]
    command += ["--input", "synthetic:size=1280x720,frames=1", "--null", "--json", *arguments]
    found = []
    for done in range(runs):
        progress(done, runs, f"run {done + 1}")
        found.append(_startup(command))
    progress(runs, runs, "done")
    steps = {name: [one[name] for one in found] for name in STEPS}
    return {
        "startup_s": {name: {"median": round(median(times), 3), "max": max(times)} for name, times in steps.items()},
        "runs": runs,
        "versions": versions(),
        "machine": machine(),
    }


def _startup(command: Sequence[str]) -> dict[str, float]:
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode != 0:
        raise AppError(f"a run of `ffrt --headless` failed: {run.stderr.strip()}")
    report: dict[str, float] = json.loads(run.stdout)["startup_s"]
    return report

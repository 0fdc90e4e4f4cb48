"""How old the picture is at a viewer of the stream: through a real server, read from the pixels in another process."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import AppError
from app.report import write_json
from app.run import run_session
from app.session import LiveSession
from app.settings import Settings
from rt.address import shown

JOIN_S = 4.0
"""What the player may need to join: a key frame comes every two seconds."""


def run_stream_bench(settings: Settings, seconds: float, report_file: Path | None) -> dict[str, Any]:
    """Streams to the one address in ``settings`` and plays it back beside. Returns the run's report with a part ``viewer``.

    Ends early, with ``AppError``, where the player does.
    """
    url = settings.output.streams[0]
    command = [sys.executable, "-P", "-m", "app.bench.player", url, str(seconds)]
    session = LiveSession(settings)

    def watch() -> None:
        if player.wait() != 0:
            session.request_stop()

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as player:
        watching = threading.Thread(target=watch, name="viewer watch")
        watching.start()
        try:
            report = run_session(session)
            printed, errors = player.communicate(timeout=30)
        finally:
            player.kill()
            watching.join()
    if player.returncode != 0:
        why = errors.strip().splitlines()[-1] if errors.strip() else "no word why"
        raise AppError(f"the stream could not be played back from {shown(url)}: {why}; is a server there that plays, too?")
    report["viewer"] = summary(json.loads(printed))
    if report_file is not None:
        write_json(report_file, report)
    return report


def summary(played: dict[str, Any]) -> dict[str, Any]:
    """What a viewer got: pictures, those whose time code could not be read, those out of order, and their age. Repeats are in order."""
    values = played["timecodes"]
    read = [value for value in values if value is not None]
    ages = np.array(played["ages_ms"] or [np.nan])
    names = ("p50", "p95", "p99")
    return {
        "frames": len(values),
        "unreadable": len(values) - len(read),
        "out_of_order": sum(b < a for a, b in itertools.pairwise(read)),
        "age_ms": {name: round(float(np.percentile(ages, int(name[1:]))), 1) for name in names} | {"max": round(float(ages.max()), 1)},
    }

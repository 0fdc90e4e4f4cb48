"""What the tests of the control interface share: a real server around a real Studio, and `ffrt` as a child."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import ROOT

from app.control.server import ControlServer
from app.control.service import ControlService
from app.settings import InputSettings, OutputSettings, Settings
from app.studio import Studio

TOKEN = "a-token-of-the-test"
SMALL = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30"), output=OutputSettings(null=True))
FFRT = [sys.executable, "-c", "from app.main import main; main()"]
PATIENCE_S = 60.0


@contextmanager
def serving(token: str = TOKEN) -> Iterator[ControlServer]:
    """On a port that is free; what was begun is ended."""
    studio = Studio(SMALL)
    made = ControlServer(ControlService(studio), token, 0)
    made.start()
    try:
        yield made
    finally:
        studio.stop()
        made.close()
        studio.stop()


def environment_in(folder: Path) -> dict[str, str]:
    """Of a child that keeps everything in ``folder``."""
    return {**os.environ, "FFRT_CONFIG": str(folder), "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}


def ffrt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run to its end."""
    call = [*FFRT, *words]
    return subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment_in(folder))


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*FFRT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment_in(folder))

"""Runs a command with virtual cameras that are files (fake_v4l2.c), for pyvirtualcam's own v4l2 backend to open."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def build(folder: Path) -> Path:
    """The library to preload. Needs gcc and Linux."""
    library = folder / "fake_v4l2.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def run(library: Path, prefix: Path, command: Sequence[str], devices: int = 1) -> subprocess.CompletedProcess[str]:
    """What is sent to /dev/video0 lands in PREFIX0.raw, the format the driver was told in PREFIX0.fmt."""
    fake = {"LD_PRELOAD": str(library), "FFRT_FAKE_V4L2": str(prefix), "FFRT_FAKE_V4L2_N": str(devices)}
    return subprocess.run(command, check=False, env={**os.environ, **fake}, capture_output=True, text=True, timeout=60)

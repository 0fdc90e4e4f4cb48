"""Webcams that are files (fake_camera.c), for OpenCV's own V4L2 backend in a program of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_suffix(".c")


class FakeCameras:
    """A folder that stands for /dev."""

    def __init__(self, folder: Path) -> None:
        gcc = shutil.which("gcc")
        if sys.platform != "linux" or gcc is None or not Path("/usr/include/linux/videodev2.h").exists():
            pytest.skip("needs Linux, a C compiler and kernel headers")
        self.dev = folder / "dev"
        self.dev.mkdir()
        self._links = folder / "by-id"
        self._links.mkdir()
        library = folder / "fake_camera.so"
        subprocess.run([gcc, "-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, SOURCE, "-ldl"], check=True)
        self.environment = {**os.environ, "LD_PRELOAD": str(library), "FFRT_FAKE_CAMERAS": str(self.dev)}

    def plug_in(self, number: int, link: str = "") -> Path:
        """As videoNUMBER; ``link`` is what udev calls it."""
        (self.dev / f"video{number}").touch()
        if link:
            (self._links / link).symlink_to(self.dev / f"video{number}")
        return self._links / link if link else self.dev / f"video{number}"

    def pull_out(self, number: int) -> None:
        device = self.dev / f"video{number}"
        for link in self._links.iterdir():
            if link.readlink() == device:
                link.unlink()
        device.unlink()

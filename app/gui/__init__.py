"""The window. Qt is imported in this room alone, and only once a window is asked for."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.errors import AppError, MissingError
from app.settings import Settings

LIBRARIES = "libegl1 libgl1 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libdbus-1-3"
"""Debian's packages that Qt loads and a small system may lack."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the window is opened."""

    restore: bool = False
    """Nothing was asked for on the command line: as it was left."""
    minimised: bool = False
    live: bool = False
    control: int | None = None
    """Port of the control interface; None opens it where the person has switched it on."""
    announce: Callable[[int | None], None] = lambda port: None
    """Is told the control interface's port, on some thread."""


def open_window(settings: Settings, opening: Opening | None = None) -> int:
    """Runs the window to its end; the exit status. Main thread. Raises ``MissingError`` or ``AppError`` where there can be none."""
    if importlib.util.find_spec("PySide6") is None:
        raise MissingError("the window needs PySide6, which is not installed; run `pip install 'ffrt[gui]'`, or add --headless")
    check_display(os.environ, sys.platform)
    try:
        from app.gui.application import run
    except ImportError as error:
        raise MissingError(
            f"the window cannot be opened ({error}); on Debian or Ubuntu run `apt install {LIBRARIES}`, or add --headless"
        ) from error
    return run(settings, opening or Opening())


def check_display(environment: Mapping[str, str], platform: str) -> None:
    """Qt would end the process where there is no display. Raises ``AppError`` instead."""
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if platform == "linux" and not any(environment.get(name) for name in wanted):
        raise AppError("there is no display to open the window on; start ffrt in a desktop session, or add --headless")

"""The window. Qt is imported in this room alone, and only once a window is asked for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
    debug: bool = False
    """A watchdog measures for how long the event loop did not come round, and says so in log and report."""
    control: int | None = None
    """Port of the control interface; None opens it where the person has switched it on."""
    announce: Callable[[int | None], None] = lambda port: None
    """Is told the control interface's port, on some thread."""
    is_wanted: Callable[[], bool] = lambda: False
    """Whether somebody wishes the window to come to the front; asked again and again, on the main thread."""


def open_window(settings: Settings, opening: Opening | None = None) -> int:
    """Runs the window to its end; the exit status. Main thread. Raises ``MissingError`` or ``AppError`` where there can be none."""
    with _window_possible():
        from app.gui.application import run
    return run(settings, opening or Opening())


def measure_window(settings: Settings, seconds: float, progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """``app.gui.measure.run_gui_bench``. Main thread. Raises as ``open_window``."""
    with _window_possible():
        from app.gui.measure import run_gui_bench
    return run_gui_bench(settings, seconds, progress)


@contextmanager
def _window_possible() -> Iterator[None]:
    """Around the import of what needs Qt."""
    if importlib.util.find_spec("PySide6") is None:
        raise MissingError("the window needs PySide6, which is not installed; run `pip install 'ffrt[gui]'`, or add --headless")
    check_display(os.environ, sys.platform)
    check_binding(importlib.metadata.version("shiboken6"), sys.version_info[:3])
    try:
        yield
    except ImportError as error:
        raise MissingError(
            f"the window cannot be opened ({error}); on Debian or Ubuntu run `apt install {LIBRARIES}`, or add --headless"
        ) from error


def check_display(environment: Mapping[str, str], platform: str) -> None:
    """Qt would end the process where there is no display. Raises ``AppError`` instead."""
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if platform == "linux" and not any(environment.get(name) for name in wanted):
        raise AppError("there is no display to open the window on; start ffrt in a desktop session, or add --headless")


def check_binding(version: str, python: tuple[int, ...]) -> None:
    """Raises ``MissingError`` for a PySide6 (or its shiboken6) of 6.12 or later before Python 3.12.

    Their wheels hand out None, True and False without counting: from 3.12 on these are immortal, before that every call of Qt takes one
    reference away until none is left, which ends the process (measured: ``Signal.emit`` takes a True, a method without a result a None).
    """
    if python < (3, 12) and tuple(int(part) for part in version.split(".")[:2]) >= (6, 12):
        raise MissingError(
            f"PySide6 {version} ends the program after some minutes on Python {python[0]}.{python[1]}; "
            "run `pip install 'PySide6-Essentials<6.12'`, or use Python 3.12 or later"
        )

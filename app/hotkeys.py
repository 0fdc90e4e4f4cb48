"""Hotkeys that work while another program has the keyboard, through pynput (LGPLv3, so an optional install). Off unless asked for."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from app.errors import MissingError

log = logging.getLogger(__name__)

KEYS: Mapping[str, str] = {
    "live": "<ctrl>+<alt>+l",
    "snapshot": "<ctrl>+<alt>+s",
    **{f"face {number}": f"<ctrl>+<alt>+{number}" for number in range(1, 10)},
}
"""What is done → the keys, as pynput writes them."""

WAYLAND = (
    "Wayland lets no program hear keys that are meant for another; bind keys to `ffrt ctl start`, `stop`, `snapshot` and `identity` in the "
    "settings of your desktop instead (see --control)"
)

NO_SCREEN = "there is no X server to hear keys from; start ffrt in a desktop session"

NO_PYNPUT = "hotkeys everywhere need pynput, which is not installed; run `pip install 'ffrt[hotkeys]'`"


def problem(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """Why they cannot work here; empty where they can."""
    if platform == "linux" and (environment.get("XDG_SESSION_TYPE") == "wayland" or environment.get("WAYLAND_DISPLAY")):
        return WAYLAND
    if platform == "linux" and not environment.get("DISPLAY"):
        return NO_SCREEN
    if importlib.util.find_spec("pynput") is None:
        return NO_PYNPUT
    return ""


class Hotkeys:
    """``start`` and ``stop`` belong to one thread."""

    def __init__(self) -> None:
        self._listener: Any = None

    def start(self, acts: Mapping[str, Callable[[], None]]) -> None:
        """``acts``: name of ``KEYS`` → what it does, on a thread of pynput's; it must return at once. Raises ``MissingError``.

        On macOS the system asks the person for leave first, and no key is heard before.
        """
        if self._listener is not None:
            return
        try:
            from pynput import keyboard
        except Exception as error:  # it raises whatever its backend does, an ImportError of Xlib's or an OSError
            first = str(error).strip().partition("\n")[0]
            raise MissingError(f"hotkeys everywhere cannot be had here ({first}); the window's own keys go on working") from error
        self._listener = keyboard.GlobalHotKeys({KEYS[name]: act for name, act in acts.items()})
        self._listener.start()
        self._listener.wait()

    def stop(self) -> None:
        """May be called twice."""
        if self._listener is not None:
            self._listener.stop()
            self._listener.join(5.0)
            self._listener = None


def shown_keys(name: str) -> str:
    """``Ctrl+Alt+L``, for people."""
    return "+".join(key.strip("<>").capitalize() for key in KEYS[name].split("+"))

"""What the program remembers between starts: the settings of each camera, the consent, the window's own things."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.errors import StoreError
from app.files import locked, read_text, write_atomically
from app.folders import config_folder
from app.presets import Preset

VERSION = 1

CAMERAS_MAX = 50
"""Cameras whose settings are remembered; the one used longest ago gives way."""


class State(BaseModel):
    """Immutable; ``model_copy(update=…)`` makes the next one."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = Field(VERSION, ge=1, le=VERSION)
    consent: bool = False
    """The person has agreed to use only faces that may be used."""
    camera: str | None = None
    """The one used last, a key of ``cameras``."""
    cameras: dict[str, Preset] = {}
    """Camera (its name where it has one, else its SPEC) → what was set when it was last used; that of the last one stands last."""
    preset: str | None = None
    """Name of the preset that was chosen last, which may have been removed since."""
    language: str | None = None
    """Code of the window's language, as in ``de``; None is the system's."""
    theme: Literal["light", "dark"] | None = None
    """None is the system's."""
    start_minimised: bool = False
    devices: tuple[str, ...] = ()
    """What worked on pictures last, as ``RunSettings.devices``."""
    gpu_memory_mb: int = Field(0, ge=0)
    hotkeys: bool = False
    """Keys that work while another program has the keyboard."""
    start_live: bool = False
    """Go live as soon as the program has started."""
    control: bool = False
    """Other programs of this machine may control the window's line."""
    window: dict[str, str] = {}
    """The window's own: sizes and places as it writes them."""

    def used(self, camera: str, preset: Preset) -> State:
        """With ``preset`` as what was last set for ``camera``."""
        others = {name: kept for name, kept in self.cameras.items() if name != camera}
        cameras = dict(list({**others, camera: preset}.items())[-CAMERAS_MAX:])
        return self.model_copy(update={"camera": camera, "cameras": cameras})


class StateFile:
    """Any thread; several processes may share it."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: ``state.json`` in the user's configuration otherwise. It need not exist."""
        self.file = file or config_folder() / "state.json"

    def load(self) -> State:
        """What was written last. What cannot be read, or was written by a newer ffrt, is moved aside, logged, and a fresh state returned:
        it must never keep the program from starting. Raises nothing."""
        try:
            text = read_text(self.file)
            return State() if text is None else State.model_validate_json(text)
        except (StoreError, ValidationError) as error:
            self._put_aside(error)
            return State()

    def change(self, change: Callable[[State], State]) -> State:
        """Reads, changes and writes as one step, whatever other processes do. Returns what was written. Raises ``StoreError``."""
        with locked(self.file):
            state = change(self.load())
            write_atomically(self.file, json.dumps(state.model_dump(mode="json"), ensure_ascii=False, indent=1).encode())
        return state

    def _put_aside(self, error: Exception) -> None:
        aside = self.file.with_name(f"{self.file.name}.unreadable")
        logging.getLogger(__name__).warning("%s cannot be read by this ffrt; it is kept as %s, and ffrt starts afresh", self.file, aside)
        logging.getLogger(__name__).info("what is wrong with it: %s", error)
        with contextlib.suppress(OSError):
            os.replace(self.file, aside)

"""What the window remembers from one start to the next. Written whole or not at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, ValidationError

from app.report import write_json
from app.settings import LookSettings

log = logging.getLogger(__name__)


class WindowState(BaseModel):
    """Replaced as a whole. Stream keys are not kept: they are secrets."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    consented: bool = False
    theme: str = "system"
    language: str = "system"
    photos: tuple[Path, ...] = ()
    """The newest first."""
    photo: Path | None = None
    camera: str = ""
    """As an input SPEC."""
    looks: dict[str, LookSettings] = {}
    """Input SPEC → the look that was last used with it."""
    virtual_camera: bool = False
    record_folder: Path | None = None
    mirrored: bool = True
    geometry: str = ""
    """Qt's own, base64."""


def state_file(environment: Mapping[str, str] = os.environ) -> Path:
    """In ``FFRT_CONFIG`` where it is set, else in the user's configuration folder of this system."""
    chosen = environment.get("FFRT_CONFIG", "")
    folder = Path(chosen).expanduser() if chosen else user_config_path("ffrt", appauthor=False)
    return folder / "window.json"


def load_state(file: Path) -> WindowState:
    """A file that is missing or broken is as good as none; a broken one is kept beside, so that nothing is lost."""
    try:
        return WindowState.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return WindowState()
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be read and is set aside: %s", file, error)
        try:
            os.replace(file, file.with_suffix(".broken.json"))
        except OSError as problem:
            log.warning("…nor set aside: %s", problem)
        return WindowState()


def save_state(file: Path, state: WindowState) -> None:
    """Atomically. Raises ``AppError``."""
    write_json(file, state.model_dump(mode="json"))

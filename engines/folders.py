"""Folders of the user's, and paths as people write them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from engines.errors import FolderError


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """What can be made again: ``FFRT_CACHE`` where it is set, else the user's cache folder of this system. Not made yet.

    Raises ``FolderError``.
    """
    return chosen_folder("FFRT_CACHE", _usual_cache, environment)


def _usual_cache() -> Path:
    from platformdirs import user_cache_path  # takes a hundredth of a second, which a start with FFRT_CACHE need not pay

    return user_cache_path("ffrt", appauthor=False)


def chosen_folder(variable: str, usual: Callable[[], Path], environment: Mapping[str, str] = os.environ) -> Path:
    """What the environment says under ``variable``, else the ``usual`` one of this system.

    Raises ``FolderError`` where neither is a place: an unknown user's home, or that of a user who has none.
    """
    said = environment.get(variable, "")
    try:
        folder = Path(said).expanduser() if said else usual()
    except (RuntimeError, ValueError) as error:  # what pathlib raises for a home that nobody knows
        raise _no_folder(variable, said) from error
    if "\0" in str(folder) or (not said and not folder.is_absolute()):  # platformdirs leaves `~` where no home is known
        raise _no_folder(variable, said)
    return folder


def written_path(text: str) -> Path:
    """The path that a person wrote; ``~`` is their home and ``~NAME`` another's. One that nobody has is a name like every other."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _no_folder(variable: str, said: str) -> FolderError:
    if said:
        return FolderError(f"the environment says {variable}={said!r}, which is no folder's path; give one, as in {variable}=/data/ffrt")
    return FolderError(f"no home folder of this user is known; set HOME to one, or {variable} to a folder for ffrt's files")

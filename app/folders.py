"""Where the program keeps what a person made: presets, addresses, the gallery, the last state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

CONFIG_VARIABLE = "FFRT_CONFIG"
"""Environment: the folder for all of it, instead of those of the user."""


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``FFRT_CONFIG`` where it is set, else the user's configuration folder of this system. Not made yet."""
    chosen = environment.get(CONFIG_VARIABLE, "")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_config_path

    return user_config_path("ffrt", appauthor=False)


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """For photos: ``FFRT_CONFIG`` where it is set, else the user's data folder of this system. Not made yet."""
    if environment.get(CONFIG_VARIABLE):
        return config_folder(environment)
    from platformdirs import user_data_path

    return user_data_path("ffrt", appauthor=False)

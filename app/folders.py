"""Where the program keeps what a person made: presets, addresses, the gallery, the last state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from engines.folders import chosen_folder

CONFIG_VARIABLE = "FFRT_CONFIG"
"""Environment: the folder for all of it, instead of those of the user."""


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``FFRT_CONFIG`` where it is set, else the user's configuration folder of this system. Not made yet. Raises ``FolderError``."""
    return chosen_folder(CONFIG_VARIABLE, _usual_config, environment)


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """For photos: ``FFRT_CONFIG`` where it is set, else the user's data folder of this system. Not made yet. Raises ``FolderError``."""
    return chosen_folder(CONFIG_VARIABLE, _usual_data, environment)


def _usual_config() -> Path:
    from platformdirs import user_config_path

    return user_config_path("ffrt", appauthor=False)


def _usual_data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("ffrt", appauthor=False)

"""What an ffrt that was killed has left half written."""

from __future__ import annotations

from app.folders import config_folder, data_folder
from engines.folders import cache_folder
from engines.store.shelf import default_folder
from engines.unfinished import sweep


def sweep_leftovers() -> None:
    """Takes it away; what another ffrt writes now is let be. Some milliseconds, at the start of a program. Any thread. Raises nothing.

    While it runs, every file that is written sweeps its own folder.
    """
    config, data = config_folder(), data_folder()
    for folder in (config, config / "presets", data, *(data / "gallery").glob("*"), default_folder(), cache_folder() / "arrays"):
        sweep(folder)

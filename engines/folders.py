"""Where the program keeps what it can make again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``FFRT_CACHE`` where it is set, else the user's cache folder of this system. Not made yet."""
    chosen = environment.get("FFRT_CACHE", "")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # takes a hundredth of a second, which a start with FFRT_CACHE need not pay

    return user_cache_path("ffrt", appauthor=False)

"""Small arrays that are read out of large model files: kept in the cache folder, by the SHA-256 of the file that they are from."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np

from engines.folders import cache_folder
from engines.unfinished import write_whole

log = logging.getLogger(__name__)


def kept(sha256: str, what: str, read: Callable[[], np.ndarray]) -> np.ndarray:
    """The array called ``what`` of the file of that hash: as it was kept, else what ``read`` gives, which is then kept.

    Any thread. A cache that cannot serve costs time, and is said in the log. Raises what ``read`` raises.
    """
    path = cache_folder() / "arrays" / f"{sha256}-{what}.npy"
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, EOFError) as error:  # what NumPy raises for a damaged file
        log.warning("%s cannot be used (%s) and is made anew", path, error)
    values = read()
    try:
        _write(path, values)
    except OSError as error:
        log.warning("%s of the model %s is read anew at every start: %s", what, sha256[:8], error)
    return values


def _write(path: Path, values: np.ndarray) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: np.save(file, values, allow_pickle=False))

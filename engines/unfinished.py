"""Files that are whole or not there: written beside their place, flushed, then renamed.

A process that is killed meanwhile leaves an unfinished file behind. Whoever writes holds it (a lock that ends with the process; on Windows
the open file), so that what is held by nobody can be told and taken away.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

ENDING = ".unfinished"

LEFT_S = 5.0
"""A file that was touched later is let be: it may have been made and not be held yet."""


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Has ``write`` fill a file, readable by the user alone, that takes the place of ``path`` once it is on the disk.

    The folder must be there; what others left unfinished in it is taken away. Any thread. Raises ``OSError``, and what ``write`` raises;
    what was at ``path`` before is then as it was.
    """
    sweep(path.parent)
    with unfinished(path.parent, path.name) as file:
        write(file)
        settle(file)
        os.replace(file.name, path)


@contextmanager
def unfinished(folder: Path, name: str) -> Iterator[IO[bytes]]:
    """A new file in ``folder``, open and held; it is gone at the end unless it was renamed, once settled. Raises ``OSError``."""
    with tempfile.NamedTemporaryFile(prefix=f".{name[:40]}-", suffix=ENDING, dir=folder, delete=False) as file:
        try:
            _hold(file.fileno())
            yield file
        finally:
            file.close()
            with suppress(OSError):  # it has its place
                os.unlink(file.name)


def settle(file: IO[bytes]) -> None:
    """All of an ``unfinished`` file is on the disk; it can be renamed and not be written to any more. Raises ``OSError``."""
    file.flush()
    os.fsync(file.fileno())
    if sys.platform == "win32":  # which renames no open file
        file.close()


def sweep(folder: Path) -> None:
    """Takes away what processes that are gone left unfinished in ``folder``, which need not be there. Raises nothing."""
    for left in folder.glob(f".*{ENDING}"):
        with suppress(OSError):  # another sweeps too, or may not
            found = left.lstat()
            if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > LEFT_S:  # a link, a pipe or a folder is none of ours
                _take_away(left)


if sys.platform == "win32":

    def _hold(_handle: int) -> None:
        """It is open, which is enough."""

    def _take_away(left: Path) -> None:
        left.unlink()

else:
    import fcntl

    def _hold(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _take_away(left: Path) -> None:
        with left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()

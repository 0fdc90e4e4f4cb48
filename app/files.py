"""Files that are whole or not there: written beside their place, flushed, then renamed."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from app.errors import StoreError

LOCK_S = 10.0
"""How long another ffrt may hold a file that is to be changed: each change takes milliseconds."""


STALE_S = 3600.0
"""A file that is being written is done in less."""


def write_atomically(path: Path, data: bytes) -> None:
    """Makes the folder; readable by the user alone, as temporary files are. Raises ``StoreError``; the file of before is then as it was."""
    part: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}-", suffix=".part", dir=path.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _sweep(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror or error}); allow it, or free some space") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Removes what a program that was killed while it wrote has left beside ``path``."""
    for left in path.parent.glob(f".{glob.escape(path.name[:40])}-*.part"):
        with suppress(OSError):  # of another program that has just finished, or of another user
            if time.time() - left.stat().st_mtime > STALE_S:
                left.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps other processes and threads from changing ``path`` meanwhile. Raises ``StoreError`` when one does not let go."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(path.with_name(f".{path.name}.lock")))
        with lock.acquire(timeout=LOCK_S):
            yield
    except Timeout:
        raise StoreError(f"{path} is being changed by another ffrt for more than {LOCK_S:g} s; end that one, then try again") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be changed ({error.strerror or error}); allow it, or free some space") from error


def read_text(path: Path) -> str | None:
    """None where there is no such file. Raises ``StoreError`` for one that cannot be read or is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise StoreError(f"{path} is not text; give a file that ffrt wrote") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}); allow it") from error

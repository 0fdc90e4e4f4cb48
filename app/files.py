"""The user's files: each is whole or not there, and changed by one ffrt at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.errors import StoreError
from engines.unfinished import write_whole

LOCK_S = 10.0
"""How long another ffrt may hold a file that is to be changed: each change takes milliseconds."""


def write_atomically(path: Path, data: bytes) -> None:
    """Makes the folder; readable by the user alone, as temporary files are. Raises ``StoreError``; the file of before is then as it was."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror or error}); allow it, or free some space") from error


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

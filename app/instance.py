"""The program that is open: one window a user, and where the control interface of the newest ffrt listens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.errors import StoreError
from app.files import read_text, write_atomically
from app.folders import data_folder

LOCK = "window.lock"
WINDOW, CONTROL = "window.json", "control.json"

WISH = "window.show"
"""A file that a second ffrt lays down and the window takes away when it has come to the front."""

ANSWER_S, LOOK_S = 5.0, 0.05
"""How long a second ffrt waits for that, and how often it looks. The window looks five times a second."""


class Running(BaseModel):
    """What a program says of itself; stale where it was killed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    port: int | None = Field(None, ge=1, le=65535)
    """Of its control interface."""


class Instance:
    """The window's claim to be the only one, held until ``close`` or the end of the process, however it ends. One thread."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: the user's data folder otherwise."""
        self._folder = folder or data_folder()
        self._lock = FileLock(str(self._folder / LOCK))

    def claim(self) -> Running | None:
        """None where the claim is ours; else who holds it. Raises ``StoreError`` where the folder cannot be written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            return _read(self._folder / WINDOW) or Running(pid=0)
        except OSError as error:
            raise StoreError(f"{self._folder} cannot be written ({error.strerror or error}); allow it") from error
        self.announce(None)
        self.take_wish()  # of somebody whom the one before did not answer any more
        return None

    def announce(self, port: int | None) -> None:
        """Says where the window's control interface listens, once the claim is ours."""
        write_atomically(self._folder / WINDOW, Running(pid=os.getpid(), port=port).model_dump_json().encode())

    def take_wish(self) -> bool:
        """Whether a second ffrt wishes the window to come to the front; once. Microseconds."""
        try:
            (self._folder / WISH).unlink()
        except OSError:
            return False
        return True

    def ask(self) -> bool:
        """Of whoever holds the claim, to come to the front. False where nobody did in time."""
        wish, asked = self._folder / WISH, time.monotonic()
        try:
            wish.touch()
            while wish.exists():
                if time.monotonic() - asked > ANSWER_S:
                    wish.unlink(missing_ok=True)
                    return False
                time.sleep(LOOK_S)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Gives the claim back."""
        if self._lock.is_locked:
            self.take_wish()
            (self._folder / WINDOW).unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def bring_forward(other: Running, instance: Instance) -> str:
    """Brings the other's window to the front; one sentence on what became of it."""
    who = f" (process {other.pid})" if other.pid else ""
    if instance.ask():
        return f"ffrt is open already{who}; its window was brought to the front"
    return f"ffrt is open already{who} and does not answer; use its window, end that process, or run a second line with --headless"


def announce_control(port: int, folder: Path | None = None) -> None:
    """For `ffrt ctl`: the newest counts. Raises ``StoreError``."""
    write_atomically((folder or data_folder()) / CONTROL, Running(pid=os.getpid(), port=port).model_dump_json().encode())


def withdraw_control(folder: Path | None = None) -> None:
    """Unless another has announced itself meanwhile."""
    place = (folder or data_folder()) / CONTROL
    found = _read(place)
    if found is not None and found.pid == os.getpid():
        place.unlink(missing_ok=True)


def control_port(folder: Path | None = None) -> int | None:
    """The newest that was announced and not withdrawn; whether it still answers is seen when it is asked."""
    found = _read((folder or data_folder()) / CONTROL)
    return None if found is None else found.port


def _read(place: Path) -> Running | None:
    try:
        text = read_text(place)
        return None if text is None else Running.model_validate_json(text)
    except (StoreError, ValidationError):  # written by nobody who can be talked to
        return None

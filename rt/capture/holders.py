"""Which programs have a device open, so that a person need not guess which one to close. Linux, and this user's programs alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def holders(device: Path, proc: Path = PROC) -> tuple[str, ...]:
    """``zoom (process 4711)`` for every other program that has ``device`` open; tens of milliseconds. Raises nothing: empty elsewhere."""
    place = os.path.realpath(device)
    own = str(os.getpid())
    return tuple(
        f"{_name(folder)} (process {folder.name})" for folder in _processes(proc) if folder.name != own and _has_open(folder, place)
    )


def used_by(device: Path, proc: Path = PROC) -> str:
    """A clause for a sentence, or an empty text."""
    found = holders(device, proc)
    return f"it is in use by {', '.join(found)}" if found else ""


def _processes(proc: Path) -> Iterator[Path]:
    try:
        yield from sorted((folder for folder in proc.iterdir() if folder.name.isdigit()), key=lambda folder: int(folder.name))
    except OSError:  # a system that has none
        return


def _has_open(folder: Path, place: str) -> bool:
    try:
        return any(os.readlink(handle) == place for handle in os.scandir(folder / "fd"))
    except OSError:  # another user's, or gone meanwhile
        return False


def _name(folder: Path) -> str:
    """Of a script its own name, not its interpreter's."""
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return "a program"
    names = [Path(word).name for word in words if word and not word.startswith("-")]
    is_script = len(names) > 1 and names[0].startswith("python")
    return (names[1] if is_script else names[0]) if names else "a program"

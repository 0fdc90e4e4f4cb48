"""Files that a run is to write or to read: told before anything is loaded when they cannot be."""

from __future__ import annotations

import os
from pathlib import Path

from app.errors import UsageError
from app.settings import Settings, SourceSettings
from engines.errors import PhotoError
from rt.capture.media import place_of


def check_places(settings: Settings) -> None:
    """Raises ``UsageError`` for a recording or a report that would overwrite a photo, the input, each other, or another kind of file."""
    of_people = [photo for source in settings.people.sources for photo in source.photos]
    read = {
        "a photo of --source": list(settings.source.photos),
        "a photo that a person is to wear": of_people,
        "the input": _input(settings),
    }
    record, report = settings.output.record, settings.run.report
    device = settings.output.virtual_camera
    if device and any(_is_same(Path(device), place) for place in _camera(settings)):
        raise UsageError(f"the virtual camera {device} was given, which is the input: it would film itself; choose another of the two")
    if record is not None:
        _refuse(record, "--record", read)
    if report is not None:
        _refuse(report, "--report", {**read, "the recording": [] if record is None else [record]})
        check_report(report)


def check_photos(source: SourceSettings) -> None:
    """Raises ``PhotoError`` for a photo that is not there: while nothing runs it would be found out at the start alone."""
    for photo in source.photos:
        if not photo.is_file():
            raise PhotoError(f"the photo {photo} is not there; give one that is, nothing was changed")


def _input(settings: Settings) -> list[Path]:
    place = place_of(settings.input.spec)
    return [Path(place)] if "://" not in place else []


def _camera(settings: Settings) -> list[Path]:
    """By number or by path."""
    spec = settings.input.spec.removeprefix("camera:")
    return [Path(f"/dev/video{spec}")] if spec.isdecimal() else [Path(spec)] if spec.startswith("/dev/") else []


def _refuse(path: Path, option: str, others: dict[str, list[Path]]) -> None:
    for what, places in others.items():
        if any(_is_same(path, place) for place in places):
            raise UsageError(f"{option} {path} was given, which is {what}; give another file, that one would be lost")


def _is_same(one: Path, other: Path) -> bool:
    """Also by another name, or where one of them is yet to be made."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # not there, or no path at all
        return os.path.abspath(one) == os.path.abspath(other)


def check_report(path: Path) -> None:
    """Raises ``UsageError`` for a place where no report can be written, or where one would be written over something else."""
    if str(path) == "-":
        raise UsageError("--report - was given; it takes a file, and --json prints the report to the terminal")
    if path.is_dir():
        raise UsageError(f"--report {path} was given, which is a folder; give a file, as in {path / 'report.json'}")
    if path.is_file() and not _is_json(path):
        raise UsageError(f"--report {path} was given, which is there and no report; give another file, that one would be lost")
    if path.exists() and not path.is_file():
        raise UsageError(f"--report {path} was given, which is no file; give the name of one")
    try:
        folder = next(folder for folder in path.absolute().parents if folder.exists())
    except OSError as error:
        raise UsageError(f"--report {path} was given, and the folder of the terminal is gone; give a whole path") from error
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--report {path} was given, and {folder} cannot be written; give a file in a folder that can be")


def _is_json(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] in (b"{", b"")
    except OSError:
        return False

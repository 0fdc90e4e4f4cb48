"""What a person may paste into a report of a fault: versions, machine, settings and the fault itself, without anything personal."""

from __future__ import annotations

import json
import re
import traceback
from pathlib import Path
from typing import Any

from app.report import machine, versions
from app.settings import PeopleSettings, Settings

ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
QUOTED_PATH = re.compile(r"(?P<quote>['\"])(?:[A-Za-z]:)?[^'\"\n]*[/\\][^'\"\n]*(?P=quote)")


def diagnostics(settings: Settings, error: BaseException | None = None) -> str:
    """Text. Names of files, addresses and devices are left out: they may say who somebody is."""
    lines = [f"{name} {version}" for name, version in versions().items()]
    lines += [f"{name}: {value}" for name, value in machine().items()]
    lines.append(json.dumps(public(settings), ensure_ascii=False, indent=1))
    if error is not None:
        lines.append(trace(error))
    return "\n".join(lines)


def public(settings: Settings) -> dict[str, Any]:
    """What is set, with counts and kinds in the place of names."""
    tree = settings.model_dump(mode="json")
    tree["source"] = {"photos": len(settings.source.photos), "face": settings.source.face}
    tree["people"] = _people(settings.people)
    tree["input"]["spec"] = _kind(settings.input.spec)
    output = settings.output
    tree["output"]["streams"] = [url.partition("://")[0] for url in output.streams]
    tree["output"]["record"] = None if output.record is None else output.record.suffix
    tree["output"]["virtual_camera"] = None if output.virtual_camera is None else bool(output.virtual_camera)
    tree["run"]["report"] = settings.run.report is not None
    tree["look"] = {name: _part(value) for name, value in tree["look"].items()}
    return tree


def _people(people: PeopleSettings) -> dict[str, Any]:
    wears = {person.number: str(person.wear) for person in people.named}
    return {"others": str(people.others), "each": len(people.each), "named": wears, "recogniser": _part(people.recogniser)}


def trace(error: BaseException) -> str:
    """The traceback, with file names cut to what belongs to a package, and without what the message quotes."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"  {_package(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    return "\n".join([*places, f"{type(error).__name__}: {without_names(str(error))}"])


def without_names(text: str) -> str:
    """``text`` without addresses, paths and the home folder."""
    text = ADDRESS.sub("ADDRESS", text)
    text = QUOTED_PATH.sub("FILE", text)
    words = (("FILE" if _is_path(word) else word) for word in text.split(" "))
    return " ".join(words)


def _is_path(word: str) -> bool:
    bare = word.strip("()[]{}<>,;:.'\"")
    return len(bare) > 1 and (bare.startswith(("/", "~", "\\\\")) or re.match(r"[A-Za-z]:[/\\]", bare) is not None)


def _package(file: str) -> str:
    """``app/gui/window.py`` of a longer path."""
    parts = Path(file).parts
    known = ("site-packages", "dist-packages", "lib")
    start = max((at + 1 for at, part in enumerate(parts) if part in known), default=max(0, len(parts) - 3))
    return "/".join(parts[start:])


def _kind(spec: str) -> str:
    if spec.startswith("synthetic:"):
        return spec
    if "://" in spec:
        return spec.partition("://")[0] + "://"
    if spec.startswith(("/dev/video", "camera:")) or spec.isdigit():
        return "camera"
    return "-" if spec == "-" else "file " + Path(spec).suffix


def _part(value: Any) -> Any:
    """A model that is named by its path is a file of the person's."""
    if isinstance(value, list):
        return [_part(one) for one in value]
    return "FILE" if isinstance(value, str) and ("/" in value or "\\" in value) else value

"""What a person may paste into a report of a fault: versions, machine, settings and the fault itself, without anything personal.

Of the settings only what is known to be nobody's own is told: numbers, and words that the program itself knows. Of sentences all that may
be a name, a path, an address or a key is left out, and more than that rather than less.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import re
import socket
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.doctor import Finding
from app.parts import BUILT_IN
from app.report import machine, versions
from app.settings import PeopleSettings, Settings
from engines.errors import ModelError
from engines.session import AUTO, AUTO_ORDER
from engines.store.catalog import load_catalog
from rt.options import Blending, OnLost

OWN = "OWN"
"""Stands for a word of the person's own."""

LEFT_OUT = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*:[/\\]{2}\S*", re.IGNORECASE), "ADDRESS"),
    (re.compile(r"\S*@\S+"), "ADDRESS"),
    (re.compile(r"(?<!\w)(['\"`])[^\n]*?(?<!\\)\1(?!\w)|[‘“«„][^\n]*?[’”»“]"), "NAME"),
    (re.compile(r"(?<![\w)\]])(?:~|[A-Za-z]:)?[/\\][^\n]*"), "FILE"),  # a path may have blanks: to the end of the line
    (re.compile(r"\S*[^\W\d]\S*[/\\]\S*|\S*[/\\]\S*[^\W\d]\S*"), "FILE"),
    (re.compile(r"\b\d+(?:\.\d+){3,}\b|\[?(?:[0-9a-f]{0,4}:){2,}[0-9a-f]{0,4}\]?", re.IGNORECASE), "ADDRESS"),
    (re.compile(r"\b[\w-]*[^\W\d][\w-]*\.[\w-]*[^\W\d][\w.-]*"), "NAME"),  # a file, or a server
    (re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[^\W\d])[\w-]{10,}\b|\b[0-9]{9,}\b"), "KEY"),
)
"""What may be somebody's own → what stands for it, in the order in which they are looked for."""

WORD_MIN = 3
"""Letters of a name that is looked for: shorter ones are in too many words."""

NUMBERS = re.compile(r"(size|fps|frames|face|motion|stall|timecode)=([\d.:x]+|on|off)")
"""Of a synthetic camera's options those that name no file."""


def diagnostics(settings: Settings, error: BaseException | None = None) -> str:
    """Text. Names of files, addresses and devices are left out: they may say who somebody is."""
    lines = _about_this()
    lines.append(json.dumps(public(settings), ensure_ascii=False, indent=1))
    if error is not None:
        lines.append(trace(error, _words_of(settings)))
    return "\n".join(lines)


def examined(findings: Iterable[Finding]) -> str:
    """Text: what the doctor found, in the same way."""
    found = [f"{finding.name}: {finding.state}" + ("" if finding.personal else f", {_told(finding)}") for finding in findings]
    return "\n".join([*_about_this(), *found])


def _told(finding: Finding) -> str:
    return finding.what if finding.plain else without_names(finding.what)


def _about_this() -> list[str]:
    lines = [f"{name} {version}" for name, version in versions().items()]
    return lines + [f"{name}: {_without(str(value), _own_names())}" for name, value in machine().items()]


def public(settings: Settings) -> dict[str, Any]:
    """What is set, with counts and kinds in the place of names."""
    tree = _known(settings.model_dump(mode="json"), _known_words())
    tree["source"] = {"photos": len(settings.source.photos), "face": settings.source.face}
    tree["people"] = _people(settings.people, tree["people"]["recogniser"])
    tree["input"]["spec"] = _kind(settings.input.spec)
    output = settings.output
    tree["output"]["streams"] = [_scheme(url) for url in output.streams]
    tree["output"]["record"] = None if output.record is None else _ending(output.record)
    tree["output"]["virtual_camera"] = None if output.virtual_camera is None else bool(output.virtual_camera)
    return tree


def _people(people: PeopleSettings, recogniser: Any) -> dict[str, Any]:
    wears = {person.number: str(person.wear) for person in people.named}
    return {"others": str(people.others), "each": len(people.each), "named": wears, "recogniser": recogniser}


def trace(error: BaseException, words: Iterable[str] = ()) -> str:
    """The traceback and those of its causes, with file names cut to what belongs to a package, and without what may be a name.

    ``words``: what is known to be the person's own.
    """
    parts: list[str] = []
    seen: set[int] = set()
    words = (*words, *_own_names())
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        frames = traceback.extract_tb(following.__traceback__)
        places = [f"  {_package(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
        parts.append("\n".join([*places, f"{type(following).__name__}: {without_names(str(following), words)}"]))
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return "\nwhich came of\n".join(parts)


def without_names(text: str, words: Iterable[str] = ()) -> str:
    """``text`` without ``words``, and without whatever else may be a name, a path, an address or a key."""
    text = _without(text, (*words, *_own_names()))
    for pattern, stand_in in LEFT_OUT:
        text = pattern.sub(stand_in, text)
    return text


def _without(text: str, words: Iterable[str]) -> str:
    for word in sorted(set(words), key=len, reverse=True):
        if len(word) >= WORD_MIN:
            text = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", OWN, text, flags=re.IGNORECASE)
    return text


def _own_names() -> Iterator[str]:
    """Of the person and of the machine, as the system knows them."""
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        yield getpass.getuser()
    yield Path.home().name
    host = socket.gethostname()
    yield host
    yield host.partition(".")[0]


def _words_of(settings: Settings) -> Iterator[str]:
    """Of photos, files, addresses and devices that are set: an error may say them in any form."""
    sources = [settings.source, *settings.people.sources]
    paths = [*(photo for source in sources for photo in source.photos), settings.output.record, settings.run.report]
    texts = [*map(str, filter(None, paths)), *settings.output.streams, settings.input.spec, settings.output.virtual_camera or ""]
    known = _known_words()
    texts += [name for name in _texts(settings.look.model_dump(mode="json")) if name not in known]
    for text in texts:
        if not text.startswith("synthetic:") or "portrait=" in text:
            yield from re.split(r"[/\\:@?&=,]+", text)
            yield from (Path(part).stem for part in re.split(r"[/\\:@?&=,]+", text))


def _known(value: Any, words: frozenset[str]) -> Any:
    """Numbers, and words that the program itself knows."""
    if isinstance(value, dict):
        return {name: _known(one, words) for name, one in value.items()}
    if isinstance(value, list):
        return [_known(one, words) for one in value]
    return OWN if isinstance(value, str) and value not in words else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _known_words() -> frozenset[str]:
    """Of the look: what is built in, what the catalogue names, and choices. A model that a person named is not among them."""
    words = {name for parts in BUILT_IN.values() for name in parts} | set(Blending) | set(OnLost) | {AUTO, *AUTO_ORDER}
    with contextlib.suppress(ModelError):  # it may be what is wrong
        words |= {entry.name for entry in load_catalog()}
    return frozenset({*map(str, words), "MJPG", "YUYV", "NV12", "H264"})


def _package(file: str) -> str:
    """``app/gui/window.py`` of a longer path; of a file that is in no package only that it is one."""
    path = Path(file)
    own = Path(__file__).parent.parent
    if path.is_relative_to(own):
        return path.relative_to(own).as_posix()
    parts = path.parts
    known = ("site-packages", "dist-packages")
    start = next((at + 1 for at, part in enumerate(parts) if part in known), None)
    if start is None and "lib" in parts:  # Python's own
        start = len(parts) - 1 - parts[::-1].index("lib") + 1
        start = start if parts[start].startswith("python") else None
    return "FILE" if start is None else "/".join(parts[start:])


def _kind(spec: str) -> str:
    if spec.startswith("synthetic:"):
        return "synthetic:" + ",".join(match[0] for match in map(NUMBERS.fullmatch, spec.partition(":")[2].split(",")) if match)
    if "://" in spec:
        return _scheme(spec)
    if spec.startswith(("/dev/video", "camera:")) or spec.isdigit():
        return "camera"
    return spec if spec == "-" else "file " + _ending(Path(spec))


def _scheme(address: str) -> str:
    scheme = address.partition("://")[0].lower() if "://" in address else ""
    return scheme if scheme in ("rtmp", "rtmps", "srt", "udp", "rtsp", "rtsps", "http", "https", "tcp", "file") else OWN


def _ending(path: Path) -> str:
    return path.suffix if path.suffix.lower() in (".mp4", ".mkv", ".mov", ".ts", ".webm", ".avi", ".flv", ".gif") else OWN

"""The models that ffrt knows by name: what they are, where they come from, what their licences permit."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path, PurePosixPath

from engines.errors import ModelError
from engines.family import Kind


class Commercial(StrEnum):
    """Whether a licence permits commercial use."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


FACTS = ("licence", "origin")
"""What the catalogue may say of a model without anybody having checked it."""


@dataclass(frozen=True, slots=True)
class Licence:
    """What may be done with a model."""

    name: str
    commercial: Commercial
    terms: str
    """What it permits and forbids, in plain words."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One model that is known by name."""

    name: str
    family: str
    kind: Kind
    file: str
    """The file's name, at its publisher and here."""
    publisher: str
    licence: Licence
    addresses: tuple[str, ...] = ()
    """Where the file is, in the order in which to ask; empty where it has to be fetched by hand."""
    mirror_path: str = ""
    """Where the file is under the root of a mirror: ``models-3.0.0/NAME.onnx``."""
    size: int | None = None
    """Bytes, where the publisher's number is known exactly: a file of another length is refused."""
    about_bytes: int | None = None
    """Bytes, roughly, for people."""
    sha256: str | None = None
    sha256_short: tuple[str, ...] = ()
    """Beginning and end of it (``e4a3f08c…e16af``), of one release each, where no more was found in writing: a file is known by it, none is
    refused for want of it."""
    unverified: tuple[str, ...] = ()
    """Which of FACTS nobody of this project found in writing: a person should ask the publisher before relying on them."""
    crc32_beside: bool = False
    """The publisher puts ``STEM.hash`` beside the file: its CRC32, 8 hexadecimal digits."""


class Catalog:
    """Known models. Immutable; any thread."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Raises ``ModelError`` for two of one name."""
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            if entry.name in self._entries:
                raise ModelError(f"the catalogue has two models called {entry.name!r}; names must differ")
            self._entries[entry.name] = entry

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, name: str) -> Entry | None:
        """The model of that name."""
        return self._entries.get(name)

    def __getitem__(self, name: str) -> Entry:
        """Raises ``ModelError`` with similar names in its text."""
        if name in self._entries:
            return self._entries[name]
        near = difflib.get_close_matches(name.casefold(), self._entries, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`ffrt models list` shows all"
        raise ModelError(f"no known model is called {name!r}; {hint}")

    def by_sha256(self, sha256: str) -> Entry | None:
        """The model whose file has that hash, as far as it is known."""
        whole = next((entry for entry in self if entry.sha256 == sha256), None)
        return whole or next((entry for entry in self if any(_is_short_of(short, sha256) for short in entry.sha256_short)), None)


def load_catalog(path: Path | None = None) -> Catalog:
    """Reads ``path``, or the catalogue that ships with the program. Raises ``ModelError`` when it is missing or makes no sense."""
    path = path or Path(str(files("assets") / "catalog.toml"))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        licences = {name: _licence(name, facts) for name, facts in table["licences"].items()}
        return Catalog(_entry(name, facts, table["publishers"], licences) for name, facts in table["models"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"the catalogue {path} cannot be used ({error!r}); install ffrt again") from error


def _licence(name: str, facts: dict[str, str]) -> Licence:
    return Licence(name, Commercial(facts["commercial"]), facts["terms"])


def _entry(name: str, facts: dict[str, object], publishers: dict[str, dict[str, object]], licences: dict[str, Licence]) -> Entry:
    allowed = {"family", "kind", "file", "publisher", "licence", "tag", "size", "about_mb", "sha256", "sha256_short", "verified"}
    if set(facts) - allowed:
        raise ValueError(f"{name} has {', '.join(sorted(set(facts) - allowed))}; known are {', '.join(sorted(allowed))}")
    file, tag = str(facts["file"]), str(facts.get("tag", ""))
    if PurePosixPath(file).name != file or "\\" in file:
        raise ValueError(f"{name} has the file {file!r}; a name without folders is needed")
    verified = facts.get("verified", [])
    if not isinstance(verified, list) or set(verified) - set(FACTS):
        raise ValueError(f"{name} is said to have verified {verified!r}; a list of {', '.join(FACTS)} is needed")
    publisher = publishers[str(facts["publisher"])]
    templates = publisher.get("addresses", [])
    about = facts.get("about_mb")
    return Entry(
        name=name,
        family=str(facts["family"]),
        kind=Kind(str(facts["kind"])),
        file=file,
        publisher=str(publisher["name"]),
        licence=licences[str(facts["licence"])],
        addresses=tuple(str(template).format(tag=tag, file=file) for template in templates) if isinstance(templates, list) else (),
        mirror_path=f"{tag}/{file}" if tag else file,
        size=_int(facts.get("size")),
        about_bytes=round(about * 1e6) if isinstance(about, (int, float)) else None,
        sha256=str(facts["sha256"]) if "sha256" in facts else None,
        sha256_short=_shorts(name, facts.get("sha256_short", [])),
        unverified=tuple(fact for fact in FACTS if fact not in verified),
        crc32_beside=publisher.get("checksum") == "crc32",
    )


SHORT_MIN = 12
"""Digits of a shortened hash: no two of a person's files agree in 48 bits by chance."""


def _shorts(name: str, given: object) -> tuple[str, ...]:
    whole = given if isinstance(given, list) else [given]
    for short in whole:
        if not re.fullmatch(r"[0-9a-f]{8,}…[0-9a-f]{4,}", str(short)) or len(str(short)) <= SHORT_MIN:
            raise ValueError(f"{name} has the shortened hash {short!r}; a list of such as e4a3f08c…e16af is needed")
    return tuple(map(str, whole))


def _is_short_of(short: str, sha256: str) -> bool:
    begin, _, end = short.partition("…")
    return sha256.startswith(begin) and sha256.endswith(end)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None

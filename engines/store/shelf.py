"""The folder of a person's models. Each file has a card beside it, named by the file's SHA-256, that says what the file is.

Two files of one name may stand side by side; a model is known by its hash. Nothing half-written ever bears a model's name: files are
written under another one, in the same folder, and renamed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from engines.errors import ModelError
from engines.family import Graph, ModelFile
from engines.folders import chosen_folder
from engines.session import TensorSpec
from engines.unfinished import settle, sweep, unfinished, write_whole

FOLDER_VARIABLE = "FFRT_MODELS"
"""Environment: the folder of models, instead of the one in the user's data."""

SPARE_BYTES = 64 * 1024 * 1024
"""What is left free on a disk; a system with none misbehaves."""

SHORT = 8
"""Hexadecimal digits of a hash that tell two files apart for people."""

SUFFIXES = (".onnx", ".dfm")
"""Of model files: what ends so is a file, what does not may be a name."""

NAME_MAX = 100

LOCK_S = 30.0
"""A name is taken in milliseconds; what lasts so long has been stopped."""

CHUNK = 1 << 20
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""A full disk, a limit on file sizes, a quota."""


def fit_name(text: str) -> str:
    """``text`` as a model can be called by it: typed after an option, shown on a line, kept as a file on any system."""
    shown = "".join("_" if letter in '/\\:*?"<>|' or not letter.isprintable() else letter for letter in text)
    while shown.lower().endswith(SUFFIXES):
        shown = shown.rpartition(".")[0]
    return shown.strip().lstrip(".-")[:NAME_MAX].strip() or "model"


def checked_name(name: str) -> str:
    """``name``, if it is one. Raises ``ModelError``."""
    if fit_name(name) != name:
        raise ModelError(
            f"{name!r} was given as a model's name; give up to {NAME_MAX} letters that can be shown, none of them one of "
            f"/ \\ : * ? \" < > |, not beginning with . or - and not ending in {' or '.join(SUFFIXES)}, as in {fit_name(name)!r}"
        )
    return name


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of one file on the shelf."""

    name: str
    file: str
    sha256: str
    size: int
    """Bytes."""
    family: str
    kind: str
    origin: str
    """The address or path that it came from."""
    licence: str
    commercial: str
    terms: str
    graph: Graph
    unverified: tuple[str, ...] = ()
    """See ``engines.store.catalog.Entry``."""
    modified_ns: int = 0
    """The file's time when its hash was last taken; a file of this time and size is not hashed again."""


class Shelf:
    """Models in one folder. Any thread; several processes may share it."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: the one that FFRT_MODELS names, or that of the user's data, otherwise. It need not exist."""
        self.folder = folder or default_folder()

    def cards(self) -> list[Card]:
        """All models, by name. A card that cannot be read is logged and left out. Raises ``ModelError`` for a folder that cannot."""
        found: list[Card] = []
        try:
            if self.folder.exists() and not self.folder.is_dir():
                raise ModelError(f"{self.folder} is a file; name a folder for models in {FOLDER_VARIABLE}")
            paths = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        except OSError as error:
            raise self._cannot("read", error) from error
        for path in paths:
            if not _is_sha256(path.stem):
                continue
            try:
                card = _read_card(path)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                logging.getLogger(__name__).warning("the card %s is damaged (%s); import its model again, or remove it", path, error)
                continue
            if (self.folder / card.file).is_file():
                found.append(card)
        return sorted(found, key=lambda card: (card.name, card.sha256))

    def matches(self, asked: str) -> list[Card]:
        """The models whose SHA-256, else name, else file name is ``asked``, else whose SHA-256 begins so (6 digits or more)."""
        cards = self.cards()
        ways = (
            [card for card in cards if card.sha256 == asked.lower()],
            [card for card in cards if card.name == asked],
            [card for card in cards if card.file == asked],
            [card for card in cards if len(asked) >= 6 and card.sha256.startswith(asked.lower())],
        )
        return next((fits for fits in ways if fits), [])

    def find(self, asked: str) -> Card:
        """The one that ``matches``. Raises ``ModelError`` for none, and for several."""
        fits = self.matches(asked)
        if len(fits) == 1:
            return fits[0]
        if fits:
            which = ", ".join(f"{card.sha256[:SHORT]} ({card.file}, from {card.origin})" for card in fits)
            raise ModelError(f"{asked!r} is the name of {len(fits)} different files: {which}; ask by the hash's first digits")
        known = ", ".join(sorted({card.name for card in self.cards()})) or "none yet"
        raise ModelError(f"no model {asked!r} is in {self.folder}; there are: {known}. `ffrt models list` shows what can be pulled")

    def has(self, sha256: str) -> Card | None:
        """The model of exactly that hash."""
        return next((card for card in self.cards() if card.sha256 == sha256), None)

    def path(self, card: Card) -> Path:
        """Where a model's file is."""
        return self.folder / card.file

    def model(self, card: Card) -> ModelFile:
        """For ``Family.open``. Hashes the file only if its time or size changed. Raises ``ModelError`` for one that is gone or changed."""
        path = self.path(card)
        try:
            facts = path.stat()
        except OSError as error:
            raise ModelError(f"the model {path} is gone; pull or import it again") from error
        if (facts.st_size, facts.st_mtime_ns) != (card.size, card.modified_ns):
            self.verify(card)
        return ModelFile(card.name, path, card.sha256, card.family, card.graph)

    def verify(self, card: Card) -> None:
        """Reads the whole file: a second or two for 550 MB. Raises ``ModelError`` unless it is the one the card describes."""
        path = self.path(card)
        if not path.is_file():
            raise ModelError(f"the model {path} is gone; pull or import it again")
        seen = sha256_of(path)
        if seen != card.sha256:
            raise ModelError(
                f"the model {path} was changed: its SHA-256 is {seen}, not {card.sha256}; run `ffrt models remove {card.sha256[:SHORT]}` "
                f"and pull or import it again"
            )

    def remove(self, card: Card) -> None:
        """Deletes the file and its card. Raises ``ModelError`` where that is not allowed."""
        try:
            self.path(card).unlink(missing_ok=True)
            self._card_path(card.sha256).unlink(missing_ok=True)
        except OSError as error:
            raise self._cannot("delete from", error) from error

    def take(self, source: Path, card: Card) -> Card:
        """Copies ``source`` in; ``card.sha256`` must be its hash. Returns the card as it was written. Raises ``ModelError``."""
        with self.writing():
            self.check_space(card.size)
            sweep(self.folder)
            with unfinished(self.folder, "import") as part, source.open("rb") as given:
                shutil.copyfileobj(given, part, CHUNK)
                part.flush()
                if sha256_of(Path(part.name)) != card.sha256:
                    raise ModelError(f"{source} changed while it was copied; import it again when nothing writes to it")
                settle(part)
                return self.place(Path(part.name), card)

    def place(self, part: Path, card: Card) -> Card:
        """Renames a complete, verified file of this folder to its name, and writes its card. Returns the card as it was written."""
        with self.writing(), self._alone():
            target = self._free(card.file, card.sha256)
            os.chmod(part, 0o644)
            os.replace(part, target)
            facts = target.stat()
            card = replace(card, file=target.name, size=facts.st_size, modified_ns=facts.st_mtime_ns)
            self.write_atomically(self._card_path(card.sha256), json.dumps(_to_json(card), indent=1).encode())
            return card

    def write_atomically(self, path: Path, data: bytes) -> None:
        """All of ``data`` or nothing is at ``path`` afterwards, whatever happens meanwhile."""
        write_whole(path, lambda file: file.write(data))

    def check_space(self, needed: int) -> None:
        """Raises ``ModelError`` unless ``needed`` bytes fit on the folder's disk, with some to spare."""
        free = shutil.disk_usage(self.folder).free
        if free < needed + SPARE_BYTES:
            raise ModelError(
                f"{needed / 1e6:.1f} MB are needed in {self.folder} and {free / 1e6:.1f} MB are free; free some space, or name another "
                f"folder in {FOLDER_VARIABLE}"
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Between the choice of a free name and the file that bears it no other process chooses the same."""
        try:
            with FileLock(self.folder / ".names.lock", timeout=LOCK_S):
                yield
        except Timeout as error:
            raise ModelError(f"another ffrt has kept {self.folder} to itself for {LOCK_S:.0f} s; wait for it, or end it") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Makes the folder; what the system refuses inside becomes a ``ModelError`` that says what to do."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise self._cannot("write to", error) from error

    def _cannot(self, what: str, error: OSError) -> ModelError:
        if error.errno in FULL:
            return ModelError(
                f"there is no space left for {self.folder} ({error.strerror}); free some space, or name another folder in "
                f"{FOLDER_VARIABLE}. What was downloaded is kept and the next pull goes on from there"
            )
        return ModelError(f"cannot {what} {self.folder} ({error.strerror or error}); allow it, or name another folder in {FOLDER_VARIABLE}")

    def _free(self, file: str, sha256: str) -> Path:
        """The file's own name, or one with its hash if another file has that."""
        wanted = self.folder / file
        holder = {card.file: card.sha256 for card in self.cards()}
        if not wanted.exists() or holder.get(file) == sha256 or (file not in holder and sha256_of(wanted) == sha256):
            return wanted
        return wanted.with_name(f"{wanted.stem}-{sha256[:SHORT]}{wanted.suffix}")

    def _card_path(self, sha256: str) -> Path:
        return self.folder / f"{sha256}.json"


def default_folder() -> Path:
    """What FFRT_MODELS says, else ``models`` in the user's data. Raises ``FolderError``."""
    return chosen_folder(FOLDER_VARIABLE, _usual_folder)


def _usual_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("ffrt", appauthor=False) / "models"


def sha256_of(path: Path) -> str:
    """Lower-case hexadecimal. Raises ``ModelError`` for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); give the path of a file that you may read") from error


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and all(letter in "0123456789abcdef" for letter in text)


def _read_card(path: Path) -> Card:
    """Raises ValueError, KeyError or TypeError for what is no card."""
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    graph = _graph_from_json(facts.pop("graph"))
    unverified = tuple(map(str, facts.pop("unverified", ())))
    card = Card(**facts, graph=graph, unverified=unverified)
    if not all(
        isinstance(value, str) for value in (card.name, card.family, card.kind, card.origin, card.licence, card.commercial, card.terms)
    ):
        raise TypeError("a text is missing")
    if card.sha256 != path.stem or not isinstance(card.size, int) or not isinstance(card.modified_ns, int):
        raise ValueError("it is not of the file that it is named for")
    if Path(card.file).name != card.file or not card.file:
        raise ValueError(f"the file {card.file!r} is not in this folder")
    return card


def _to_json(card: Card) -> dict[str, Any]:
    facts = {name: value for name, value in asdict(card).items() if name != "graph"}
    return {**facts, "graph": _graph_to_json(card.graph)}


def _graph_to_json(graph: Graph) -> dict[str, Any]:
    last = graph.last_initializer
    return {
        "inputs": [_spec_to_json(spec) for spec in graph.inputs],
        "outputs": [_spec_to_json(spec) for spec in graph.outputs],
        "last_initializer": None if last is None else _spec_to_json(last),
        "opset": graph.opset,
    }


def _graph_from_json(facts: dict[str, Any]) -> Graph:
    last = facts["last_initializer"]
    return Graph(
        tuple(map(_spec_from_json, facts["inputs"])),
        tuple(map(_spec_from_json, facts["outputs"])),
        None if last is None else _spec_from_json(last),
        int(facts["opset"]),
    )


def _spec_to_json(spec: TensorSpec) -> list[Any]:
    return [spec.name, list(spec.shape), spec.dtype.name if spec.dtype.kind != "V" else "void"]


def _spec_from_json(facts: list[Any]) -> TensorSpec:
    name, shape, dtype = facts
    try:
        known = np.dtype(dtype)
    except TypeError:  # bfloat16 and the like, where nobody registered them
        known = np.dtype(np.void)
    return TensorSpec(str(name), tuple(size if isinstance(size, int) else str(size) for size in shape), known)

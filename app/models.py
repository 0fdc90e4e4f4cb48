"""What `ffrt models` does: facts and work; asking and printing are the command line's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.errors import ModelError
from engines.family import Family, Kind, families
from engines.registry import Registry
from engines.store import EmbeddedModel, embedded_models, verify
from engines.store.catalog import Catalog, Commercial, Entry, load_catalog
from engines.store.shelf import SUFFIXES, Card, Shelf, checked_name, sha256_of

if TYPE_CHECKING:
    from engines.store.pull import Progress
    from engines.store.stopping import Stop


@dataclass(frozen=True, slots=True)
class Offer:
    """What a person should know before a pull begins."""

    entry: Entry
    size: int | None
    """Bytes; None where neither the catalogue nor the server says."""

    @property
    def forbids_commerce(self) -> bool:
        return self.entry.licence.commercial == Commercial.NO

    def describe(self) -> str:
        """One or two sentences."""
        size = "of unknown size" if self.size is None else megabytes(self.size)
        doubt = " (not verified by ffrt: ask the publisher)" if "licence" in self.entry.unverified else ""
        return f"{self.entry.name} is {size}, from {self.entry.publisher}. Licence{doubt}: {self.entry.licence.terms}."


class Models:
    """The catalogue and a person's shelf, together. Any thread."""

    def __init__(self, shelf: Shelf | None = None, catalog: Catalog | None = None, registry: Registry[Family] | None = None) -> None:
        """What is not given: the shelf of this user, the catalogue and the families that ship with the program."""
        self.shelf = shelf or Shelf()
        self.catalog = catalog or load_catalog()
        self._registry = registry

    def rows(self) -> list[dict[str, Any]]:
        """A JSON-ready row a model: those on the shelf, and those that could be pulled."""
        cards = self.shelf.cards()
        here = [self._card_row(card) for card in cards]
        names = {card.name for card in cards}
        return here + [entry_row(entry) for entry in self.catalog if entry.name not in names]

    def show(self, asked: str) -> dict[str, Any]:
        """One model's row, with its graph if it is here. Raises ``ModelError`` for an unknown or ambiguous name."""
        if self.shelf.matches(asked):
            card = self.shelf.find(asked)
            return {**self._card_row(card), "graph": card.graph.describe(), "opset": card.graph.opset}
        if asked in embedded_models():
            return _embedded_row(embedded_models()[asked])
        return entry_row(self.catalog[asked])

    def offer(self, name: str, mirrors: Sequence[str]) -> Offer | None:
        """What a pull of ``name`` would bring; None if it is here. Asks the server for the size where the catalogue has none."""
        from engines.store.pull import pulled, size_of

        _check_not_embedded(name)
        entry = self.catalog[name]
        if pulled(entry, self.shelf) is not None:
            return None
        return Offer(entry, size_of(entry, mirrors))

    def pull(self, name: str, mirrors: Sequence[str], progress: Progress, stop: Stop | None = None) -> dict[str, Any]:
        """Fetches a model and returns its row; see ``engines.store.pull``."""
        from engines.store.pull import pull

        return self._card_row(pull(self.catalog[name], self.shelf, self._families(), mirrors=mirrors, progress=progress, stop=stop))

    def import_file(self, path: Path, family: str | None = None, name: str | None = None) -> dict[str, Any]:
        """Tells what a file is, copies it onto the shelf and returns its row, with ``told_by`` (``engines.store.identify.ToldBy``).

        Raises ``ModelError``.
        ``family``: which one, for a graph that fits several. ``name``: what to call it; the catalogue's or the file's name otherwise.
        """
        if name is not None:
            checked_name(name)
        from engines.store.identify import identify
        from engines.store.pull import card_of

        _check_not_shipped(path)
        found = identify(path, self.catalog, self._families(), family=family)
        present = self.shelf.has(found.sha256)
        if present is not None and (name or present.name) == present.name and found.family == present.family:
            self.shelf.verify(present)
            return {**self._card_row(present), "told_by": str(found.told_by)}
        origin = str(path.resolve())
        if found.entry is not None:
            card = card_of(found.entry, found.sha256, found.graph, origin)
        else:
            card = Card(
                name=found.name,
                file=found.name + (path.suffix.lower() if path.suffix.lower() in SUFFIXES else SUFFIXES[0]),
                sha256=found.sha256,
                size=path.stat().st_size,
                family=found.family,
                kind=found.kind,
                origin=origin,
                licence="unknown",
                commercial=str(Commercial.UNKNOWN),
                terms="unknown: ask whoever made the file",
                unverified=("licence",),
                graph=found.graph,
            )
        self._check_free(name or found.name, found.kind)
        card = replace(card, name=name or found.name, family=found.family, kind=found.kind, size=path.stat().st_size)
        if present is not None:
            card = replace(card, file=present.file)
        return {**self._card_row(self.shelf.take(path, card)), "told_by": str(found.told_by)}

    def _check_free(self, name: str, kind: str) -> None:
        """Raises ``ModelError`` for the name of a part that comes with the program: the file would never be taken for it."""
        from app.parts import BUILT_IN

        if name in list(BUILT_IN.get(Kind(kind), ())):
            raise ModelError(f"{name} is the {kind} that comes with ffrt; give the file another name, as in --name my-{name}")

    def verify(self, asked: Sequence[str]) -> list[dict[str, Any]]:
        """Reads the files of the models named, or of all here and those that ship with ffrt: a row each, with ``ok`` and ``problem``."""
        if asked:
            return [self._verified(self.shelf.find(name)) for name in asked]
        return [*_verify_embedded(), *(self._verified(card) for card in self.shelf.cards())]

    def remove(self, asked: str) -> dict[str, Any]:
        """Deletes a model from the shelf and returns the row that it had. Raises ``ModelError``."""
        if not self.shelf.matches(asked):
            _check_not_embedded(asked)
        card = self.shelf.find(asked)
        row = self._card_row(card)
        self.shelf.remove(card)
        return {**row, "present": False}

    def _families(self) -> Registry[Family]:
        return families if self._registry is None else self._registry

    def _verified(self, card: Card) -> dict[str, Any]:
        try:
            self.shelf.verify(card)
        except ModelError as error:
            return {**self._card_row(card), "ok": False, "problem": str(error)}
        return {**self._card_row(card), "ok": True, "problem": None}

    def _card_row(self, card: Card) -> dict[str, Any]:
        return {
            "name": card.name,
            "family": card.family,
            "kind": card.kind,
            "licence": card.licence,
            "commercial": card.commercial,
            "terms": card.terms,
            "unverified": list(card.unverified),
            "present": True,
            "sha256": card.sha256,
            "sha256_short": [],
            "checked_by": "sha256",
            "size": card.size,
            "about_bytes": None,
            "path": str(self.shelf.path(card)),
            "origin": [card.origin],
        }


def megabytes(size: int) -> str:
    """For people: ``554 MB``, ``1.1 MB``."""
    return f"{size / 1e6:.0f} MB" if size >= 10e6 else f"{size / 1e6:.1f} MB"


def entry_row(entry: Entry) -> dict[str, Any]:
    """JSON-ready, of a model that is not here."""
    return {
        "name": entry.name,
        "family": entry.family,
        "kind": str(entry.kind),
        "licence": entry.licence.name,
        "commercial": str(entry.licence.commercial),
        "terms": entry.licence.terms,
        "unverified": list(entry.unverified),
        "present": False,
        "sha256": entry.sha256,
        "sha256_short": list(entry.sha256_short),
        "checked_by": checked_by(entry),
        "size": entry.size,
        "about_bytes": entry.about_bytes,
        "path": None,
        "origin": list(entry.addresses) or [entry.publisher],
    }


def checked_by(entry: Entry) -> str | None:
    """What a file that comes for ``entry`` is compared with: ``sha256``, ``crc32`` where the publisher gives no more, or nothing: such a
    file has to be fetched by hand. From then on it is its SHA-256, for all."""
    if entry.sha256 is not None:
        return "sha256"
    return "crc32" if entry.crc32_beside else None


def _embedded_row(model: EmbeddedModel) -> dict[str, Any]:
    facts = {"name": model.name, "family": "embedded", "kind": None, "licence": model.licence, "present": True, "sha256": model.sha256}
    return {**facts, "checked_by": "sha256", "path": str(model.path)}


def _check_not_embedded(name: str) -> None:
    if name in embedded_models():
        raise ModelError(f"{name} comes with ffrt: it is always here, and `ffrt models verify` reads it")


def _check_not_shipped(path: Path) -> None:
    """Their graphs are of no family; reads files of the size of one of them alone."""
    for model in embedded_models().values():
        if path.is_file() and path.stat().st_size == model.path.stat().st_size and sha256_of(path) == model.sha256:
            raise ModelError(f"{path} is {model.name}, which comes with ffrt and needs no import")


def _verify_embedded() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for model in embedded_models().values():
        try:
            verify(model)
        except ModelError as error:
            rows.append({**_embedded_row(model), "ok": False, "problem": str(error)})
        else:
            rows.append({**_embedded_row(model), "ok": True, "problem": None})
    return rows

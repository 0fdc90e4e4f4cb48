"""Opens parts by the names people give: what is built in, what is on their shelf, or a file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engines.align import Aligner, MeshAligner
from engines.build.parity import refuse_half_swapper
from engines.errors import ModelError
from engines.family import Family, Kind, ModelFile
from engines.folders import written_path
from engines.parking import ParkedSession
from engines.registry import Registry
from engines.session import ModelUse, RuntimeChoice, Session, Shapes, choose_runtime, open_session, runtime_order, runtimes
from engines.store.catalog import Catalog
from engines.store.identify import identify
from engines.store.shelf import SUFFIXES, Card, Shelf

BuiltIn = Mapping[Kind, Registry[Callable[..., Any]]]
"""Kind → parts that need no file of the user's."""


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model of the user's that is open."""

    model: ModelFile
    session: Session
    choice: RuntimeChoice
    shapes: Shapes
    """As ``engines.family.Kit.session`` was given them."""

    def use(self) -> ModelUse:
        """For a report."""
        return ModelUse(self.model.name, self.session.runtime, self.choice.reasons, self.session.memory_bytes)


class ModelKit:
    """Keeps ``engines.family.Kit``; each model is opened once. One thread at a time."""

    def __init__(
        self,
        shelf: Shelf,
        catalog: Catalog,
        families: Registry[Family],
        built_in: BuiltIn,
        *,
        options: Mapping[str, Any] | None = None,
        preferred: Mapping[Kind, str] | None = None,
        runtime: str = "ort",
        threads: int = 1,
    ) -> None:
        """``preferred``: what the user named for parts that other parts need. ``threads``: for each model on the processor.

        ``runtime``: as ``engines.session.runtime_order`` takes it; each model gets the first that can run it. Raises ``ModelError``.
        """
        self.options = options or {}
        self.aligner: Aligner = MeshAligner()
        self._shelf = shelf
        self._catalog = catalog
        self._families = families
        self._built_in = built_in
        self._preferred = preferred or {}
        self._order = runtime_order(runtime)
        self._threads = threads
        self._open: dict[str, Any] = {}
        self._sessions: list[OpenModel] = []

    def named(self, kind: Kind, asked: str) -> Any:
        """The part that a person calls ``asked``: built in, on the shelf, or the path of a file.

        Raises ``ModelError`` for one that is not here, that is of another kind, or that cannot be used.
        """
        known = self._built_in.get(kind)
        if known is not None and asked in list(known):
            return known[asked]()
        return self._opened(kind, self._file(kind, asked))

    def family(self, kind: Kind, asked: str) -> Family:
        """Of the model or file that a person calls ``asked``, which is not opened. Raises ``ModelError`` as ``named`` does."""
        return self._families[self._file(kind, asked).family]

    def part(self, kind: Kind, names: Sequence[str]) -> Any:
        """See ``engines.family.Kit``."""
        if kind in self._preferred:
            return self.named(kind, self._preferred[kind])
        for name in names:
            if self._shelf.matches(name):
                return self._opened(kind, self._shelf.model(self._only(kind, name)))
        known = [name for name in names if self._catalog.get(name) is not None]
        mend = f"run `ffrt models pull {known[0]}`" if known else "import one with `ffrt models import FILE`"
        raise ModelError(f"this needs the {kind} model {' or '.join(names)}, which is not here; {mend}")

    def session(self, model: ModelFile, shapes: Shapes | None = None) -> Session:
        """See ``engines.family.Kit``. Raises ``DeviceError`` where no runtime of the order can run the model."""
        choice = self._choice(model)
        session = ParkedSession(partial(open_session, model.path, runtime=choice.runtime, threads=self._threads))
        self._sessions.append(OpenModel(model, session, choice, shapes or {}))
        return session

    @property
    def open_models(self) -> tuple[OpenModel, ...]:
        """In the order in which they were opened."""
        return tuple(self._sessions)

    def close(self) -> None:
        """Closes every session; the parts that use them are of no more use. May be called twice."""
        for opened in self._sessions:
            opened.session.close()
        self._open.clear()

    def _choice(self, model: ModelFile) -> RuntimeChoice:
        return choose_runtime(self._order, lambda name: runtimes[name].unfit(model.path))

    def _only(self, kind: Kind, name: str) -> Card:
        try:
            return self._shelf.find(name)
        except ModelError as error:
            raise ModelError(f"this needs the {kind} model {name}, and {error}; or delete the other with `ffrt models remove`") from error

    def _opened(self, kind: Kind, model: ModelFile) -> Any:
        family = self._families[model.family]
        if family.kind is not kind:
            what = f"{model.name} is of the kind {family.kind} (family {model.family}), and --{kind} was asked for"
            raise ModelError(f"{what}; {self._offer(kind)}")
        if model.sha256 not in self._open:
            # before other models are asked for
            refuse_half_swapper(model.path, model.graph, self._choice(model).runtime, kind is Kind.SWAPPER)
            self._open[model.sha256] = family.open(model, self)
        return self._open[model.sha256]

    def _file(self, kind: Kind, asked: str) -> ModelFile:
        family, path = family_and_path(asked, self._families)
        self._check_prefix(kind, asked)
        is_file = family is not None or path.suffix.lower() in SUFFIXES or len(path.parts) > 1
        if is_file and (path.exists() or not self._shelf.matches(asked)):
            hint = f"write --{kind} {{family}}:{shlex.quote(str(path))}"
            found = identify(path, self._catalog, self._families, family=family, kind=kind, hint=hint)
            return ModelFile(found.name, path, found.sha256, found.family, found.graph)
        if not self._shelf.matches(asked):
            raise ModelError(self._unknown(kind, asked))
        return self._shelf.model(self._shelf.find(asked))

    def _check_prefix(self, kind: Kind, asked: str) -> None:
        """Raises ``ModelError`` for a family before what is no file, and for what is no family before one that is."""
        before, colon, rest = asked.partition(":")
        path = written_path(rest)
        if not colon or Path(asked).exists():
            return
        if before in list(self._families):
            if not rest or (not path.exists() and self._shelf.matches(rest)):
                raise ModelError(f"{before}: goes before a file's path, as in {before}:mine.onnx; a model that is here goes by its name")
        elif rest and path.is_file() and len(before) > 1:
            ours = [name for name in self._families if self._families[name].kind is kind]
            raise ModelError(f"{before!r} is no family of a {kind}; before a file's path stands one of {', '.join(ours)}, or nothing")

    def _unknown(self, kind: Kind, asked: str) -> str:
        if self._catalog.get(asked) is not None:
            return f"the {kind} {asked} is not on this machine; run `ffrt models pull {asked}`, or import its file"
        near = [name for name in self._names(kind) if name.casefold() == asked.casefold()]
        return f"no {kind} is called {asked!r}; {f'did you mean {near[0]}? ' if near else ''}{self._offer(kind)}"

    def _offer(self, kind: Kind) -> str:
        return f"here are: {', '.join(self._names(kind)) or 'none'}; `ffrt models list` shows what can be pulled, and a file's path will do"

    def _names(self, kind: Kind) -> list[str]:
        """What of ``kind`` is here."""
        return sorted({*(self._built_in.get(kind) or ()), *(card.name for card in self._shelf.cards() if card.kind == str(kind))})


def family_and_path(asked: str, families: Registry[Family]) -> tuple[str | None, Path]:
    """``simswap:mine.onnx`` says what a file is whose graph fits several families. ``C:\\mine.onnx`` is a path: C is no family."""
    family, colon, rest = asked.partition(":")
    return (family, written_path(rest)) if colon and family in list(families) else (None, written_path(asked))

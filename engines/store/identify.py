"""What a model file is: by its hash if the catalogue has it, by its graph otherwise; never by its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engines.errors import ModelError
from engines.family import Family, Graph
from engines.registry import Registry
from engines.store.catalog import Catalog, Entry
from engines.store.graph import inspect
from engines.store.shelf import sha256_of


@dataclass(frozen=True, slots=True)
class Identity:
    """What a file turned out to be."""

    name: str
    """The catalogue's, or the file's stem."""
    family: str
    kind: str
    sha256: str
    graph: Graph
    entry: Entry | None
    """What the catalogue knows of it; None for a file known by its graph alone."""


def identify(path: Path, catalog: Catalog, families: Registry[Family], *, family: str | None = None, hint: str = "") -> Identity:
    """Tells what ``path`` is. ``family``: what the user says it is, for a graph that fits several; ``hint``: how the user can say so
    (``{family}`` stands for one that fits), where it is not by ``ffrt models import --family``.

    Any thread; reads the file twice. Raises ``ModelError`` for a file that is no model, keeps weights elsewhere, fits no family or
    several, or does not fit the one that was named.
    """
    found = inspect(path)
    if found.external:
        # Its hash would say nothing of its weights.
        raise ModelError(f"{path} keeps its weights in {', '.join(found.external)}; save the model as one file and import that")
    sha256 = sha256_of(path)
    entry = catalog.by_sha256(sha256)
    if entry is not None and family in (None, entry.family):
        return Identity(entry.name, entry.family, str(entry.kind), sha256, found.graph, entry)
    chosen = family_of(str(path), found.graph, families, family, hint)
    return Identity(path.stem, chosen, str(families[chosen].kind), sha256, found.graph, entry)


def family_of(what: str, graph: Graph, families: Registry[Family], named: str | None = None, hint: str = "") -> str:
    """The family that ``graph`` fits, or ``named`` if it fits that. ``what``: what to call the file; ``hint``: see ``identify``.

    Raises ``ModelError``.
    """
    differences = {name: families[name].differences(graph) for name in families}
    if named is not None:
        if named not in differences:
            raise ModelError(f"no family is called {named!r}; known are: {', '.join(differences) or 'none'}")
        if differences[named]:
            raise ModelError(f"{what} is not of the family {named}: {'; '.join(differences[named])}. It takes and gives {graph.describe()}")
        return named
    fitting = [name for name, found in differences.items() if not found]
    if len(fitting) > 1:
        hint = hint or f"say which it is by --family, as in `ffrt models import {what} --family {{family}}`"
        raise ModelError(f"{what} fits several families ({', '.join(fitting)}); {hint.replace('{family}', fitting[0])}")
    if not fitting:
        raise ModelError(_unknown(what, graph, differences))
    return fitting[0]


def _unknown(what: str, graph: Graph, differences: dict[str, tuple[str, ...]]) -> str:
    described = f"{what} is a model of no family that ffrt knows: {graph.describe()} (opset {graph.opset})"
    if not differences:
        return f"{described}; this version knows no families"
    nearest = min(differences, key=lambda name: len(differences[name]))
    return f"{described}; the nearest family is {nearest}, but {'; '.join(differences[nearest])}"

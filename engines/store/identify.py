"""What a model file is: by its hash if the catalogue has it, by its graph otherwise; its name decides only between families whose graphs
are alike."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engines.errors import ModelError
from engines.family import Family, Graph, Kind, NamesInputs, Structure
from engines.registry import Registry
from engines.store.catalog import Catalog, Entry
from engines.store.graph import inspect
from engines.store.shelf import fit_name, sha256_of


class ToldBy(StrEnum):
    """What said of which family a file is."""

    HASH = "hash"
    GRAPH = "graph"
    NAME = "name"
    """Of several whose graphs it fits."""
    USER = "user"


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
    told_by: ToldBy


def identify(
    path: Path,
    catalog: Catalog,
    families: Registry[Family],
    *,
    family: str | None = None,
    kind: Kind | None = None,
    hint: str = "",
) -> Identity:
    """Tells what ``path`` is. ``family``: what the user says it is, for a graph that fits several; ``kind``: what it is wanted for, which
    decides between families of several kinds. ``hint``: how the user can name the family (``{family}`` stands for one that fits), where
    that is not by ``ffrt models import --family``.

    Any thread; reads the file twice. Raises ``ModelError`` for a file that is no model, keeps weights elsewhere, fits no family, fits
    several and bears the name of none or of more than one of them, or does not fit the one that was named.
    """
    found = inspect(path)
    if found.external:
        # Its hash would say nothing of its weights.
        raise ModelError(f"{path} keeps its weights in {', '.join(found.external)}; save the model as one file and import that")
    sha256 = sha256_of(path)
    entry = catalog.by_sha256(sha256)
    if entry is not None and family in (None, entry.family) and _is_of(entry.family, found.graph, families):
        return Identity(entry.name, entry.family, str(entry.kind), sha256, found.graph, entry, ToldBy.HASH)
    if family is not None:
        chosen, told_by = family_of(str(path), found.graph, families, family), ToldBy.USER
    else:
        chosen, told_by = _by_graph(path, found.graph, families, kind, hint)
    return Identity(fit_name(path.name), chosen, str(families[chosen].kind), sha256, found.graph, entry, told_by)


def _is_of(family: str, graph: Graph, families: Registry[Family]) -> bool:
    """A file that has but the beginning and the end of a known hash is not believed alone. A family that is not known here says nothing."""
    return family not in list(families) or not families[family].differences(graph)


def family_of(what: str, graph: Graph, families: Registry[Family], named: str) -> str:
    """``named``, if ``graph`` fits it. ``what``: what to call the file. Raises ``ModelError``."""
    if named not in list(families):
        raise ModelError(f"no family is called {named!r}; known are: {', '.join(families) or 'none'}")
    differences = families[named].differences(graph)
    if differences:
        raise ModelError(f"{what} is not of the family {named}: {'; '.join(differences)}. It takes and gives {graph.describe()}")
    return named


def _by_graph(path: Path, graph: Graph, families: Registry[Family], kind: Kind | None, hint: str) -> tuple[str, ToldBy]:
    differences = {name: families[name].differences(graph) for name in families}
    fitting = [name for name, found in differences.items() if not found]
    if not fitting:
        raise ModelError(_unknown(path, graph, differences))
    wanted = [name for name in fitting if families[name].kind is kind]
    if kind is not None and not wanted:
        return _by_name(path, fitting) or fitting[0], ToldBy.GRAPH  # a wrong kind whichever it is, and so it will be said
    fitting = wanted or fitting
    if len(fitting) == 1:
        return fitting[0], ToldBy.GRAPH
    telling = [name for name in fitting if _has_the_names_of(families[name], graph)]
    if len(telling) == 1:
        return telling[0], ToldBy.GRAPH
    found = _by_name(path, fitting)
    if found is None:
        raise ModelError(_ambiguous(path, fitting, hint))
    return found, ToldBy.NAME


def _has_the_names_of(family: Family, graph: Graph) -> bool:
    return isinstance(family, NamesInputs) and family.input_names == {spec.name for spec in graph.inputs}


def _by_name(path: Path, fitting: Sequence[str]) -> str | None:
    """The only one of ``fitting`` that the file's name names: ``GFPGANv1.4`` is of the family gfpgan, ``GPEN-BFR-512`` of gpen."""
    named = [family for family in fitting if _letters(family) in _letters(path.stem)]
    return named[0] if len(named) == 1 else None


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _ambiguous(path: Path, fitting: Sequence[str], hint: str) -> str:
    first, *others = fitting
    hint = hint or f"type `ffrt models import {shlex.quote(str(path))} --family {{family}}`"
    alike = f"{path} fits several families ({', '.join(fitting)}), and neither its hash nor its name says which"
    return f"{alike}; {hint.replace('{family}', first)}, or {' or '.join(others)} in place of {first}"


def _unknown(path: Path, graph: Graph, differences: dict[str, tuple[str, ...]]) -> str:
    described = f"{path} is a model of no family that ffrt knows: {graph.describe()} (opset {graph.opset})"
    if not differences:
        return f"{described}; this version knows no families"
    nearest = _nearest(path, differences)
    return f"{described}; the nearest family is {nearest}, but {'; '.join(differences[nearest])}"


def _nearest(path: Path, differences: dict[str, tuple[str, ...]]) -> str:
    """The family that the file's name or suffix names; else the one whose shapes differ least, number of tensors first."""
    named = [family for family in differences if _letters(family) in _letters(path.name)]
    if named:
        return max(named, key=len)
    return min(differences, key=lambda name: (any(isinstance(found, Structure) for found in differences[name]), len(differences[name])))

"""The contract of every model family: what its files look like, and how one of them becomes a working part.

A family is one file, in the room of its kind, that registers itself in ``families`` where it stands; its whole knowledge (names,
norms, templates, layouts) lives there. Files are told apart by their graph, never by their name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from engines.align import Aligner
from engines.measure import Check
from engines.registry import Registry
from engines.session import Session, Shapes, TensorSpec
from engines.wording import counted


class Kind(StrEnum):
    """What a part does; the option of the command line that takes it bears the same name."""

    DETECTOR = "detector"
    LANDMARKS = "landmarks"
    IDENTITY = "identity"
    """A recogniser: an aligned face → an embedding."""
    CONVERTER = "converter"
    """An embedding of one recogniser → what a swapper was trained on."""
    SWAPPER = "swapper"
    ENHANCER = "enhancer"
    MASK = "mask"


@dataclass(frozen=True, slots=True)
class Graph:
    """What an ONNX file says of itself, read without running it."""

    inputs: tuple[TensorSpec, ...]
    """In the file's order, constants left out."""
    outputs: tuple[TensorSpec, ...]
    last_initializer: TensorSpec | None = None
    """Some families keep a matrix there (inswapper's emap)."""
    opset: int = 0

    def describe(self) -> str:
        """``input float32[1, 3, 128, 128] → output float32[1, 3, 128, 128]``, for people."""
        return f"{_tensors(self.inputs)} → {_tensors(self.outputs)}"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model on this machine whose family is known."""

    name: str
    """What a person calls it: the catalogue's name, or the file's stem."""
    path: Path
    sha256: str
    family: str
    graph: Graph


class Kit(Protocol):
    """What a family may ask of the program while it opens one of its models."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What the user asked of parts, by name: ``pixel_boost`` (int, 1 to 4), ``enhancer_weight`` (float in [0, 1]),
        ``mask_regions`` (names of ``engines.mask.bisenet.REGIONS``)."""
        ...

    @property
    def aligner(self) -> Aligner:
        """Says where the five points of a tracked face are."""
        ...

    def session(self, model: ModelFile, shapes: Shapes | None = None) -> Session:
        """The model, on the runtime that suits this machine. Raises ``ModelError``.

        ``shapes``: what an engine is to be built for, where the file leaves sizes open beyond the number of pictures.
        """
        ...

    def part(self, kind: Kind, names: Sequence[str]) -> Any:
        """Another model that this one needs, opened: the first of ``names`` that is on this machine.

        Raises ``ModelError`` saying which are accepted and how to get one.
        """
        ...


class Family(Protocol):
    """One family of models. Stateless: registered once, asked from any thread."""

    kind: Kind

    def differences(self, graph: Graph) -> tuple[str, ...]:
        """What keeps ``graph`` from being of this family, a clause each; empty where it fits."""
        ...

    def open(self, model: ModelFile, kit: Kit) -> Any:
        """A part that keeps the contract of ``kind``. Raises ``ModelError``."""
        ...


@runtime_checkable
class TellsOutputs(Protocol):
    """What a family offers beside ``Family`` if the shapes of its outputs do not tell what they are."""

    def checks(self, graph: Graph) -> Mapping[str, Check]:
        """By output: how it is compared with that of another runtime or precision. What is not named goes by its shape."""
        ...


@runtime_checkable
class NamesInputs(Protocol):
    """What a family offers beside ``Family`` if its files call their inputs as those of no other family of the same shapes do. A graph that
    fits several families is of the one whose names it has, in whatever order."""

    input_names: frozenset[str]


@runtime_checkable
class DrawsOnePerson(Protocol):
    """What a family of swappers offers beside ``Family`` if each of its files is made for one person, and needs no photo."""

    needs_photo: bool
    """False."""


ROOMS = ("detect", "landmarks", "identity", "swap", "enhance", "mask")
"""Packages of ``engines`` in which families live."""

families: Registry[Family] = Registry("model family", *(f"engines.{room}" for room in ROOMS))


class Structure(str):
    """A difference in how many tensors there are: shapes were not compared after it."""


def built_otherwise(graph: Graph, wanted: str) -> tuple[Structure, ...]:
    """That ``graph`` has other inputs and outputs than ``wanted``, as in "one of each"."""
    return (Structure(f"it has {counted(len(graph.inputs), 'input')} and {counted(len(graph.outputs), 'output')}, not {wanted}"),)


def _tensors(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {spec.dtype}[{', '.join(map(str, spec.shape))}]" for spec in specs) or "nothing"


def shape_differences(what: str, spec: TensorSpec | None, shape: Sequence[int | None], dtypes: Sequence[str]) -> tuple[str, ...]:
    """How ``spec`` differs from ``shape`` (None: any size; a dimension that may vary fits every size) and ``dtypes`` (NumPy names)."""
    if spec is None:
        return (f"it has no {what}",)
    found: list[str] = []
    fits = len(spec.shape) == len(shape) and all(
        want is None or not isinstance(have, int) or have == want for have, want in zip(spec.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        found.append(f"its {what} is [{', '.join(map(str, spec.shape))}], not [{wanted}]")
    if str(spec.dtype) not in dtypes:
        found.append(f"its {what} is {spec.dtype}, not {' or '.join(dtypes)}")
    return tuple(found)

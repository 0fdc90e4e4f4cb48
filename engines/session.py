"""The contract that every runtime keeps: named tensors in, named tensors out.

A runtime is one file that registers itself and is named in ``runtimes``; whoever needs a model asks ``open_session``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from engines.device.memory import Place, deliver, fetched, place_of
from engines.errors import DeviceError, ModelError
from engines.registry import Registry

if TYPE_CHECKING:
    from engines.build.child import Progress
    from engines.family import ModelFile


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and element type of a model's input or output."""

    name: str
    shape: tuple[int | str, ...]
    """A string is a dimension that may vary."""
    dtype: np.dtype


class Session(Protocol):
    """A model ready to run. Not thread-safe: one thread at a time."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    runtime: str
    """What runs it, for people: ``ort:CPUExecutionProvider``."""

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs the model once and returns all outputs by name. Raises ``ModelError`` for feeds that do not fit,
        ``DeviceMemoryError`` where the device has no memory left for it."""
        ...

    def warm_up(self) -> None:
        """Runs once on zeros, so that what is made at the first run (kernels, memory) is made now."""
        ...

    @property
    def memory_bytes(self) -> int | None:
        """Of the device, for weights and intermediate results; None where the runtime does not say."""
        ...

    def close(self) -> None:
        """Frees what the runtime holds. May be called twice."""
        ...


@runtime_checkable
class RunsInPlace(Protocol):
    """What a session offers beside ``Session`` if it reads and writes where arrays lie. Ask ``run_in_place``, which serves others too."""

    def works_in(self, memory: str) -> bool:
        """Whether it can work on arrays that lie in ``engines.device.memory.HOST`` or ``CUDA``."""
        ...

    def run_into(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        """Runs the model once; nothing is copied and no memory is made but at the first run of a shape.

        ``feeds``: every input, ``results``: the outputs that are wanted, by name: contiguous arrays of the model's types, all in one
        memory. On a GPU the work is given to the stream that the arrays name and not waited for; without one, it is done on return.
        Raises ``ModelError`` for arrays that do not fit.
        """
        ...


@runtime_checkable
class RunsNetworks(Protocol):
    """A part that opens models which come with the program, and says so for reports."""

    @property
    def networks(self) -> Mapping[str, Session]:
        """By the names of ``assets/models/models.toml``."""
        ...


OpenSession = Callable[..., Session]
"""``open(path, *, threads, sizes) -> Session``; raises ``ModelError``, and ``DeviceError`` where the runtime cannot work here."""

Sizes = Mapping[str, int]
"""Dimension that a model's file leaves open, by its name there → what it always is."""


Shapes = Mapping[str, tuple[int, ...]]
"""Input → shape, of a model whose file leaves sizes open."""

Prepare = Callable[["ModelFile", Shapes, "Callable[[Progress], None]", Callable[[], bool]], None]
"""``prepare(model, shapes, report, cancelled)``: minutes, on the calling thread, the work itself in a child. When it returns the model has
passed the parity gate and may be opened. Raises ``EngineError``; ``BuildCancelled`` soon after ``cancelled`` says so."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a runtime registers."""

    open: OpenSession
    problem: Callable[[], str]
    """Why it cannot run on this machine, as a sentence that names what is missing; empty where it can. Quick, and never raises."""
    unfit: Callable[[Path], str] = lambda path: ""
    """Why it cannot run this model, though it runs here: no engine of it is built, say. Never raises; may read the file."""
    prepare: Prepare | None = None
    """Makes what ``unfit`` misses, where that can be made."""


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """What was chosen, and why not the others."""

    runtime: str
    rejected: tuple[tuple[str, str], ...]
    """(runtime, why not), in the order in which they were asked."""

    def describe(self) -> str:
        """``ort; not rtx: tensorrt-rtx is not installed; …``, for people."""
        return "; ".join(filter(None, [self.runtime, self.reasons]))

    @property
    def reasons(self) -> str:
        """``not rtx: tensorrt-rtx is not installed; …``; empty where the first of the order was taken."""
        return "; ".join(f"not {name}: {why}" for name, why in self.rejected)


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A model that is open, for reports."""

    model: str
    runtime: str
    """As ``Session.runtime``."""
    why: str
    """Why not a runtime that stands before it in the order; empty where it is the first."""
    memory_bytes: int | None
    """As ``Session.memory_bytes``."""


runtimes: Registry[Runtime] = Registry("runtime", "engines.ort", "engines.tensorrt")

AUTO = "auto"

AUTO_ORDER = ("rtx", "tensorrt", "ort-cuda", "ort-directml", "ort-coreml", "ort")
"""What ``auto`` asks, the first that can run wins.

TensorRT for RTX stands before TensorRT because its engines need not be built on the user's own machine; both before ONNX Runtime on the
same GPU, because whoever built an engine wants it used. OpenVINO must be asked for by name: it takes the place of the package that all else
runs on.
"""


def register_runtime(name: str, runtime: Runtime) -> None:
    """Makes a runtime known. Raises ValueError for a name that is taken."""
    runtimes.register(name)(runtime)


def open_session(path: Path, *, runtime: str = "ort", threads: int = 1, sizes: Sizes = MappingProxyType({})) -> Session:
    """Opens a model file. ``threads``: how many the model may use; one leaves the other cores to the rest of the line.

    ``sizes``: for which the graph may be optimised, and which every run then has; runtimes whose engines have their own need none.

    ``runtime``: a registered name; never another one in its place. Raises ``ModelError`` for a file that is missing or no model and for a
    runtime nobody knows, ``DeviceError`` naming what is missing when the runtime cannot work on this machine.
    """
    try:
        known = runtimes[runtime]
    except KeyError as error:
        raise ModelError(error.args[0]) from None
    return known.open(path, threads=threads, sizes=sizes)


def runtime_order(asked: str, known: Registry[Runtime] = runtimes) -> tuple[str, ...]:
    """``auto``, one runtime, or several in the order in which they are to be tried (``rtx,ort``). Raises ``ModelError`` for others."""
    if asked == AUTO:
        return AUTO_ORDER
    names = tuple(name.strip() for name in asked.split(","))
    unknown = [name for name in names if name not in list(known)]
    if unknown:
        raise ModelError(f"no runtime is called {unknown[0]!r}; choose {AUTO}, or one or more of {', '.join(known)}, as in rtx,ort")
    return names


def choose_runtime(
    order: Sequence[str] = AUTO_ORDER, unfit: Callable[[str], str] = lambda name: "", known: Registry[Runtime] = runtimes
) -> RuntimeChoice:
    """The first of ``order`` that can run here.

    ``unfit``: why a runtime that can run is not to be taken (no engine is built for this model, say); empty where it is.
    Raises ``DeviceError`` with every reason when none is left.
    """
    rejected: list[tuple[str, str]] = []
    for name in order:
        why = _why_not(name, unfit, known)
        if not why:
            return RuntimeChoice(name, tuple(rejected))
        rejected.append((name, why))
    if len(rejected) == 1:
        raise DeviceError(f"the runtime {rejected[0][0]} was asked for: {rejected[0][1]}")
    reasons = "; ".join(f"{name}: {why}" for name, why in rejected) or "none was named"
    raise DeviceError(f"no runtime can run this model here ({reasons})")


def _why_not(name: str, unfit: Callable[[str], str], known: Registry[Runtime]) -> str:
    if name not in list(known):
        return "this build of ffrt has no such runtime"
    return known[name].problem() or unfit(name)


def run_in_place(session: Session, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """``RunsInPlace.run_into``, by way of the host's memory where ``session`` cannot reach the arrays: waits for the device then."""
    memory = place_of(next(iter(feeds.values()))).memory
    if isinstance(session, RunsInPlace) and session.works_in(memory):
        session.run_into(feeds, results)
        return
    made = session.run({name: fetched(array) for name, array in feeds.items()})
    for name, array in results.items():
        if name not in made or made[name].shape != tuple(array.shape):
            given = ", ".join(f"{known} {list(value.shape)}" for known, value in made.items()) or "nothing"
            raise ModelError(f"the network gave {given} where {name} {list(array.shape)} was expected")
        deliver(made[name].astype(array.dtype, copy=False), array)


def fitting(
    name: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], feeds: Mapping[str, Any], results: Mapping[str, Any]
) -> tuple[dict[str, Place], dict[str, Place]]:
    """Where the arrays lie that ``RunsInPlace.run_into`` was given. Raises ``ModelError`` for those that do not fit the model ``name``:
    addresses are all that a runtime gets, so nothing else would notice."""
    given = {known: place_of(array) for known, array in {**feeds, **results}.items()}
    specs = {spec.name: spec for spec in (*inputs, *outputs)}
    taken = {spec.name for spec in inputs}
    are_named = set(feeds) == taken and set(results) <= set(specs) - taken
    if not are_named or not all(_fits(place, specs[known]) for known, place in given.items()):
        words = ", ".join(f"{known} {place.dtype}{list(place.shape)}" for known, place in given.items()) or "nothing"
        takes = ", ".join(f"{spec.name} {spec.dtype}[{', '.join(map(str, spec.shape))}]" for spec in specs.values())
        raise ModelError(f"{name} was given {words}; it has {takes}")
    return {known: given[known] for known in feeds}, {known: given[known] for known in results}


def _fits(place: Place, spec: TensorSpec) -> bool:
    return (
        place.dtype == spec.dtype
        and len(place.shape) == len(spec.shape)
        and all(not isinstance(want, int) or want == have for want, have in zip(spec.shape, place.shape, strict=True))
    )


def warm_up(session: Session) -> None:
    """Runs ``session`` once on zeros, at batch 1 where that may vary; a model whose other dimensions vary is left cold."""
    shapes = {
        spec.name: tuple(1 if place == 0 and not isinstance(size, int) else size for place, size in enumerate(spec.shape))
        for spec in session.inputs
    }
    if all(isinstance(size, int) for shape in shapes.values() for size in shape):
        fixed = {spec.name: tuple(int(size) for size in shapes[spec.name]) for spec in session.inputs}
        session.run({spec.name: np.zeros(fixed[spec.name], spec.dtype) for spec in session.inputs})

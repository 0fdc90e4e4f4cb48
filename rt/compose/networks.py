"""Networks on crops that lie on a device: they read what a kernel wrote and write what a kernel reads, and nothing passes the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engines.batch import Batches
from engines.crop_model import CropNetwork
from engines.device.memory import copy_into, fetched
from engines.session import Session, TensorSpec, run_in_place
from rt.compose.canvas import Canvas
from rt.compose.memory import Memory

FLOAT = np.dtype(np.float32)
"""What kernels read and write; networks of half precision get and give copies."""

Wanted = Sequence[tuple[TensorSpec, Any]]
"""Outputs of a network that are looked at, and their shapes; or float32 arrays to hold them."""


class RunsOnCrops(Protocol):
    """As ``engines.crop_model.CropModel`` and ``engines.mask.contract.NetworkMask`` have it."""

    @property
    def network(self) -> CropNetwork: ...

    def feeds(self, identity: Any, count: int) -> Mapping[str, np.ndarray]: ...

    def check_made(self, pictures: np.ndarray) -> None: ...


@dataclass(frozen=True, slots=True)
class _Run:
    """A step of a frame: equal to another one where it does the same to the same arrays, so that graphs know it again."""

    session: Session
    batches: Batches
    picture: str
    others: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, planes: Any, *arrays: Any) -> None:
        """``arrays``: of the other inputs, then of what is written."""
        others, written, count = arrays[: len(self.others)], arrays[len(self.others) :], len(planes)

        def ask(rows: slice) -> None:
            def part(array: Any) -> Any:
                return array if rows == slice(0, count) or len(array) != count else array[rows]

            feeds = {self.picture: part(planes), **dict(zip(self.others, map(part, others), strict=True))}
            run_in_place(self.session, feeds, dict(zip(self.outputs, map(part, written), strict=True)))

        self.batches.run_in_place(count, ask)


@dataclass(frozen=True, slots=True)
class _Check:
    """A step of the first frame alone: the one time that what a network gave is looked at by the processor."""

    check: Callable[[np.ndarray], None]

    def __call__(self, made: Any) -> None:
        self.check(fetched(made))


class DeviceNetworks:
    """Keeps on the device what networks take beside the crops. One thread."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._fed: dict[tuple[int, int, int], tuple[Any, Any, dict[str, Any]]] = {}  # by addresses of what is held
        self._checked: dict[int, Any] = {}  # the same

    def forget(self) -> None:
        """Frees what is kept for models and identities."""
        self._fed.clear()
        self._checked.clear()

    def run(self, canvas: Canvas, model: RunsOnCrops, identity: Any, planes: Any, wanted: Wanted) -> list[Any]:
        """Asks ``canvas`` for a run of ``model`` on ``planes`` (float32 [N, …]). What it is to write: float32, the same arrays from frame
        to frame, until the next run's."""
        network, others = model.network, self._others(model, identity, len(planes))
        written = [self._written(f"output {number}", spec.dtype, place) for number, (spec, place) in enumerate(wanted)]
        outputs = tuple(spec.name for spec, _ in wanted)
        run = _Run(network.session, network.batches, network.picture.name, tuple(others), outputs)
        canvas.call(run, self._of_type("input", canvas, planes, network.picture.dtype), *others.values(), *written)
        made = [
            self._of_type(f"output {number}", canvas, array, FLOAT, None if isinstance(place, tuple) else place)
            for number, (array, (_, place)) in enumerate(zip(written, wanted, strict=True))
        ]
        if id(model) not in self._checked:
            self._checked[id(model)] = model
            canvas.call(_Check(model.check_made), made[0])
        return made

    def _others(self, model: RunsOnCrops, identity: Any, count: int) -> dict[str, Any]:
        key = (id(model), id(identity), count)
        if key not in self._fed:
            fed = {name: self._memory.constant(values) for name, values in model.feeds(identity, count).items()}
            self._fed[key] = (model, identity, fed)
        return self._fed[key][2]

    def _written(self, what: str, dtype: np.dtype[Any], place: Any) -> Any:
        """Where a network writes a result that is to lie in ``place``, or is of that shape."""
        if isinstance(place, tuple):
            return self._array(what, place, dtype)
        return place if dtype == FLOAT else self._array(what, tuple(place.shape), dtype)

    def _of_type(self, what: str, canvas: Canvas, array: Any, dtype: np.dtype[Any], into: Any = None) -> Any:
        """``array``, or a copy of that type, ``into`` where that is given."""
        if array.dtype == dtype:
            return array
        typed = self._array(f"{what} as", tuple(array.shape), dtype) if into is None else into
        canvas.call(copy_into, array, typed)
        return typed

    def _array(self, what: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        name = f"{what} {dtype}"
        self._memory.array(name, math.prod(shape), dtype)
        return self._memory.part(name, 0, shape)

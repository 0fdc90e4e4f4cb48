"""Every model that an engine is built of in tests, and the build itself, in this process: what is tried there is the builder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
from standins import identity, swappers
from standins.shelf import CONVERTERS, HALF, OTHERS, PERSON, SWAPPERS, write_swapper
from standins.swappers import Contract

from engines.build.builder import BuildRequest, build_engine
from engines.build.graph import profiles
from engines.build.key import InputProfile
from engines.family import Graph
from engines.tensorrt import import_runtime

BATCHES = {"static": (1, 1, 1), "dynamic": (1, 1, 8)}

CHIPS = ("sm_75", "sm_86", "sm_89", "sm_120")

DETECTOR_SHAPE = (1, 3, 640, 640)
"""Of those whose file leaves the size open."""

ANY_BATCH = Contract(256, HALF, HALF, True, outputs=("output", "mask"), batch="N")


def stand_ins() -> dict[str, Callable[[Path], Path]]:
    """Name → writes it into a folder, by the name its family is known by."""
    makers: dict[str, Callable[[Path], Path]] = {
        name: lambda folder, name=name: write_swapper(folder, name)  # type: ignore[misc]
        for name in (*SWAPPERS, PERSON)
    }
    makers["hyperswap any batch"] = lambda folder: swappers.swapper(folder / "hyperswap_n.onnx", ANY_BATCH)
    makers["person with morph"] = lambda folder: swappers.dfm(folder / "morph.dfm", morph=True)
    for number, name in enumerate(CONVERTERS):
        makers[name] = lambda folder, name=name, number=number: identity.crossface(folder / f"{name}.onnx", number)  # type: ignore[misc]
    for kind in OTHERS.values():
        for name, (_, make) in kind.items():
            makers[name] = lambda folder, name=name, make=make: make(folder / f"{name}.onnx")  # type: ignore[misc]
    return makers


def family_of(name: str) -> str | None:
    """Of the stand-ins whose graph fits several."""
    return SWAPPERS[name][0] if name in SWAPPERS else None


def profiles_of(graph: Graph, batch: str, shape: tuple[int, ...] = DETECTOR_SHAPE) -> tuple[InputProfile, ...] | None:
    """None for a dynamic batch of a file that takes one picture alone. ``shape``: where the file leaves it open."""
    free = [spec for spec in graph.inputs if not all(isinstance(size, int) for size in spec.shape[1:])]
    varies = any(spec.shape and not isinstance(spec.shape[0], int) for spec in graph.inputs)
    if batch == "dynamic" and not varies:
        return None
    return profiles(graph.inputs, BATCHES[batch], {spec.name: shape for spec in free})


def built(model: onnx.ModelProto, path: Path, precision: str, taken: tuple[InputProfile, ...], targets: tuple[str, ...]) -> bytes:
    """``model``: ``path`` at ``precision``. Raises ``BuildError``."""
    return build_engine(import_runtime("rtx"), model, BuildRequest(path, Path(), "rtx", precision, targets, taken))

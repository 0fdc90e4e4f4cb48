"""A neural swapper whose network gives back what it was given: the whole way of one, for measuring and for trying out, without weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engines.align import MeshAligner
from engines.device.memory import copy_into
from engines.face import SourceFace
from engines.family import Graph, ModelFile
from engines.session import TensorSpec
from engines.swap import swappers
from engines.swap.neural import NeuralSwapper, Recipe

SIDE = 128
"""inswapper's."""

TARGET = TensorSpec("target", ("batch", 3, SIDE, SIDE), np.dtype(np.float32))


class EchoSession:
    """Keeps ``engines.session.Session``."""

    inputs: tuple[TensorSpec, ...] = (TARGET,)
    outputs: tuple[TensorSpec, ...] = (TensorSpec("output", TARGET.shape, TARGET.dtype),)
    runtime = "echo"
    memory_bytes: int | None = 0

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"output": feeds["target"]}

    def works_in(self, memory: str) -> bool:
        """See ``engines.session.RunsInPlace``: arrays of any package can be copied by themselves."""
        return True

    def run_into(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        """See ``engines.session.RunsInPlace``."""
        copy_into(feeds["target"], results["output"])

    def warm_up(self) -> None:
        """Nothing is made at the first run."""

    def close(self) -> None:
        """Nothing is held."""


class NoFeed:
    """An echo has no identity."""

    def prepare(self, faces: Sequence[SourceFace]) -> np.ndarray:
        return np.zeros((1, 512), np.float32)


@swappers.register("echo")
def echo(boost: int = 1) -> NeuralSwapper:
    """inswapper's crop and norms, around a network that changes nothing."""
    model = ModelFile("echo", Path(), "", "echo", Graph(EchoSession.inputs, EchoSession.outputs))
    swapper = NeuralSwapper(model, EchoSession(), Recipe("arcface_128", SIDE), NoFeed(), boost=boost, aligner=MeshAligner())
    swapper.needs_photo = False
    return swapper

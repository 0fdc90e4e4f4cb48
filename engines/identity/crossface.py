"""FaceFusion's crossface converters: w600k's embedding → the one that another swapper was trained with."""

from __future__ import annotations

import numpy as np

from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.identity.contract import Embedding
from engines.session import Session


class Crossface:
    """Not thread-safe: one thread at a time."""

    def __init__(self, name: str, session: Session) -> None:
        self.name = name
        self._session = session

    def convert(self, embedding: Embedding) -> np.ndarray:
        """float32 [512] from the raw embedding, not normed. Raises ``ModelError``."""
        (spec,) = self._session.inputs
        made = next(iter(self._session.run({spec.name: embedding.raw.reshape(1, 512).astype(spec.dtype, copy=False)}).values()))
        if made.size != 512 or not np.isfinite(made).all():
            raise ModelError(f"{self.name} gave {made.shape} or values that are no numbers where 512 were expected; pull the model again")
        return made.reshape(512).astype(np.float32)


class CrossfaceFamily:
    """512 numbers in, 512 out."""

    kind = Kind.CONVERTER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        given = shape_differences("input", graph.inputs[0], (None, 512), ("float32", "float16"))
        return given + shape_differences("output", graph.outputs[0], (None, 512), ("float32", "float16"))

    def open(self, model: ModelFile, kit: Kit) -> Crossface:
        return Crossface(model.name, kit.session(model))


families.register("crossface")(CrossfaceFamily())

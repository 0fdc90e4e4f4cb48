"""FaceFusion's fan_68_5: 68 points guessed from five, without a look at the picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.align import inverse, similarity, template
from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.landmarks.contract import Points, Sought
from engines.landmarks.crop import to_picture
from engines.measure import Check, landmarks
from engines.network import FLOATS, Network

TEMPLATE = "ffhq_512"
"""The five points are given in a crop of this template whose side is 1, and the 68 come in it."""


class Fan68From5:
    """Not thread-safe: one thread at a time."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._network = network

    def locate(self, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        """See ``engines.landmarks.contract.Landmarker``; picture and boxes are not looked at. The five points stay as they were given:
        the model knows nothing better."""
        fives = np.stack([face.five for face in faces])
        if not np.isfinite(fives).all():
            raise ModelError(f"{self.name} was given points that are no numbers; give five finite ones, in pixels")
        matrices = [similarity(five, template(TEMPLATE, 1)) for five in fives]
        given = np.stack([to_picture(five, matrix) for five, matrix in zip(fives, matrices, strict=True)])
        results = self._network.run_each(given)
        if not results or results[0].size != len(faces) * 68 * 2 or not np.isfinite(results[0]).all():
            raise self._network.wrong(results, f"[{len(faces)}, 68, 2] of numbers")
        rows = zip(results[0].reshape(len(faces), 68, 2), matrices, fives, strict=True)
        return [Points(to_picture(row, inverse(matrix)), five.astype(np.float32), 1.0) for row, matrix, five in rows]


class Fan68From5Family:
    """`input` [1, 5, 2]; one output [1, 68, 2]."""

    kind = Kind.LANDMARKS

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        found = shape_differences("input", graph.inputs[0], (None, 5, 2), FLOATS)
        return found + shape_differences("output", graph.outputs[0], (None, 68, 2), FLOATS)

    def checks(self, graph: Graph) -> dict[str, Check]:
        return {spec.name: landmarks(1) for spec in graph.outputs}

    def open(self, model: ModelFile, kit: Kit) -> Fan68From5:
        return Fan68From5(Network(model.name, kit.session(model)))


families.register("fan_68_5")(Fan68From5Family())

"""FaceFusion's fan_68_5: 68 points guessed from five, without a look at the picture."""

from __future__ import annotations

import numpy as np

from engines.align import inverse, similarity, template
from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, families, shape_differences
from engines.landmarks.contract import Points
from engines.landmarks.crop import to_picture
from engines.network import FLOATS, Network

TEMPLATE = "ffhq_512"
"""The five points are given in a crop of this template whose side is 1, and the 68 come in it."""


class Fan68From5:
    """Not thread-safe: one thread at a time."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._network = network

    def locate(self, image: np.ndarray, box: np.ndarray, five: np.ndarray) -> Points:
        """See ``engines.landmarks.contract.Landmarker``; picture and box are not looked at. The five points stay as they were given:
        the model knows nothing better."""
        if not np.isfinite(five).all():
            raise ModelError(f"{self.name} was given points that are no numbers; give five finite ones, in pixels")
        matrix = similarity(five, template(TEMPLATE, 1))
        results = self._network.run(to_picture(five, matrix)[None])
        if not results or results[0].size != 68 * 2 or not np.isfinite(results[0]).all():
            raise self._network.wrong(results, "[1, 68, 2] of numbers")
        points = to_picture(results[0].reshape(68, 2), inverse(matrix))
        return Points(points, five.astype(np.float32), 1.0)


class Fan68From5Family:
    """`input` [1, 5, 2]; one output [1, 68, 2]."""

    kind = Kind.LANDMARKS

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return (f"it has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, not one of each",)
        found = shape_differences("input", graph.inputs[0], (None, 5, 2), FLOATS)
        return found + shape_differences("output", graph.outputs[0], (None, 68, 2), FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> Fan68From5:
        return Fan68From5(Network(model.name, kit.session(model)))


families.register("fan_68_5")(Fan68From5Family())

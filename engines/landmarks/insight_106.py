"""InsightFace's 2d106det: 106 points, coordinate regression by a MobileNet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.landmarks.contract import Points, Sought
from engines.landmarks.crop import to_picture
from engines.landmarks.five import five_of_106
from engines.landmarks.view import View
from engines.measure import Check, landmarks
from engines.network import FLOATS, Network

SIDE = 192

BOX_SHARE = 1 / 1.5
"""Of the crop's side that the box's longer side takes: InsightFace's landmark models."""


class Insight106:
    """Takes RGB of 0…255; the norm is in the graph. Not thread-safe: one thread at a time."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._view = View(network, SIDE, BOX_SHARE, 255.0)

    def locate(self, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        """See ``engines.landmarks.contract.Landmarker``. The model gives points in [-1, 1] and no score."""
        results, matrices = self._view.look(image, faces)
        rows = (self._view.values(results, 0, len(faces), (106, 2)) + 1) * (SIDE / 2)
        points = [to_picture(row, matrix) for row, matrix in zip(rows, matrices, strict=True)]
        return [Points(own, five_of_106(own), 1.0) for own in points]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 BGR, as ``engines.landmarks.view.View.crop``."""
        return self._view.crop(image, points)


class Insight106Family:
    """`data` [N, 3, 192, 192]; `fc1` [N, 212]."""

    kind = Kind.LANDMARKS

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        found = shape_differences("input", graph.inputs[0], (None, 3, SIDE, SIDE), FLOATS)
        return found + shape_differences("output", graph.outputs[0], (None, 212), FLOATS)

    def checks(self, graph: Graph) -> dict[str, Check]:
        """[-1, 1] across the crop."""
        return {spec.name: landmarks(2, 2) for spec in graph.outputs}

    def open(self, model: ModelFile, kit: Kit) -> Insight106:
        return Insight106(Network(model.name, kit.session(model)))


families.register("insight_106")(Insight106Family())

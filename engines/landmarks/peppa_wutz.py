"""Peppa-WuTz: a light network of 68 points (Peppa Pig Face Landmark's line), FaceFusion's peppa_wutz."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.landmarks.contract import Points, Sought
from engines.landmarks.crop import to_picture
from engines.landmarks.five import five_of_68
from engines.landmarks.view import View
from engines.measure import Check, landmarks
from engines.network import FLOATS, Network

SIDE, UNITS = 256, 64
"""Pixels of the crop, and how many units it has in the network's points."""

BOX_SHARE = 195 / SIDE
"""Of the crop's side that the box's longer side takes: FaceFusion's, the same as for 2DFAN4."""

SURE = 0.95
"""Mean confidence of a point from which the model is sure: FaceFusion's scale of its score."""


class PeppaWutz:
    """Takes RGB in [0, 1]. Not thread-safe: one thread at a time."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._view = View(network, SIDE, BOX_SHARE, 1.0)

    def locate(self, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        """See ``engines.landmarks.contract.Landmarker``."""
        results, matrices = self._view.look(image, faces)
        rows = self._view.values(results, 0, len(faces), (68, 3))
        scores = np.clip(rows[..., 2].mean(1) / SURE, 0, 1)
        points = [to_picture(row[:, :2] * (SIDE / UNITS), matrix) for row, matrix in zip(rows, matrices, strict=True)]
        return [Points(own, five_of_68(own), float(score)) for own, score in zip(points, scores, strict=True)]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 BGR, as ``engines.landmarks.view.View.crop``."""
        return self._view.crop(image, points)


class PeppaWutzFamily:
    """`input` [1, 3, 256, 256]; one output [1, 68, 3]: x, y, confidence. Its teacher of 98 points is another model."""

    kind = Kind.LANDMARKS

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        found = shape_differences("input", graph.inputs[0], (None, 3, SIDE, SIDE), FLOATS)
        return found + shape_differences("output", graph.outputs[0], (None, 68, 3), FLOATS)

    def checks(self, graph: Graph) -> dict[str, Check]:
        return {spec.name: landmarks(UNITS) for spec in graph.outputs}

    def open(self, model: ModelFile, kit: Kit) -> PeppaWutz:
        return PeppaWutz(Network(model.name, kit.session(model)))


families.register("peppa_wutz")(PeppaWutzFamily())

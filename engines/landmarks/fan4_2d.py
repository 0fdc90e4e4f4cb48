"""2DFAN4 (Bulat & Tzimiropoulos 2017): 68 points from heatmaps, FaceFusion's 2dfan4."""

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
from engines.session import TensorSpec

SIDE, HEATMAP = 256, 64
"""Pixels of the crop and of a heatmap, in which the points are given."""

BOX_SHARE = 195 / SIDE
"""Of the crop's side that the box's longer side takes: the network's training (a box of 195 pixels), as FaceFusion keeps it."""

SURE = 0.9
"""Mean of the heatmaps' maxima from which the model is sure: FaceFusion's scale of its score."""


class Fan4:
    """Takes RGB in [0, 1], as trained (FaceFusion feeds it BGR, and evens out the contrast of very dark crops; here FaceMesh's points
    stand in where the model doubts itself). Not thread-safe: one thread at a time."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._view = View(network, SIDE, BOX_SHARE, 1.0)

    def locate(self, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        """See ``engines.landmarks.contract.Landmarker``."""
        results, matrices = self._view.look(image, faces)
        results.sort(key=lambda result: result.size)
        rows = self._view.values(results, 0, len(faces), (68, 3))
        heat = self._view.values(results, 1, len(faces), (68, HEATMAP * HEATMAP))
        scores = np.clip(heat.max(2).mean(1) / SURE, 0, 1)
        points = [to_picture(row[:, :2] * (SIDE / HEATMAP), matrix) for row, matrix in zip(rows, matrices, strict=True)]
        return [Points(own, five_of_68(own), float(score)) for own, score in zip(points, scores, strict=True)]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 BGR, as ``engines.landmarks.view.View.crop``."""
        return self._view.crop(image, points)


class Fan4Family:
    """`input` [1, 3, 256, 256]; `landmarks_xyscore` [1, 68, 3] and `heatmaps` [1, 68, 64, 64], in whatever order."""

    kind = Kind.LANDMARKS

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 2:
            return built_otherwise(graph, "one and two")
        found = shape_differences("input", graph.inputs[0], (None, 3, SIDE, SIDE), FLOATS)
        found += shape_differences("output of points", _with(graph.outputs, 3), (None, 68, 3), FLOATS)
        return found + shape_differences("output of heatmaps", _with(graph.outputs, 4), (None, 68, HEATMAP, HEATMAP), FLOATS)

    def checks(self, graph: Graph) -> dict[str, Check]:
        """The points are counted in cells of the heatmaps."""
        return {spec.name: landmarks(HEATMAP) for spec in graph.outputs if len(spec.shape) == 3}

    def open(self, model: ModelFile, kit: Kit) -> Fan4:
        return Fan4(Network(model.name, kit.session(model)))


def _with(specs: Sequence[TensorSpec], dimensions: int) -> TensorSpec | None:
    return next((spec for spec in specs if len(spec.shape) == dimensions), None)


families.register("2dfan4")(Fan4Family())

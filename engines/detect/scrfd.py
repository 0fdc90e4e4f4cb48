"""SCRFD (Guo et al. 2021) and RetinaFace 10g, which is one of them: InsightFace's files (det_10g, scrfd_*_bnkps) and FaceFusion's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.detect.canvas import canvas_size, on_canvas, usual_shapes
from engines.detect.layers import SCORE_MIN, STRIDES, Candidates, by_layer, cells, faces, joined, layer_differences
from engines.face import Detection
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.network import FLOATS, Network
from engines.tensor import Norm

NORM = Norm((0.5, 0.5, 0.5), (128 / 255, 128 / 255, 128 / 255))
"""InsightFace's (x - 127.5) / 128, RGB: what the networks are trained with. FaceFusion feeds them, and YOLO-face, BGR."""

ANCHORS = 2
"""A cell."""

OUTPUTS = {1: 3, 4: 3, 10: 3}
"""Numbers an anchor → how many outputs: scores, distances to the box's sides, and to five keypoints, a layer each."""


class Scrfd:
    """Five keypoints a face: viewer's left eye, right eye, nose tip, corners of the mouth left and right."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._network = network

    def detect(self, image: np.ndarray) -> list[Detection]:
        """``image``: uint8 [H, W, 3] BGR. Raises ``ModelError`` where the network gives something else than its file says."""
        size = canvas_size(self._network.picture.shape[2:], image.shape)
        canvas = on_canvas(image, size)
        results = self._network.look(canvas.pixels, NORM)
        layers = by_layer(results, size, ANCHORS, OUTPUTS)
        if layers is None:
            raise self._network.wrong(results, f"three layers of a canvas of {size[1]}x{size[0]}")
        parts = [_decoded(layer, size[1] // stride, stride) for stride, layer in zip(STRIDES, layers, strict=True)]
        return faces(canvas, joined(parts))


def _decoded(layer: Sequence[np.ndarray], columns: int, stride: int) -> Candidates:
    """Distances are in strides: from the anchor to left, top, right, bottom (FCOS, Tian et al. 2019), and to the keypoints."""
    scores, distances, keypoints = layer
    chosen = np.flatnonzero(scores[:, 0] >= SCORE_MIN)
    anchors = cells(chosen, columns, stride, ANCHORS)
    away = distances[chosen] * stride
    corners = np.concatenate([anchors - away[:, :2], anchors + away[:, 2:]], 1)
    points = anchors[:, None] + keypoints[chosen].reshape(-1, 5, 2) * stride
    return Candidates(corners, points, scores[chosen, 0])


class ScrfdFamily:
    """One input named `input.1` (InsightFace) or `input` (FaceFusion), of any size; nine outputs of any names."""

    kind = Kind.DETECTOR

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1:
            return built_otherwise(graph, "one input")
        found = shape_differences("input", graph.inputs[0], (None, 3, None, None), FLOATS)
        return found + layer_differences(graph.outputs, OUTPUTS)

    def open(self, model: ModelFile, kit: Kit) -> Scrfd:
        return Scrfd(Network(model.name, kit.session(model, usual_shapes(model.graph))))


families.register("scrfd")(ScrfdFamily())

"""YuNet (Wu, Peng, Yu 2023), OpenCV Zoo's face_detection_yunet_2023mar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.detect.canvas import canvas_size, on_canvas, usual_shapes
from engines.detect.layers import SCORE_MIN, STRIDES, Candidates, by_layer, cells, faces, joined, layer_differences
from engines.face import Detection
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.network import FLOATS, Network

OUTPUTS = {1: 6, 4: 3, 10: 3}
"""Numbers a cell → how many outputs: class and objectness, box, keypoints, a layer each. The first two are multiplied, so which of
them is which need not be known."""


class YuNet:
    """Five keypoints a face: viewer's left eye, right eye, nose tip, corners of the mouth left and right."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._network = network

    def detect(self, image: np.ndarray) -> list[Detection]:
        """``image``: uint8 [H, W, 3] BGR; the network takes its levels and colour order as they are. Raises ``ModelError``."""
        size = canvas_size(self._network.picture.shape[2:], image.shape)
        canvas = on_canvas(image, size)
        tensor = self._network.tensor((1, 3, *size))
        tensor[0] = canvas.pixels.transpose(2, 0, 1)
        results = self._network.run(tensor)
        layers = by_layer(results, size, 1, OUTPUTS)
        if layers is None:
            raise self._network.wrong(results, f"three layers of a canvas of {size[1]}x{size[0]}")
        parts = [_decoded(layer, size[1] // stride, stride) for stride, layer in zip(STRIDES, layers, strict=True)]
        return faces(canvas, joined(parts))


def _decoded(layer: Sequence[np.ndarray], columns: int, stride: int) -> Candidates:
    """As OpenCV's FaceDetectorYN has it: the score is the geometric mean of the two; a box is its centre from the cell's corner and
    the logarithm of its size, in strides."""
    first, second, boxes, keypoints = layer
    scores = np.sqrt(np.clip(first[:, 0], 0, 1) * np.clip(second[:, 0], 0, 1))
    chosen = np.flatnonzero(scores >= SCORE_MIN)
    corner = cells(chosen, columns, stride)
    centres, halves = corner + boxes[chosen, :2] * stride, np.exp(np.minimum(boxes[chosen, 2:], 20)) * stride / 2
    points = corner[:, None] + keypoints[chosen].reshape(-1, 5, 2) * stride
    return Candidates(np.concatenate([centres - halves, centres + halves], 1), points, scores[chosen])


class YuNetFamily:
    """Twelve outputs."""

    kind = Kind.DETECTOR

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1:
            return built_otherwise(graph, "one input")
        found = shape_differences("input", graph.inputs[0], (None, 3, None, None), FLOATS)
        return found + layer_differences(graph.outputs, OUTPUTS)

    def open(self, model: ModelFile, kit: Kit) -> YuNet:
        return YuNet(Network(model.name, kit.session(model, usual_shapes(model.graph))))


families.register("yunet")(YuNetFamily())

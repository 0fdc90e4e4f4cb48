"""YOLO-face 8 (Ultralytics' YOLOv8 with five keypoints, trained on WIDER FACE): FaceFusion's yoloface_8n, VisoMaster's export."""

from __future__ import annotations

import numpy as np

from engines.detect.canvas import canvas_size, on_canvas, usual_shapes
from engines.detect.layers import SCORE_MIN, Candidates, faces
from engines.face import Detection
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.network import FLOATS, Network
from engines.tensor import UNIT

ROWS = 20
"""Centre, width and height; score; x, y and confidence of five keypoints. Pixels of the canvas, decoded in the graph."""


class YoloFace:
    """Five keypoints a face: viewer's left eye, right eye, nose tip, corners of the mouth left and right."""

    def __init__(self, network: Network) -> None:
        self.name = network.name
        self._network = network

    def detect(self, image: np.ndarray) -> list[Detection]:
        """``image``: uint8 [H, W, 3] BGR; the network takes RGB in [0, 1]. Raises ``ModelError``."""
        canvas = on_canvas(image, canvas_size(self._network.picture.shape[2:], image.shape))
        results = self._network.look(canvas.pixels, UNIT)
        if not results or results[0].ndim != 3 or results[0].shape[:2] != (1, ROWS):
            raise self._network.wrong(results, f"[1, {ROWS}, boxes]")
        return faces(canvas, _decoded(results[0][0]))


def _decoded(rows: np.ndarray) -> Candidates:
    """float32 [20, N]."""
    chosen = rows[:, rows[4] >= SCORE_MIN].T
    chosen = chosen[np.isfinite(chosen).all(1)]
    centres, halves = chosen[:, :2], chosen[:, 2:4] / 2
    keypoints = chosen[:, 5:].reshape(-1, 5, 3)[..., :2]
    return Candidates(np.concatenate([centres - halves, centres + halves], 1), keypoints, chosen[:, 4])


class YoloFaceFamily:
    """One input, `input` (FaceFusion) or `images` (VisoMaster), 640 pixels a side; one output [1, 20, 8400]."""

    kind = Kind.DETECTOR

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        found = shape_differences("input", graph.inputs[0], (None, 3, None, None), FLOATS)
        return found + shape_differences("output", graph.outputs[0], (None, ROWS, None), FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> YoloFace:
        return YoloFace(Network(model.name, kit.session(model, usual_shapes(model.graph))))


families.register("yoloface")(YoloFaceFamily())

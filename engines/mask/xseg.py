"""XSeg (DeepFaceLab's segmenter): where the face is seen and nothing is before it. FaceFusion's xseg_1, 2, 3, Rope's and roop's files."""

from __future__ import annotations

import numpy as np

from engines.align import Aligner, crop_bgr, similarity, template
from engines.face import Patch
from engines.family import Graph, Kind, Kit, ModelFile, families, shape_differences
from engines.mask.lower import SIDE, levels, lower, softened
from engines.network import FLOATS, Network
from engines.tensor import UNIT

TEMPLATE = "dfl_whole_face"
"""The crop that DeepFaceLab's own faces are trained in."""


class XSeg:
    """Gives the probability that a pixel of the face is to be swapped. Not thread-safe: one thread at a time."""

    def __init__(self, network: Network, aligner: Aligner) -> None:
        self.name = network.name
        self._network = network
        self._aligner = aligner
        self._planar = network.picture.shape[1] == 3

    def limit(self, image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
        """See ``engines.mask.contract.Mask``. Raises ``ModelError`` where the network gives something else than its file says."""
        if not np.isfinite(points).all():
            return
        matrix = similarity(self._aligner.five(image, points), template(TEMPLATE, SIDE))
        results = self._look(crop_bgr(image, matrix, SIDE))
        if not results or results[0].size != SIDE * SIDE:
            raise self._network.wrong(results, f"one mask of {SIDE} pixels")
        lower(patch, softened(levels(results[0].reshape(SIDE, SIDE))), matrix)

    def _look(self, crop: np.ndarray) -> list[np.ndarray]:
        """Planes are RGB; pixel by pixel it is BGR, as OpenCV reads it. Both in [0, 1]."""
        if self._planar:
            return self._network.look(crop, UNIT)
        tensor = self._network.tensor((1, SIDE, SIDE, 3))
        np.multiply(crop, np.float32(1 / 255), out=tensor[0])
        return self._network.run(tensor)


class XSegFamily:
    """`input` or `xseg_input:0` [N, 256, 256, 3] → [N, 256, 256, 1]; or `in_face:0` [N, 3, 256, 256] → `out_mask:0` [N, 1, 256, 256]."""

    kind = Kind.MASK

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return (f"it has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, not one of each",)
        spec = graph.inputs[0]
        planar = len(spec.shape) == 4 and spec.shape[1] == 3
        found = shape_differences("input", spec, (None, 3, SIDE, SIDE) if planar else (None, SIDE, SIDE, 3), FLOATS)
        shape = (None, 1, SIDE, SIDE) if planar else (None, SIDE, SIDE, 1)
        return found + shape_differences("output", graph.outputs[0], shape, FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> XSeg:
        return XSeg(Network(model.name, kit.session(model)), kit.aligner)


families.register("xseg")(XSegFamily())

"""XSeg (DeepFaceLab's segmenter): where the face is seen and nothing is before it. FaceFusion's xseg_1, 2, 3, Rope's and roop's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from engines.align import Aligner, aligned_crop, crop_bgr, places, template
from engines.crop_model import CropNetwork
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.mask.contract import Cover, MaskRecipe, leave
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
        self.aligner = aligner
        self._planar = network.picture.shape[1] == 3

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        """See ``engines.mask.contract.Mask``; one run of the network for all, where its graph takes any number.

        Raises ``ModelError`` where the network gives something else than its file says.
        """
        matrices = places(self.aligner, image, faces, template(TEMPLATE, SIDE))
        crops = [crop_bgr(image, matrix, SIDE) for matrix in matrices if matrix is not None]
        shares = iter(self._shares(crops) if crops else ())
        return [leave if matrix is None else partial(lower, mask=softened(levels(next(shares))), matrix=matrix) for matrix in matrices]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [256, 256, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        return aligned_crop(self.aligner, image, points, template(TEMPLATE, SIDE), SIDE)

    @property
    def recipe(self) -> MaskRecipe:
        """See ``engines.mask.contract.NetworkMask``."""
        made = (1, SIDE, SIDE) if self._planar else (SIDE, SIDE, 1)
        return MaskRecipe(template(TEMPLATE, SIDE), SIDE, UNIT, self._planar, made, None)

    @property
    def network(self) -> CropNetwork:
        """See ``engines.mask.contract.NetworkMask``."""
        return self._network.on_crops()

    def feeds(self, identity: None, count: int) -> Mapping[str, np.ndarray]:
        """See ``engines.mask.contract.NetworkMask``: nothing."""
        return {}

    def check_made(self, pictures: np.ndarray) -> None:
        """See ``engines.mask.contract.NetworkMask``: what is no number keeps nothing."""

    def _shares(self, crops: Sequence[np.ndarray]) -> np.ndarray:
        """float32 [N, 256, 256] in [0, 1]."""
        results = self._look(crops)
        if not results or results[0].size != len(crops) * SIDE * SIDE:
            raise self._network.wrong(results, f"a mask of {SIDE} pixels for each of {len(crops)}")
        return results[0].reshape(len(crops), SIDE, SIDE)

    def _look(self, crops: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Planes are RGB; pixel by pixel it is BGR, as OpenCV reads it. Both in [0, 1]."""
        if self._planar:
            return self._network.look_each(crops, UNIT)
        tensor = self._network.tensor((len(crops), SIDE, SIDE, 3))
        for crop, pixels in zip(crops, tensor, strict=True):
            np.multiply(crop, np.float32(1 / 255), out=pixels)
        return self._network.run_each(tensor)


class XSegFamily:
    """`input` or `xseg_input:0` [N, 256, 256, 3] → [N, 256, 256, 1]; or `in_face:0` [N, 3, 256, 256] → `out_mask:0` [N, 1, 256, 256]."""

    kind = Kind.MASK

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        spec = graph.inputs[0]
        planar = len(spec.shape) == 4 and spec.shape[1] == 3
        found = shape_differences("input", spec, (None, 3, SIDE, SIDE) if planar else (None, SIDE, SIDE, 3), FLOATS)
        shape = (None, 1, SIDE, SIDE) if planar else (None, SIDE, SIDE, 1)
        return found + shape_differences("output", graph.outputs[0], shape, FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> XSeg:
        return XSeg(Network(model.name, kit.session(model)), kit.aligner)


families.register("xseg")(XSegFamily())

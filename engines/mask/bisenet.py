"""BiSeNet (Yu et al. 2018) trained on CelebAMask-HQ: what part of a head every pixel is. Files with ResNet 18 and 34."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.align import Aligner, crop_bgr, similarity, template
from engines.errors import ModelError
from engines.face import Patch
from engines.family import Graph, Kind, Kit, ModelFile, families, shape_differences
from engines.jit import compiled
from engines.mask.lower import SIDE, lower, softened
from engines.network import FLOATS, Network
from engines.tensor import IMAGENET

INPUT, CLASSES = 512, 19

TEMPLATE = "ffhq_512"
"""How CelebAMask-HQ's pictures, which are FFHQ-like portraits, show a face."""

REGIONS = {
    "skin": 1, "left_brow": 2, "right_brow": 3, "left_eye": 4, "right_eye": 5, "glasses": 6, "left_ear": 7, "right_ear": 8,
    "earring": 9, "nose": 10, "mouth": 11, "upper_lip": 12, "lower_lip": 13, "neck": 14, "necklace": 15, "clothes": 16, "hair": 17,
    "hat": 18,
}  # fmt: skip
"""Number of each region among the network's classes (face-parsing.PyTorch's order of CelebAMask-HQ); 0 is the background."""

FACE = ("skin", "left_brow", "right_brow", "left_eye", "right_eye", "nose", "mouth", "upper_lip", "lower_lip")
"""What is swapped unless asked otherwise: hair, hats and glasses before the face stay the target's."""


class BiSeNet:
    """Not thread-safe: one thread at a time."""

    def __init__(self, network: Network, aligner: Aligner, regions: Sequence[str] = FACE) -> None:
        """``regions``: names of ``REGIONS`` where the patch is seen. Raises ``ModelError`` for others."""
        unknown = sorted(set(regions) - set(REGIONS))
        if unknown:
            raise ModelError(f"{', '.join(unknown)} is no region of a face; known are {', '.join(REGIONS)}")
        self.name = network.name
        self._network = network
        self._aligner = aligner
        self._kept = np.isin(np.arange(CLASSES), [REGIONS[region] for region in regions])
        self._mask = np.empty((SIDE, SIDE), np.uint8)

    def limit(self, image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
        """See ``engines.mask.contract.Mask``. Raises ``ModelError`` where the network gives something else than its file says."""
        if not np.isfinite(points).all():
            return
        matrix = similarity(self._aligner.five(image, points), template(TEMPLATE, INPUT))
        results = self._network.look(crop_bgr(image, matrix, INPUT), IMAGENET)
        if not results or results[0].shape != (1, CLASSES, INPUT, INPUT):
            raise self._network.wrong(results, f"[1, {CLASSES}, {INPUT}, {INPUT}]")
        step = INPUT // SIDE  # every other pixel: the blur to come leaves nothing finer, and it takes a quarter of the time
        _seen(results[0][0], self._kept, step, self._mask)
        lower(patch, softened(self._mask), matrix / np.float32(step))


@compiled()
def _seen(scores: np.ndarray, kept: np.ndarray, step: int, out: np.ndarray) -> None:
    """``out`` uint8 [H, W]: 255 where of ``scores`` float32 [19, H · step, W · step] a ``kept`` class (bool [19]) is the highest, else 0;
    of every ``step``-th row and column. In one pass: 2.5 ms; NumPy, which copies, 15."""
    height, width = out.shape
    inside, outside = np.empty(width, np.float32), np.empty(width, np.float32)
    for y in range(height):
        inside[:] = -np.inf
        outside[:] = -np.inf
        for k in range(len(kept)):
            row, best = scores[k, y * step], inside if kept[k] else outside
            for x in range(width):
                best[x] = max(best[x], row[x * step])
        for x in range(width):
            out[y, x] = 255 if inside[x] > outside[x] else 0


class BiSeNetFamily:
    """`input` [N, 3, 512, 512]; the first output is [N, 19, 512, 512], others (of its training) are not looked at."""

    kind = Kind.MASK

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1:
            return (f"it has {len(graph.inputs)} inputs, not one",)
        found = shape_differences("input", graph.inputs[0], (None, 3, INPUT, INPUT), FLOATS)
        first = graph.outputs[0] if graph.outputs else None
        return found + shape_differences("first output", first, (None, CLASSES, INPUT, INPUT), FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> BiSeNet:
        regions = kit.options.get("mask_regions", FACE)
        return BiSeNet(Network(model.name, kit.session(model)), kit.aligner, regions)


families.register("bisenet")(BiSeNetFamily())

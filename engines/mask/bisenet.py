"""BiSeNet (Yu et al. 2018) trained on CelebAMask-HQ: what part of a head every pixel is. Files with ResNet 18 and 34."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from engines.align import Aligner, aligned_crop, crop_bgr, places, template
from engines.crop_model import CropNetwork
from engines.errors import ModelError
from engines.face_regions import WORN, parsed
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.jit import compiled
from engines.mask.contract import Cover, MaskRecipe, leave
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

FACE = parsed(WORN)
"""What is swapped unless asked otherwise."""


class BiSeNet:
    """Not thread-safe: one thread at a time.

    Looks at the person filmed, as all masks do. FaceFusion looks for regions in the swapped crop: there a network may have painted hair
    away that is to stay, and with an enhancer behind it would have to look twice.
    """

    def __init__(self, network: Network, aligner: Aligner, regions: Sequence[str] = FACE) -> None:
        """``regions``: names of ``REGIONS`` where the patch is seen. Raises ``ModelError`` for others."""
        unknown = sorted(set(regions) - set(REGIONS))
        if unknown:
            raise ModelError(f"{', '.join(unknown)} is no region of a face; known are {', '.join(REGIONS)}")
        self.name = network.name
        self._network = network
        self.aligner = aligner
        self._kept = np.isin(np.arange(CLASSES), [REGIONS[region] for region in regions])

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        """See ``engines.mask.contract.Mask``; one run of the network for all, where its graph takes any number.

        Raises ``ModelError`` where the network gives something else than its file says.
        """
        matrices = places(self.aligner, image, faces, template(TEMPLATE, INPUT))
        crops = [crop_bgr(image, matrix, INPUT) for matrix in matrices if matrix is not None]
        scores = iter(self._scores(crops) if crops else ())
        return [leave if matrix is None else self._cover(next(scores), matrix) for matrix in matrices]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [512, 512, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        return aligned_crop(self.aligner, image, points, template(TEMPLATE, INPUT), INPUT)

    @property
    def recipe(self) -> MaskRecipe:
        """See ``engines.mask.contract.NetworkMask``."""
        return MaskRecipe(template(TEMPLATE, INPUT), INPUT, IMAGENET, True, (CLASSES, INPUT, INPUT), self._kept)

    @property
    def network(self) -> CropNetwork:
        """See ``engines.mask.contract.NetworkMask``."""
        return self._network.on_crops()

    def feeds(self, identity: None, count: int) -> Mapping[str, np.ndarray]:
        """See ``engines.mask.contract.NetworkMask``: nothing."""
        return {}

    def check_made(self, pictures: np.ndarray) -> None:
        """See ``engines.mask.contract.NetworkMask``: what is no number keeps nothing."""

    def _scores(self, crops: Sequence[np.ndarray]) -> np.ndarray:
        """float32 [N, 19, 512, 512]."""
        results, shape = self._network.look_each(crops, IMAGENET), (len(crops), CLASSES, INPUT, INPUT)
        if not results or results[0].shape != shape:
            raise self._network.wrong(results, str(list(shape)))
        return results[0]

    def _cover(self, scores: np.ndarray, matrix: np.ndarray) -> Cover:
        step = INPUT // SIDE  # every other pixel: the blur to come leaves nothing finer, and it takes a quarter of the time
        mask = np.empty((SIDE, SIDE), np.uint8)
        _seen(scores, self._kept, step, mask)
        return partial(lower, mask=softened(mask), matrix=matrix / np.float32(step))


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
            return built_otherwise(graph, "one input")
        found = shape_differences("input", graph.inputs[0], (None, 3, INPUT, INPUT), FLOATS)
        first = graph.outputs[0] if graph.outputs else None
        return found + shape_differences("first output", first, (None, CLASSES, INPUT, INPUT), FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> BiSeNet:
        regions = kit.options.get("mask_regions", FACE)
        return BiSeNet(Network(model.name, kit.session(model)), kit.aligner, regions)


families.register("bisenet")(BiSeNetFamily())

"""What all face restorers share: align → network → paste. They take and give RGB in [-1, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engines.align import Aligner, aligned_crop, crop_bgr, places, template
from engines.crop_model import CropNetwork, CropRecipe
from engines.errors import ModelError
from engines.face import Patch
from engines.family import Graph, Kit, ModelFile, built_otherwise, shape_differences
from engines.network import FLOATS, Network
from engines.paste import paste, soft_box
from engines.session import TensorSpec
from engines.tensor import SIGNED

USUAL_SIDE = 512
"""Of the crop, where a file leaves it open."""


class Restorer:
    """Keeps ``engines.enhance.contract.Enhancer``. Not thread-safe: one thread at a time."""

    def __init__(self, network: Network, aligner: Aligner, place: str, others: Mapping[str, np.ndarray] | None = None) -> None:
        """``place``: a key of ``engines.align.TEMPLATES``. ``others``: what further inputs are always given, by name."""
        self.name = network.name
        self._network = network
        self.aligner = aligner
        self._side = side_of(network.picture)
        self._template = template(place, self._side)
        self._others = dict(others or {})
        self._crop = np.empty((self._side, self._side, 3), np.uint8)

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        """See the contract. Raises ``ModelError`` where the network gives something else than its file says."""
        return self.enhance_all(image, [points])[0]

    def enhance_all(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Patch | None]:
        """See ``engines.enhance.contract.BatchEnhancer``. One run of the network, where its graph takes any number of pictures."""
        matrices = places(self.aligner, image, faces, self._template)
        seen = [matrix for matrix in matrices if matrix is not None]
        patches = iter(self._restored(image, seen) if seen else [])
        return [None if matrix is None else next(patches) for matrix in matrices]

    def park(self) -> None:
        """See ``engines.parking.Parks``."""
        self._network.park()

    def unpark(self) -> None:
        """See ``engines.parking.Parks``."""
        self._network.unpark()

    @property
    def crops(self) -> CropRecipe:
        """See ``engines.crop_model.CropModel``."""
        return CropRecipe(self._template, self._side, 1, SIGNED, SIGNED, says_mask=False)

    @property
    def network(self) -> CropNetwork:
        """See ``engines.crop_model.CropModel``."""
        return self._network.on_crops()

    def feeds(self, identity: None, count: int) -> Mapping[str, np.ndarray]:
        """See ``engines.crop_model.CropModel``: the same, however many."""
        return self._others

    def check_made(self, pictures: np.ndarray) -> None:
        """See ``engines.crop_model.CropModel``."""
        self._checked([pictures], len(pictures))

    def _restored(self, image: np.ndarray, matrices: Sequence[np.ndarray]) -> list[Patch | None]:
        crops = [crop_bgr(image, matrix, self._side) for matrix in matrices]
        patches = []
        pictures = self._checked(self._network.look_each(crops, SIGNED, self._others), len(crops))
        for picture, matrix in zip(pictures, matrices, strict=True):
            SIGNED.to_picture(picture, self._crop)
            patches.append(paste(self._crop, soft_box(self._side), matrix, image.shape))
        return patches

    def _checked(self, results: list[np.ndarray], count: int) -> np.ndarray:
        """float32 [count, 3, S, S] of what the network gave. Raises ``ModelError`` for something else."""
        shape = (count, 3, self._side, self._side)
        if not results or results[0].shape != shape:
            raise self._network.wrong(results, str(list(shape)))
        if not np.isfinite(results[0].sum()):  # one sum is enough: what is no number stays none in it
            raise ModelError(f"{self.name} gave values that are no numbers, a face of black; use the float32 file of this model")
        return results[0]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [S, S, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        return aligned_crop(self.aligner, image, points, self._template, self._side)


def side_of(spec: TensorSpec) -> int:
    """Pixels of the crop that goes into the input ``spec``."""
    side = spec.shape[-1]
    return side if isinstance(side, int) else USUAL_SIDE


def picture_differences(picture: TensorSpec | None, output: TensorSpec | None, sides: Sequence[int]) -> tuple[str, ...]:
    """How a graph's ``picture`` and first ``output`` differ from two pictures of one of ``sides``."""
    side = picture.shape[-1] if picture is not None and len(picture.shape) == 4 and picture.shape[1] == 3 else None
    if isinstance(side, int) and side not in sides:
        listed = " or ".join(map(str, sides))
        return (f"its picture has a side of {side}, not of {listed}",)
    fixed = side if isinstance(side, int) else None
    shape = (None, 3, fixed, fixed)
    return shape_differences("picture", picture, shape, FLOATS) + shape_differences("first output", output, shape, FLOATS)


def one_picture_differences(graph: Graph, sides: Sequence[int]) -> tuple[str, ...]:
    """The same for a graph that has no other input."""
    if len(graph.inputs) != 1:
        return built_otherwise(graph, "one input")
    return picture_differences(graph.inputs[0], graph.outputs[0] if graph.outputs else None, sides)


def only_output(graph: Graph) -> tuple[str, ...]:
    """What to say where there is more than one output."""
    return built_otherwise(graph, "one output") if len(graph.outputs) > 1 else ()


def opened(model: ModelFile, kit: Kit, place: str) -> Restorer:
    """What ``Family.open`` returns for a restorer that takes a picture alone."""
    return Restorer(Network(model.name, kit.session(model)), kit.aligner, place)

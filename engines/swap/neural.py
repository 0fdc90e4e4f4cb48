"""What all neural swappers share: align → normalise → network → paste. A family says in a ``Recipe`` how; it is one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engines.align import Aligner, MeshAligner, aligned_crop, crop_bgr, places, template
from engines.batch import Batches
from engines.crop_model import CropNetwork, CropRecipe, mask_spec, says_mask
from engines.errors import ModelError
from engines.face import Patch, SourceFace
from engines.family import Graph, Kit, ModelFile
from engines.paste import EDGE_SHARE, paste, soft_box
from engines.session import Session, TensorSpec
from engines.tensor import UNIT, Norm


class SourceFeed(Protocol):
    """Turns photos of a person into what a network takes for the face to wear."""

    def prepare(self, faces: Sequence[SourceFace]) -> np.ndarray:
        """float32, the network's second input. Raises ``PhotoError``."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one file's network wants and gives."""

    template: str
    """Where the five points lie: a key of ``engines.align.TEMPLATES``."""
    side: int
    """Pixels of the crop."""
    given: Norm = UNIT
    """Norm of the target's crop."""
    made: Norm = UNIT
    """Norm of the network's picture."""


class NeuralSwapper:
    """``swap`` belongs to one thread; ``prepare`` is any thread's, one at a time."""

    needs_photo = True
    seam_width = 1.0
    """See ``engines.swap.contract.FadesAtSeam``: of the crop's border. Where a network says what is face, that ends as it says."""

    def __init__(
        self,
        model: ModelFile,
        session: Session,
        recipe: Recipe,
        feed: SourceFeed,
        *,
        boost: int = 1,
        aligner: Aligner | None = None,
    ) -> None:
        """``boost``: the crop is so many times as large a side, cut by stride into boost² crops of the network's size."""
        self.name = model.name
        self._session = session
        self._recipe = recipe
        self._feed = feed
        self._boost = boost
        self.aligner = aligner or MeshAligner()
        self._target, self._source = _inputs(session.inputs, model.name)
        self._planes = np.empty((0, 3, recipe.side, recipe.side), np.float32)
        self._crop = np.empty((recipe.side * boost, recipe.side * boost, 3), np.uint8)
        self._batches = Batches(model.name, self._target, session.outputs)
        self.smaller = None if boost == 1 else NeuralSwapper(model, session, recipe, feed, aligner=self.aligner)
        """See ``engines.swap.contract.ScalableSwapper``: the same network, on crops of its own size."""

    def warm_up(self) -> None:
        """The whole way of a black crop: networks allocate, and compile kernels, at their first; so do the passes before and after."""
        planes = self._room_for(1)
        self._crop[:] = 0
        self._split(self._crop, planes)
        source = np.zeros([n if isinstance(n, int) else 1 for n in self._source.shape], np.float32) if self._source else None
        pictures, shown = self._run(planes, source)
        self._join(pictures)
        paste(self._crop, self._alpha(shown), np.eye(2, 3, dtype=np.float32), self._crop.shape)

    def prepare(self, faces: Sequence[SourceFace]) -> np.ndarray:
        """float32: what the network takes for the face to wear."""
        return self._feed.prepare(faces)

    def swap(self, image: np.ndarray, points: np.ndarray, identity: np.ndarray, face_id: int, captured_ns: int) -> Patch | None:
        """See ``engines.swap.contract.Swapper``. Raises ``ModelError`` where the network gives something else than its file says."""
        return self.swap_all(image, [points], identity)[0]

    def swap_all(self, image: np.ndarray, faces: Sequence[np.ndarray], identity: np.ndarray) -> list[Patch | None]:
        """See ``engines.swap.contract.BatchSwapper``. One run of the network for all of them, where its graph takes any number."""
        matrices = places(self.aligner, image, faces, template(self._recipe.template, len(self._crop)))
        seen = [matrix for matrix in matrices if matrix is not None]
        if not seen:
            return [None] * len(faces)
        planes, parts = self._room_for(len(seen)), self._boost**2
        for number, matrix in enumerate(seen):
            self._split(crop_bgr(image, matrix, len(self._crop)), planes[number * parts : (number + 1) * parts])
        pictures, shown = self._run(planes, identity)
        made = []
        for number, matrix in enumerate(seen):
            own = np.s_[number * parts : (number + 1) * parts]
            self._join(pictures[own])
            made.append(paste(self._crop, self._alpha(None if shown is None else shown[own]), matrix, image.shape))
        patches = iter(made)
        return [None if matrix is None else next(patches) for matrix in matrices]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [S, S, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        side = self._recipe.side
        return aligned_crop(self.aligner, image, points, template(self._recipe.template, side), side)

    def forget(self, face_id: int) -> None:
        """Nothing is remembered."""

    @property
    def crops(self) -> CropRecipe | None:
        """See ``engines.crop_model.CropModel``."""
        mask, recipe = says_mask(self._session.outputs), self._recipe
        if mask is None:
            return None
        wanted = template(recipe.template, recipe.side * self._boost)
        return CropRecipe(wanted, recipe.side, self._boost, recipe.given, recipe.made, mask, EDGE_SHARE * self.seam_width)

    @property
    def network(self) -> CropNetwork:
        """See ``engines.crop_model.CropModel``."""
        outputs = self._session.outputs
        return CropNetwork(self._session, self._target, outputs[0], mask_spec(outputs, self._recipe.side), self._batches)

    def feeds(self, identity: np.ndarray, count: int) -> dict[str, np.ndarray]:
        """See ``engines.crop_model.CropModel``."""
        return {} if self._source is None else {self._source.name: _repeated(identity, count, self._source)}

    def check_made(self, pictures: np.ndarray) -> None:
        """See ``engines.crop_model.CropModel``: what is no number is shown as black, here as on the processor."""

    def _room_for(self, faces: int) -> np.ndarray:
        """float32 [faces · boost², 3, S, S]: the same memory as long as no more faces come than before."""
        count = faces * self._boost**2
        if len(self._planes) < count:
            self._planes = np.empty((count, *self._planes.shape[1:]), np.float32)
        return self._planes[:count]

    def _split(self, crop: np.ndarray, planes: np.ndarray) -> None:
        """Sub-sample (i, j) is every boost-th pixel from row i and column j on: each shows the whole face."""
        step = self._boost
        for number, plane in enumerate(planes):
            self._recipe.given.to_tensor(crop[number // step :: step, number % step :: step], plane)

    def _join(self, pictures: np.ndarray) -> None:
        step = self._boost
        for number, picture in enumerate(pictures):
            self._recipe.made.to_picture(picture, self._crop[number // step :: step, number % step :: step])

    def _run(self, planes: np.ndarray, source: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """float32 [N, 3, S, S], and where the network also says what is face: float32 [N, S, S] in [0, 1]."""
        pictures, *masks = self._batches.run(len(planes), lambda rows: self._ask(planes[rows], source))
        return pictures, masks[0] if masks else None

    def _ask(self, planes: np.ndarray, source: np.ndarray | None) -> list[np.ndarray]:
        feeds: dict[str, np.ndarray] = {self._target.name: planes.astype(self._target.dtype, copy=False)}
        if self._source is not None:
            assert source is not None, "a swapper with a source input prepares one"
            feeds |= self.feeds(source, len(planes))
        results = list(self._session.run(feeds).values())
        if not results or results[0].shape != planes.shape:
            given = results[0].shape if results else "nothing"
            raise ModelError(f"{self.name} gave {given} where {planes.shape} was expected; check the file with `ffrt models verify`")
        mask = _mask_of(results[1:], planes.shape)
        return [results[0].astype(np.float32, copy=False), *([] if mask is None else [mask])]

    def _alpha(self, shown: np.ndarray | None) -> np.ndarray:
        side = len(self._crop)
        box = soft_box(side, EDGE_SHARE * self.seam_width)
        if shown is None:
            return box
        whole = np.empty((side, side), np.float32)
        for number, mask in enumerate(shown):
            whole[number // self._boost :: self._boost, number % self._boost :: self._boost] = mask
        return np.minimum(box, np.round(255 * np.clip(np.nan_to_num(whole), 0, 1)).astype(np.uint8))


def boost_of(options: Mapping[str, Any]) -> int:
    """The user's ``pixel_boost``, 1 where none was asked for."""
    return int(options.get("pixel_boost", 1))


def opened(model: ModelFile, kit: Kit, recipe: Recipe, feed: SourceFeed) -> NeuralSwapper:
    """What ``Family.open`` returns for a usual swapper."""
    return NeuralSwapper(model, kit.session(model), recipe, feed, boost=boost_of(kit.options), aligner=kit.aligner)


def target_side(graph: Graph, usual: int) -> int:
    """Side of the target's crop; ``usual`` where the file leaves it open."""
    side = target_of(graph).shape[-1]
    return side if isinstance(side, int) else usual


def target_of(graph: Graph) -> TensorSpec:
    """The input that takes the target: the one of that name, else the largest picture, else the last."""
    pictures = [spec for spec in graph.inputs if len(spec.shape) == 4]
    named = [spec for spec in pictures if spec.name.startswith("target")]
    largest = max((_side(spec) for spec in pictures), default=0)
    return (named or [spec for spec in pictures if _side(spec) == largest])[-1]


def _side(spec: TensorSpec) -> int:
    side = spec.shape[-1]
    return side if isinstance(side, int) else 0


def _inputs(specs: Sequence[TensorSpec], name: str) -> tuple[TensorSpec, TensorSpec | None]:
    """Target and source. By shape, and by name only where both are pictures."""
    if not any(len(spec.shape) == 4 for spec in specs):
        raise ModelError(f"{name} takes no picture; a swapper takes one of [1, 3, S, S]")
    target = target_of(Graph(tuple(specs), ()))
    others = [spec for spec in specs if spec is not target]
    return target, others[0] if others else None


def _repeated(source: np.ndarray, count: int, spec: TensorSpec) -> np.ndarray:
    """``source`` [1, …] once for every crop, unless the graph takes just one."""
    rows = count if not isinstance(spec.shape[0], int) else spec.shape[0]
    whole = np.repeat(source, rows, 0) if rows != 1 else source
    return np.ascontiguousarray(whole.astype(spec.dtype, copy=False))


def _mask_of(results: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    """The output that is one channel of the picture's size, whatever its name."""
    for result in results:
        if result.shape == (shape[0], 1, *shape[2:]):
            mask: np.ndarray = result[:, 0].astype(np.float32, copy=False)
            return mask
    return None

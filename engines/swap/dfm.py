"""DFM (DeepFaceLive): a network trained for one person; an ONNX file by another name. No photo is needed: the file is the identity."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from engines.align import Aligner, aligned_crop, crop_bgr, places, template
from engines.batch import Batches
from engines.errors import ModelError
from engines.face import Patch, SourceFace
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.paste import EDGE_SHARE, paste, soft_box
from engines.session import Session, TensorSpec

TEMPLATE = "dfl_whole_face"

ERODE, BLUR_SIGMA = 2, 6.25
"""The mask loses so many rings of pixels and is blurred by so much, at 256 pixels: FaceFusion's figures for these files."""

MORPH = 0.75
"""DeepFaceLive's own middle of the way to the person, for files that ask (AMP models)."""


class DfmSwapper:
    """``swap`` belongs to one thread.

    The crop goes in as it is. FaceFusion sharpens it first (1.75 of it less 0.75 of its blur by σ 2), which brings out what noise a camera
    has; DeepFaceLive cuts by landmarks (coverage 2.2, 0.08 up) where five points and its mean face stand here, as in FaceFusion.
    """

    needs_photo = False
    seam_width = 1.0
    """See ``engines.swap.contract.FadesAtSeam``."""

    def __init__(self, model: ModelFile, session: Session, aligner: Aligner, morph: float = MORPH) -> None:
        self.name = model.name
        self._session = session
        self._aligner = aligner
        self._face = next(spec for spec in session.inputs if len(spec.shape) == 4)
        self._side = side_of(self._face)
        self._batches = Batches(model.name, self._face, session.outputs)
        self._feeds = {spec.name: np.array([morph], spec.dtype) for spec in session.inputs if spec is not self._face}

    def warm_up(self) -> None:
        self._run(np.zeros((1, self._side, self._side, 3), np.uint8))

    def prepare(self, faces: Sequence[SourceFace]) -> str:
        """The file's name: photos are not looked at."""
        return self.name

    def swap(self, image: np.ndarray, points: np.ndarray, identity: str, face_id: int, captured_ns: int) -> Patch | None:
        """See ``engines.swap.contract.Swapper``. Raises ``ModelError`` where the network gives something else than its family does."""
        return self.swap_all(image, [points], identity)[0]

    def swap_all(self, image: np.ndarray, faces: Sequence[np.ndarray], identity: str) -> list[Patch | None]:
        """See ``engines.swap.contract.BatchSwapper``. One run of the network for all of them, where its graph takes any number."""
        matrices = places(self._aligner, image, faces, template(TEMPLATE, self._side))
        crops = [crop_bgr(image, matrix, self._side) for matrix in matrices if matrix is not None]
        pictures, masks = map(iter, self._batches.run(len(crops), lambda rows: self._run(np.stack(crops[rows]))) if crops else ((), ()))
        return [None if matrix is None else self._patch(next(pictures), next(masks), matrix, image.shape) for matrix in matrices]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [S, S, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        return aligned_crop(self._aligner, image, points, template(TEMPLATE, self._side), self._side)

    def forget(self, face_id: int) -> None:
        """Nothing is remembered."""

    def _patch(self, picture: np.ndarray, mask: np.ndarray, matrix: np.ndarray, shape: tuple[int, ...]) -> Patch | None:
        shown = _levels(_softened(mask, self.seam_width))
        return paste(_levels(picture), np.minimum(shown, soft_box(self._side, EDGE_SHARE * self.seam_width)), matrix, shape)

    def _run(self, crops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """uint8 BGR [N, S, S, 3] → float32 pictures [N, S, S, 3] BGR and masks [N, S, S], both in [0, 1]."""
        faces = (crops / np.float32(255)).astype(self._face.dtype)
        results = list(self._session.run({self._face.name: faces, **self._feeds}).values())
        shapes = [result.shape for result in results]
        count, side = len(crops), self._side
        if shapes[:3] != [(count, side, side, 1), (count, side, side, 3), (count, side, side, 1)]:
            raise ModelError(f"{self.name} gave {shapes}; a DFM file gives a mask, a face and a mask of {side} pixels, in this order")
        target_mask, picture, made_mask = (np.nan_to_num(result.astype(np.float32, copy=False)) for result in results[:3])
        return picture, np.minimum(target_mask, made_mask)[..., 0]


def side_of(spec: TensorSpec) -> int:
    """Pixels of the square that a file takes. Raises ``ModelError`` where it leaves that open."""
    side = spec.shape[1]
    if not isinstance(side, int):
        raise ModelError(f"the input {spec.name} has no fixed size; a DFM file has one of 64 to 512 pixels")
    return side


def _softened(mask: np.ndarray, seam_width: float) -> np.ndarray:
    scale = seam_width * mask.shape[0] / 256
    inner = cv2.erode(mask, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3)), iterations=max(1, round(ERODE * scale)))
    soft: np.ndarray = cv2.GaussianBlur(inner, (0, 0), BLUR_SIGMA * scale)
    return soft


def _levels(values: np.ndarray) -> np.ndarray:
    levels: np.ndarray = np.round(255 * np.clip(values, 0, 1)).astype(np.uint8)
    return levels


class DfmFamily:
    """`in_face:0` [·, S, S, 3], maybe `morph_value:0` [1]; out, by place: mask of the target, the face, its mask."""

    kind = Kind.SWAPPER
    needs_photo = DfmSwapper.needs_photo

    def differences(self, graph: Graph) -> tuple[str, ...]:
        pictures = [spec for spec in graph.inputs if len(spec.shape) == 4]
        others = [spec for spec in graph.inputs if len(spec.shape) != 4]
        if len(pictures) != 1 or len(others) > 1 or len(graph.outputs) != 3:
            return built_otherwise(graph, "a face (and a morph value) in and three out")
        found = shape_differences("face input", pictures[0], (None, None, None, 3), ("float32",))
        for what, spec, channels in zip(("first", "second", "third"), graph.outputs, (1, 3, 1), strict=True):
            found += shape_differences(f"{what} output", spec, (None, None, None, channels), ("float32",))
        return found

    def open(self, model: ModelFile, kit: Kit) -> DfmSwapper:
        return DfmSwapper(model, kit.session(model), kit.aligner)


families.register("dfm")(DfmFamily())

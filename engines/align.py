"""Alignment: five points of a face, the places where a model wants them, and the similarity between the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import cv2
import numpy as np

from engines.mesh.regions import LEFT_EYE, RIGHT_EYE

TEMPLATES = {
    "arcface_112_v1": (
        (0.35473214, 0.45658929),
        (0.64526786, 0.45658929),
        (0.5, 0.61154464),
        (0.37913393, 0.776875),
        (0.62086607, 0.776875),
    ),
    "arcface_112_v2": (
        (0.34191607, 0.46157411),
        (0.65653393, 0.45983393),
        (0.500225, 0.64050536),
        (0.37097589, 0.82469196),
        (0.63151696, 0.82325089),
    ),
    "arcface_128": (
        (0.36167656, 0.40387734),
        (0.63696719, 0.40235469),
        (0.50019687, 0.56044219),
        (0.38710391, 0.72160547),
        (0.61507734, 0.72034453),
    ),
    "ffhq_512": (
        (0.37691676, 0.46864664),
        (0.62285697, 0.46912813),
        (0.50123859, 0.61331904),
        (0.39308822, 0.725411),
        (0.61150205, 0.72490465),
    ),
    "mtcnn_512": (
        (0.36562865, 0.46733799),
        (0.63305391, 0.46585885),
        (0.50019127, 0.61942959),
        (0.39032951, 0.77598822),
        (0.61178945, 0.77476328),
    ),
    "dfl_whole_face": (
        (0.35342266, 0.39285716),
        (0.62797622, 0.39285716),
        (0.48660713, 0.5401786),
        (0.38839287, 0.68750011),
        (0.59821427, 0.68750011),
    ),
}
"""Where models want the five points, as shares of their crop's side: InsightFace's, FFHQ's and DeepFaceLab's, as their users give them."""

NOSE_TIP, MOUTH_LEFT, MOUTH_RIGHT = 1, 61, 291
"""FaceMesh's vertices; left and right as the viewer sees them."""


@lru_cache(maxsize=64)
def template(name: str, side: int) -> np.ndarray:
    """float32 [5, 2] pixels of a ``side`` × ``side`` crop, read only."""
    places = np.array(TEMPLATES[name], np.float32) * side
    places.setflags(write=False)
    return places


def five_of_mesh(points: np.ndarray) -> np.ndarray:
    """float32 [5, 2]: the middles of the eyes' rims, the tip of the nose and the corners of the mouth of FaceMesh points [468, 2+]."""
    eyes = [points[ring, :2].mean(0) for ring in (LEFT_EYE, RIGHT_EYE)]
    return np.stack([*eyes, *points[[NOSE_TIP, MOUTH_LEFT, MOUTH_RIGHT], :2]]).astype(np.float32)


class Aligner(Protocol):
    """Where the five points of tracked faces are."""

    def fives(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """For each of ``faces`` (float32 [468, 3] FaceMesh landmarks, finite) float32 [5, 2], pixels of ``image`` (uint8 [H, W, 3] BGR)."""
        ...


class MeshAligner:
    """From FaceMesh's points alone: steady, since they were filtered, and free."""

    def fives(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return [five_of_mesh(points) for points in faces]


SMALLEST_FACE_PX = 12.0
"""Width of a face from which a network makes something of it."""


def places(aligner: Aligner, image: np.ndarray, faces: Sequence[np.ndarray], wanted: np.ndarray) -> list[np.ndarray | None]:
    """For each face (FaceMesh landmarks [468, 3]) float32 [2, 3], picture → crop, that lays its five points on ``wanted`` [5, 2].

    None for one that is too small, or whose points are no numbers.
    """
    usable = [bool(np.isfinite(points).all()) and float(np.ptp(points[:, 0])) >= SMALLEST_FACE_PX for points in faces]
    chosen = [points for points, is_usable in zip(faces, usable, strict=True) if is_usable]
    fives = iter(aligner.fives(image, chosen) if chosen else ())
    return [similarity(next(fives), wanted) if is_usable else None for is_usable in usable]


def aligned_crop(aligner: Aligner, image: np.ndarray, points: np.ndarray, wanted: np.ndarray, side: int) -> np.ndarray:
    """uint8 [side, side, 3] BGR of ``image`` (uint8 BGR): the face at ``points`` (float32 [468, 3]) with its five points on ``wanted``."""
    return crop_bgr(image, similarity(aligner.fives(image, [points])[0], wanted), side)


def similarity(points: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """float32 [2, 3]: the turn, scale and shift that takes ``points`` [N, 2] nearest to ``wanted`` [N, 2] (least squares).

    With points as complex numbers p, w less their means, the least-squares a of w = a·p is Σ p̄·w / Σ |p|²
    (Umeyama 1991 without the reflection, which a complex factor cannot be).
    """
    p = points[:, 0].astype(np.float64) + 1j * points[:, 1]
    w = wanted[:, 0].astype(np.float64) + 1j * wanted[:, 1]
    middle_p, middle_w = p.mean(), w.mean()
    p -= middle_p
    a = complex(np.vdot(p, w - middle_w)) / max(float(np.vdot(p, p).real), 1e-12)
    shift = middle_w - a * middle_p
    return np.array([[a.real, -a.imag, shift.real], [a.imag, a.real, shift.imag]], np.float32)


def inverse(matrix: np.ndarray) -> np.ndarray:
    """float32 [2, 3]: the way back of a similarity."""
    cos, sin = float(matrix[0, 0]), float(matrix[1, 0])
    norm = max(cos * cos + sin * sin, 1e-30)
    cos, sin = cos / norm, sin / norm
    right, down = map(float, matrix[:, 2])
    return np.array([[cos, sin, -cos * right - sin * down], [-sin, cos, sin * right - cos * down]], np.float32)


@dataclass(frozen=True, slots=True)
class CropPlan:
    """Which part of a picture a crop is taken from: averaged by a whole factor where the crop is much smaller than what it shows."""

    left: int
    top: int
    columns: int
    """Of the part once it is averaged: pixel i of it covers factor·i … factor·i + factor - 1, counted from ``left``."""
    rows: int
    factor: int
    matrix: np.ndarray
    """float64 [2, 3]: pixels of the averaged part → pixels of the crop."""


def crop_plan(matrix: np.ndarray, side: int, shape: tuple[int, ...]) -> CropPlan:
    """Of a crop [side, side] by ``matrix`` [2, 3] (picture → crop) of a picture of ``shape`` (H, W, …).

    Bilinear sampling alone would let noise through where less than half of the pixels are left.
    """
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    whole = CropPlan(0, 0, shape[1], shape[0], 1, matrix.astype(np.float64))
    if scale >= 0.5:
        return whole
    factor = 2 ** int(np.floor(np.log2(1 / max(scale, 1 / 64))))
    return _reduced(matrix, side, shape, factor) or whole


def crop_bgr(image: np.ndarray, matrix: np.ndarray, side: int) -> np.ndarray:
    """uint8 [side, side, 3] BGR of ``image`` (uint8 [H, W, 3] BGR) by ``matrix`` [2, 3] (picture → crop); its border goes on outside.

    See ``crop_plan`` for one that is much smaller than what it shows.
    """
    plan = crop_plan(matrix, side, image.shape)
    part = image
    if plan.factor > 1:
        seen = image[plan.top : plan.top + plan.rows * plan.factor, plan.left : plan.left + plan.columns * plan.factor]
        part = cv2.resize(seen, (plan.columns, plan.rows), interpolation=cv2.INTER_AREA)
    return cv2.warpAffine(part, plan.matrix, (side, side), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def _reduced(matrix: np.ndarray, side: int, shape: tuple[int, ...], factor: int) -> CropPlan | None:
    """What the crop shows, reduced by ``factor``; None where less than that of the picture is left."""
    corners = np.array([[0, 0], [side, 0], [side, side], [0, side]], np.float32)
    back = inverse(matrix)
    seen = corners @ back[:, :2].T + back[:, 2]
    height, width = shape[:2]
    left, top = np.clip(np.floor(seen.min(0)).astype(int) - factor, 0, [width, height])
    right, bottom = np.clip(np.ceil(seen.max(0)).astype(int) + factor, 0, [width, height])
    columns, rows = int(right - left) // factor, int(bottom - top) // factor
    if not columns or not rows:
        return None
    middle = (factor - 1) / 2
    moved = matrix.astype(np.float64).copy()
    moved[:, 2] += matrix[:, :2].astype(np.float64) @ [left + middle, top + middle]
    moved[:, :2] *= factor
    return CropPlan(int(left), int(top), columns, rows, factor, moved)

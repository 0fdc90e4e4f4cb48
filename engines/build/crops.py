"""Real faces for calibration and for the parity gate: cut from photos, each time a little differently."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

import cv2
import numpy as np

from engines.errors import ModelError
from engines.face import Roi
from engines.folders import cache_folder
from engines.session import TensorSpec
from engines.wording import counted

CROPS_MIN = 32
"""Fewer crops prove nothing."""

SIDE = 256
"""Pixels of a crop before it is fitted to a model's input."""


class Framing(StrEnum):
    """What a crop shows."""

    FACE = "face"
    EYE = "eye"
    SCENE = "scene"
    """A face with room around it, for detectors."""


MARGINS = {Framing.FACE: 1.5, Framing.EYE: 2.3, Framing.SCENE: 4.0}
"""Side of the crop over the size of what it shows: FaceMesh's own region, the iris model's, and a webcam's picture."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """How a model wants its picture: pixel / 255, less ``mean``, by ``std``. Not used where the input is uint8."""

    mean: float = 0.0
    std: float = 1.0


def portrait_crops(count: int = CROPS_MIN, framing: Framing = Framing.FACE, seed: int = 7) -> np.ndarray:
    """uint8 [count, 256, 256, 3] RGB from the portraits that come with the program; the same ``seed`` gives the same bytes."""
    folder = Path(str(files("assets") / "portraits"))
    return crops_of([path for path in sorted(folder.iterdir()) if path.suffix in (".png", ".jpg")], count, framing, seed)


def crops_of(photos: Sequence[Path], count: int, framing: Framing, seed: int) -> np.ndarray:
    """The same from photos of people, one face of each.

    Raises ``PhotoError`` for one that cannot be opened, ``ModelError`` when none shows a face.
    """
    from engines.detect.blazeface import full_range
    from engines.identity.photo import open_photo
    from engines.landmarks.facemesh import FaceMesh
    from engines.landmarks.find import find_faces

    detector, mesh = full_range(), FaceMesh()
    views: list[tuple[np.ndarray, Roi]] = []
    for path in photos:
        image = open_photo(path)
        faces = find_faces(image, detector, mesh)
        if faces:
            views += [(image, roi) for roi in _rois(faces[0].points, framing)]
    if not views:
        raise ModelError(f"of {counted(len(photos), 'photo')} for the comparison none shows a face; give photos of people from the front")
    rng = np.random.default_rng(seed)
    return np.stack([_cut(*views[k % len(views)], rng) for k in range(count)])


def read_crops(folder: Path, count: int = CROPS_MIN) -> np.ndarray:
    """uint8 [N, 256, 256, 3] RGB: the user's own crops, every picture of ``folder`` as it is.

    Raises ``ModelError`` for what is no folder, and for fewer than ``count``.
    """
    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise ModelError(f"{folder} is {what}; give a folder of {count} or more crops of faces (PNG, JPEG, WebP)")
    paths = sorted(path for path in folder.glob("*") if path.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp"))
    images = [image for image in (cv2.imread(str(path)) for path in paths) if image is not None]
    if len(images) < count:
        held = counted(len(images), "picture")
        raise ModelError(f"{folder} holds {held} that can be read; at least {count} crops of faces are needed (PNG, JPEG, WebP)")
    return np.stack([cv2.cvtColor(_resized(image, SIDE, SIDE), cv2.COLOR_BGR2RGB) for image in images])


def crops_folder(model: str) -> Path:
    """Where crops are kept that were recorded for the model of this name."""
    return cache_folder() / "crops" / model


def recorded_crops(model: str) -> np.ndarray | None:
    """As ``read_crops`` those that were recorded for the model of this name; None where there are none. Raises ``ModelError``."""
    folder = crops_folder(model)
    return read_crops(folder) if folder.is_dir() else None


def crop_of(image: np.ndarray, points: np.ndarray, framing: Framing) -> np.ndarray:
    """uint8 [256, 256, 3] BGR: what ``framing`` shows of the face at ``points`` (float32 [468, 3] pixels) of ``image`` (uint8 BGR)."""
    from engines.landmarks.crop import crop_rgb

    return np.ascontiguousarray(crop_rgb(image, _rois(points, framing)[0], SIDE)[..., ::-1])


def feeds_of(
    inputs: Sequence[TensorSpec],
    crops: np.ndarray,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    pixels: Pixels | None = None,
    seed: int = 7,
) -> list[dict[str, np.ndarray]]:
    """One run's inputs for each of ``crops`` (uint8 [N, S, S, 3] RGB), batch 1.

    Pictures (four dimensions, three channels) get the crop at their size, layout and type; vectors a random one of length 1, as an
    embedding has; numbers alone 0.5. ``shapes``: for inputs whose sizes may vary. Raises ``ModelError`` for an input of another kind.
    """
    rng = np.random.default_rng(seed)
    fixed = {spec.name: _fixed(spec, (shapes or {}).get(spec.name)) for spec in inputs}
    return [{spec.name: _value(spec, fixed[spec.name], crop, pixels or Pixels(), rng) for spec in inputs} for crop in crops]


def is_picture(shape: Sequence[int | str]) -> bool:
    """Whether a tensor of this shape is a picture: [N, 3, H, W] or [N, H, W, 3]."""
    return len(shape) == 4 and (shape[1] == 3 or shape[3] == 3)


def _fixed(spec: TensorSpec, given: tuple[int, ...] | None) -> tuple[int, ...]:
    shape: tuple[int | str, ...] = given or tuple(
        1 if place == 0 and not isinstance(size, int) else size for place, size in enumerate(spec.shape)
    )
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) != len(shape):
        text = ", ".join(map(str, spec.shape))
        raise ModelError(f"the input {spec.name}[{text}] has sizes that may vary; say which, as in --shape {spec.name}=1x3x640x640")
    return sizes


def _value(spec: TensorSpec, shape: tuple[int, ...], crop: np.ndarray, pixels: Pixels, rng: np.random.Generator) -> np.ndarray:
    if is_picture(shape):
        return _picture(shape, spec.dtype, crop, pixels)
    if math.prod(shape) == 1:
        return np.full(shape, 0.5).astype(spec.dtype)
    if len(shape) == 2 and spec.dtype.kind == "f":
        vector = rng.standard_normal(shape)
        return (vector / np.linalg.norm(vector, axis=1, keepdims=True)).astype(spec.dtype)
    raise ModelError(
        f"the input {spec.name} {spec.dtype}[{', '.join(map(str, shape))}] is neither picture, vector nor number; ffrt cannot make one up"
    )


def _picture(shape: tuple[int, ...], dtype: np.dtype, crop: np.ndarray, pixels: Pixels) -> np.ndarray:
    planar = shape[1] == 3
    height, width = shape[2:] if planar else shape[1:3]
    image = _resized(crop, width, height)
    if dtype.kind == "f":
        image = ((image.astype(np.float32) / 255 - pixels.mean) / pixels.std).astype(dtype)
    batch = np.broadcast_to(image, (shape[0], *image.shape))
    return np.ascontiguousarray(batch.transpose(0, 3, 1, 2) if planar else batch).astype(dtype)


def _rois(points: np.ndarray, framing: Framing) -> list[Roi]:
    from engines.landmarks.facemesh import roi_from_points
    from engines.landmarks.iris import EYES, eye_roi

    if framing is Framing.EYE:
        return [eye_roi(points[left], points[right]) for left, right, _ in EYES]
    roi = roi_from_points(points)
    return [Roi(roi.x, roi.y, roi.size * MARGINS[framing] / MARGINS[Framing.FACE], roi.angle)]


def _cut(image: np.ndarray, roi: Roi, rng: np.random.Generator) -> np.ndarray:
    from engines.landmarks.crop import crop_rgb

    return lit_and_noisy(crop_rgb(image, moved(roi, roi.size, rng), SIDE), rng)


def moved(roi: Roi, size: float, rng: np.random.Generator) -> Roi:
    """``roi`` shifted by up to 6 % of ``size``, scaled by up to 15 %, turned by up to 12 degrees."""
    dx, dy = rng.uniform(-0.06, 0.06, 2) * size
    return Roi(roi.x + dx, roi.y + dy, roi.size * rng.uniform(0.85, 1.15), roi.angle + math.radians(rng.uniform(-12, 12)))


def lit_and_noisy(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """uint8, as ``picture``: lighter or darker, with the noise of a webcam."""
    lit = picture * rng.uniform(0.6, 1.2)
    noisy = lit + rng.normal(0, rng.uniform(0, 5), lit.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def _resized(image: np.ndarray, width: int, height: int) -> np.ndarray:
    shrinks = width * height < image.shape[0] * image.shape[1]
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)

"""Pictures of faces whose points are known: what a family's part looks at when a model is tried."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import cv2
import numpy as np

from engines.align import inverse
from engines.build.crops import CROPS_MIN, MARGINS, Framing, lit_and_noisy, moved
from engines.errors import ModelError
from engines.face import Roi
from engines.wording import counted

SIDE = 640
"""Pixels of a picture: what detectors look at."""


@dataclass(frozen=True, slots=True)
class View:
    """One face."""

    image: np.ndarray
    """uint8 [H, W, 3] BGR."""
    points: np.ndarray
    """float32 [468, 3]: FaceMesh's, pixels."""


def portrait_views(count: int = CROPS_MIN, seed: int = 7) -> list[View]:
    """From the portraits that come with the program, each time shifted, turned and lit otherwise; the same ``seed`` gives the same."""
    from engines.detect.blazeface import full_range
    from engines.identity.photo import open_photo
    from engines.landmarks.facemesh import FaceMesh
    from engines.landmarks.find import find_faces

    detector, mesh = full_range(), FaceMesh()
    folder = Path(str(files("assets") / "portraits"))
    photos = [open_photo(path) for path in sorted(folder.iterdir()) if path.suffix in (".png", ".jpg")]
    faces = [(photo, find_faces(photo, detector, mesh)[0].points) for photo in photos]
    rng = np.random.default_rng(seed)
    return [_scene(*faces[k % len(faces)], rng) for k in range(count)]


def views_of(crops: np.ndarray) -> list[View]:
    """Of a person's own crops, uint8 [N, S, S, 3] RGB, those in which FaceMesh sees a face.

    Raises ``ModelError`` where these are fewer than the comparison needs.
    """
    from engines.landmarks.facemesh import FaceMesh, roi_from_points
    from engines.landmarks.find import SCORE_MIN

    mesh = FaceMesh()
    views: list[View] = []
    for crop in crops:
        image = np.ascontiguousarray(crop[..., ::-1])
        first = mesh.locate(image, Roi(image.shape[1] / 2, image.shape[0] / 2, float(image.shape[0]), 0.0))
        second = mesh.locate(image, roi_from_points(first.points))
        if second.score > SCORE_MIN:
            views.append(View(image, second.points))
    if len(views) < CROPS_MIN:
        raise ModelError(f"a face was seen in {len(views)} of {counted(len(crops), 'crop')}, and {CROPS_MIN} are needed; record them again")
    return views


def scenes_of(crops: np.ndarray) -> list[View]:
    """The same for what looks at whole pictures and needs no points: all of them, at a picture's size."""
    flat = np.zeros((468, 3), np.float32)
    return [View(cv2.resize(np.ascontiguousarray(crop[..., ::-1]), (SIDE, SIDE)), flat) for crop in crops]


def _scene(image: np.ndarray, points: np.ndarray, rng: np.random.Generator) -> View:
    from engines.landmarks.crop import crop_rgb, roi_matrix, to_picture
    from engines.landmarks.facemesh import roi_from_points

    face = roi_from_points(points)
    roi = moved(Roi(face.x, face.y, face.size * MARGINS[Framing.SCENE] / MARGINS[Framing.FACE], face.angle), face.size, rng)
    picture = lit_and_noisy(crop_rgb(image, roi, SIDE), rng)
    return View(np.ascontiguousarray(picture[..., ::-1]), to_picture(points, inverse(roi_matrix(roi, SIDE))))

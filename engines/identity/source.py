"""From the photos a person gives to the faces a swapper prepares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from engines.detect.contract import Detector
from engines.errors import NoFaceError
from engines.face import Landmarks
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.swap.contract import SourceFace

TURNS = (None, cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_90_COUNTERCLOCKWISE, cv2.ROTATE_180)
"""A photo in which no face stands upright may lie on its side."""

TILES = 2
"""A photo in which no face is found whole is looked at in this many tiles a side, for small faces."""


def load_source(paths: Sequence[Path], face: int | None, detector: Detector, mesh: FaceMesh) -> list[SourceFace]:
    """One face of every photo: the largest, or number ``face`` counted from 1 by size.

    Raises ``PhotoError`` for a photo that cannot be opened, ``NoFaceError`` for one without that face.
    """
    return [_load(path, face, detector, mesh) for path in paths]


def _load(path: Path, face: int | None, detector: Detector, mesh: FaceMesh) -> SourceFace:
    image, faces = _look(open_photo(path), detector, mesh)
    if not faces:
        raise NoFaceError(f"no face was found in {path}; give a photo in which the face is seen from the front, large and well lit")
    if face is not None and face > len(faces):
        raise NoFaceError(f"face {face} of {path} was asked for, and it shows {len(faces)}; give --source-face 1 to {len(faces)}")
    return SourceFace(image, faces[(face or 1) - 1], path.name)


def _look(photo: np.ndarray, detector: Detector, mesh: FaceMesh) -> tuple[np.ndarray, list[Landmarks]]:
    """The photo, turned upright where needed, and its faces."""
    for turn in TURNS:
        image = photo if turn is None else cv2.rotate(photo, turn)
        faces = find_faces(image, detector, mesh)
        if faces:
            return image, faces
    return photo, _look_in_tiles(photo, detector, mesh)


def _look_in_tiles(photo: np.ndarray, detector: Detector, mesh: FaceMesh) -> list[Landmarks]:
    """Tiles overlap by half, so that a face at a border is whole in one of them; the first tile that shows faces decides."""
    height, width = (size // TILES for size in photo.shape[:2])
    for top in range(0, photo.shape[0] - height + 1, max(1, height // 2)):
        for left in range(0, photo.shape[1] - width + 1, max(1, width // 2)):
            faces = find_faces(np.ascontiguousarray(photo[top : top + height, left : left + width]), detector, mesh)
            if faces:
                shift = np.array([left, top, 0], np.float32)
                return [Landmarks(found.points + shift, found.score) for found in faces]
    return []

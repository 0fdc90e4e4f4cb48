"""From the photos a person gives to the faces a swapper prepares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from engines.detect.contract import Detector
from engines.errors import NoFaceError
from engines.face import Landmarks, SourceFace
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.wording import counted

TURNS = (cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_90_COUNTERCLOCKWISE, cv2.ROTATE_180)
"""A photo in which no face stands upright may lie on its side."""

TILES = 2
"""A photo with fewer faces than asked for is looked at in this many tiles a side, for small faces."""


def load_source(paths: Sequence[Path], face: int | None, detector: Detector, mesh: FaceMesh) -> list[SourceFace]:
    """One face of every photo: the largest, or number ``face`` counted from 1 by size.

    Raises ``PhotoError`` for a photo that cannot be opened, ``NoFaceError`` for one without that face.
    """
    return [_load(path, face, detector, mesh) for path in paths]


def _load(path: Path, face: int | None, detector: Detector, mesh: FaceMesh) -> SourceFace:
    number = 1 if face is None else face
    image, faces = source_faces(open_photo(path), number, detector, mesh)
    if not faces:
        raise NoFaceError(f"no face was found in {path}; give a photo of a face from the front, large and well lit")
    if not 1 <= number <= len(faces):
        taken = "1" if len(faces) == 1 else f"1 to {len(faces)}"
        raise NoFaceError(f"{path} shows {counted(len(faces), 'face')}; face {number} was asked for: give --source-face {taken}")
    return SourceFace(image, faces[number - 1], path.name)


def source_faces(photo: np.ndarray, wanted: int, detector: Detector, mesh: FaceMesh) -> tuple[np.ndarray, list[Landmarks]]:
    """``photo`` (uint8 [H, W, 3] BGR), turned upright where needed, and its faces, the largest first.

    Fewer than ``wanted`` have it looked at once more, for small ones.
    """
    image, faces = photo, find_faces(photo, detector, mesh)
    for turn in TURNS:
        if faces:
            break
        image = cv2.rotate(photo, turn)
        faces = find_faces(image, detector, mesh)
    if not faces:
        image = photo
    if len(faces) < wanted:
        faces = find_faces(image, detector, mesh, TILES)
    return image, faces

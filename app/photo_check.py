"""Looks at a source photo before it is worn: where its faces are, and what would make a poor swap of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import cv2
import numpy as np

from engines.detect import detectors
from engines.identity.photo import open_photo
from engines.identity.source import source_faces
from engines.landmarks.facemesh import FaceMesh

SMALL_PX = 300
"""A face whose longer side has fewer pixels gives a soft texture: the swapper's flat map is finer than that."""

DARK_LEVEL = 60
"""Mean grey level of the face under which a photo counts as too dark."""

TURNED_RATIO = 1.9
"""From the nose's tip one cheek is so many times as far as the other: about 25 degrees of yaw."""

NOSE_TIP, CHEEK_LEFT, CHEEK_RIGHT = 1, 234, 454
"""FaceMesh's vertices."""


class Hint(StrEnum):
    """What to mend. The value is the sentence to show."""

    NO_FACE = "No face was found. Choose a photo of one face, from the front and well lit."
    SMALL = "The face is small; a closer photo looks sharper."
    DARK = "The face is dark; a brighter photo looks better."
    TURNED = "The face is turned away; a photo from the front fits better."
    SEVERAL = "There are several faces; the largest is worn."


@dataclass(frozen=True, slots=True)
class PhotoReport:
    """What was found in a photo."""

    path: Path
    image: np.ndarray
    """uint8 [H, W, 3] BGR, turned as a swapper will see it: its face upright."""
    faces: tuple[np.ndarray, ...]
    """float32 [468, 3] each, pixels of ``image``; the largest first."""
    hints: tuple[Hint, ...]


class PhotoCheck:
    """Loads the embedded detector once. One thread at a time; a photo takes tenths of a second."""

    def __init__(self) -> None:
        self._detector = detectors["blazeface-full"]()
        self._mesh = FaceMesh()

    def look_at(self, path: Path) -> PhotoReport:
        """Raises ``PhotoError`` for what cannot be opened; a photo without a face is a report with that hint."""
        image, found = source_faces(open_photo(path), 1, self._detector, self._mesh)
        faces = tuple(face.points for face in found)
        return PhotoReport(path, image, faces, tuple(hints(image, faces)))


def hints(image: np.ndarray, faces: tuple[np.ndarray, ...]) -> list[Hint]:
    """``image``: uint8 [H, W, 3] BGR; ``faces``: float32 [468, 3] each, the largest first."""
    if not faces:
        return [Hint.NO_FACE]
    points = faces[0]
    found = []
    if np.ptp(points[:, :2], 0).max() < SMALL_PX:
        found.append(Hint.SMALL)
    if _level(image, points) < DARK_LEVEL:
        found.append(Hint.DARK)
    if _turn(points) > TURNED_RATIO:
        found.append(Hint.TURNED)
    if len(faces) > 1:
        found.append(Hint.SEVERAL)
    return found


def _level(image: np.ndarray, points: np.ndarray) -> float:
    inside = np.zeros(image.shape[:2], np.uint8)
    cv2.fillConvexPoly(inside, cv2.convexHull(points[:, :2].astype(np.int32)), 255)
    return cv2.mean(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), inside)[0]


def _turn(points: np.ndarray) -> float:
    """1 from the front; how many times further one cheek is from the nose than the other, along the face's own width."""
    across = points[CHEEK_RIGHT, :2] - points[CHEEK_LEFT, :2]
    length = float(np.hypot(*across)) or 1.0
    share = float(np.dot(points[NOSE_TIP, :2] - points[CHEEK_LEFT, :2], across)) / length**2
    near, far = sorted((max(share, 0.01), max(1 - share, 0.01)))
    return far / near

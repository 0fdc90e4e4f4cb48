"""Detector and FaceMesh together: every face of a picture, with its points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engines.detect.contract import Detector
from engines.face import Detection, Landmarks
from engines.landmarks.facemesh import FaceMesh, roi_from_detection, roi_from_points

SCORE_MIN = 0.5
"""FaceMesh's own word on whether it sees a face. It refused every false hit on 56 pictures without one."""

APART_MIN = 0.5
"""Faces whose centres are nearer to each other than this share of their size are one face, found twice."""


def locate_detection(image: np.ndarray, detection: Detection, mesh: FaceMesh) -> Landmarks | None:
    """The points of a detected face, or None where FaceMesh sees none.

    Two passes: a detector's box is rough; the points of the first pass give the region that the model is trained on.
    """
    first = mesh.locate(image, roi_from_detection(detection))
    second = mesh.locate(image, roi_from_points(first.points))
    return second if second.score > SCORE_MIN else None


PHOTO_SCORE_MIN = 0.5
"""A detector's probability from which a face of a photo counts: one below is a poor source, while in video it is worth a look."""


def find_faces(image: np.ndarray, detector: Detector, mesh: FaceMesh, tiles: int = 1) -> list[Landmarks]:
    """All faces of ``image`` (uint8 [H, W, 3] BGR), the largest first; one that FaceMesh is less sure of counts as smaller.

    ``tiles``: with 2 or more the detector also looks at overlapping parts, so many a side, for small faces.
    """
    found: list[Landmarks] = []
    for left, top, part in _parts(image, tiles):
        for detection in detector.detect(part):
            if detection.score < PHOTO_SCORE_MIN:
                break
            face = locate_detection(image, _moved(detection, left, top), mesh)
            if face is not None and not any(_is_same(face, other) for other in found):
                found.append(face)
    return sorted(found, key=lambda face: face.score * face_area(face), reverse=True)


def face_area(face: Landmarks) -> float:
    """Square pixels of the points' upright box."""
    width, height = np.ptp(face.points[:, :2], 0)
    return float(width * height)


def _parts(image: np.ndarray, tiles: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """The whole, then tiles that overlap by half, so that a face at a border is whole in one of them."""
    yield 0, 0, image
    if tiles < 2 or min(image.shape[:2]) < 2 * tiles:
        return
    height, width = image.shape[0] // tiles, image.shape[1] // tiles
    for top in range(0, image.shape[0] - height + 1, height // 2):
        for left in range(0, image.shape[1] - width + 1, width // 2):
            yield left, top, image[top : top + height, left : left + width]


def _moved(detection: Detection, left: int, top: int) -> Detection:
    shift = np.array([left, top], np.float32)
    return replace(detection, box=detection.box + np.tile(shift, 2), keypoints=detection.keypoints + shift)


def _is_same(a: Landmarks, b: Landmarks) -> bool:
    apart = float(np.linalg.norm(a.points[:, :2].mean(0) - b.points[:, :2].mean(0)))
    return apart < APART_MIN * min(face_area(a), face_area(b)) ** 0.5

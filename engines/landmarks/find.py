"""Detector and FaceMesh together: every face of a picture, with its points."""

from __future__ import annotations

import numpy as np

from engines.detect.contract import Detector
from engines.face import Detection, Landmarks
from engines.landmarks.facemesh import FaceMesh, roi_from_detection, roi_from_points

SCORE_MIN = 0.5
"""FaceMesh's own word on whether it looks at a face. It refuses every false hit of the detector on 56 pictures without a face."""


def locate_detection(image: np.ndarray, detection: Detection, mesh: FaceMesh) -> Landmarks | None:
    """The points of a detected face, or None where FaceMesh sees none.

    Two passes: a detector's box is rough, and the points of the first pass give the region that the model was trained on.
    """
    first = mesh.locate(image, roi_from_detection(detection))
    second = mesh.locate(image, roi_from_points(first.points))
    return second if second.score > SCORE_MIN else None


def find_faces(image: np.ndarray, detector: Detector, mesh: FaceMesh) -> list[Landmarks]:
    """All faces of ``image`` (uint8 [H, W, 3] BGR), the largest first."""
    found = [locate_detection(image, detection, mesh) for detection in detector.detect(image)]
    return sorted((face for face in found if face is not None), key=face_area, reverse=True)


def face_area(face: Landmarks) -> float:
    """Square pixels of the points' upright box."""
    width, height = np.ptp(face.points[:, :2], 0)
    return float(width * height)

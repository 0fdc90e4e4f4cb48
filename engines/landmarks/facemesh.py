"""FaceMesh (Kartynnik et al. 2019): 468 points of a face in three dimensions. Model of MediaPipe 0.10.21."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engines.face import Detection, Landmarks, Roi
from engines.landmarks.crop import crop_rgb, roi_matrix, to_picture
from engines.session import Session, open_session
from engines.store import embedded_model

MODEL = "face_landmark"

SIDE = 192
"""Pixels of the square that the model looks at."""

MARGIN = 1.5
"""Side of the region of interest over the longer side of the face's own box: MediaPipe's face landmark graph."""

LEFT_EYE_CORNER, RIGHT_EYE_CORNER = 33, 263
"""Outer corners of the eyes, as the viewer sees them."""


class FaceMesh:
    """Not thread-safe: one thread at a time."""

    def __init__(self) -> None:
        """Raises ``ModelError`` when the embedded model is missing or damaged."""
        self._session = open_session(embedded_model(MODEL))

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {MODEL: self._session}

    def locate(self, image: np.ndarray, roi: Roi) -> Landmarks:
        """The points of the face in ``roi`` of ``image`` (uint8 [H, W, 3] BGR); a low score where there is none."""
        return self.locate_all(image, [roi])[0]

    def locate_all(self, image: np.ndarray, rois: Sequence[Roi]) -> list[Landmarks]:
        """The same for each of ``rois``, in one run: on the processor that saves the calls alone, 0.1 ms each."""
        if not rois:
            return []
        result = self._session.run({"image": np.stack([crop_rgb(image, roi, SIDE) for roi in rois])})
        return [
            Landmarks(to_picture(points, roi_matrix(roi, SIDE)), _probability(float(logit[0])))
            for roi, points, logit in zip(rois, result["points"], result["logit"], strict=True)
        ]


def roi_from_detection(detection: Detection) -> Roi:
    """The region that FaceMesh wants to see, from a detector's box, turned by the line of the eyes."""
    left, top, right, bottom = map(float, detection.box)
    side = MARGIN * max(right - left, bottom - top)
    return Roi((left + right) / 2, (top + bottom) / 2, side, line_angle(*detection.keypoints[:2]))


def roi_from_points(points: np.ndarray) -> Roi:
    """The same from the points of the frame before: float32 [468, 2 or 3] pixels."""
    angle = line_angle(points[LEFT_EYE_CORNER], points[RIGHT_EYE_CORNER])
    cos, sin = math.cos(angle), math.sin(angle)
    upright = points[:, :2] @ np.array([[cos, -sin], [sin, cos]], np.float32)
    low, high = upright.min(0), upright.max(0)
    x, y = map(float, (low + high) / 2)
    return Roi(cos * x - sin * y, sin * x + cos * y, MARGIN * float((high - low).max()), angle)


def line_angle(left: np.ndarray, right: np.ndarray) -> float:
    """Radians by which the line from ``left`` to ``right`` is turned clockwise, as seen."""
    return math.atan2(float(right[1] - left[1]), float(right[0] - left[0]))


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-80.0, min(80.0, logit))))

"""FaceMesh (Kartynnik et al. 2019): 468 points of a face in three dimensions. Model of MediaPipe 0.10.21."""

from __future__ import annotations

import math

import cv2
import numpy as np

from engines.face import Detection, Landmarks, Roi
from engines.session import open_session
from engines.store import embedded_model

SIDE = 192
"""Pixels of the square that the model looks at."""

MARGIN = 1.5
"""Side of the region of interest over the longer side of the face's own box: MediaPipe's face landmark graph."""

LEFT_EYE_CORNER, RIGHT_EYE_CORNER = 33, 263
"""Outer corners of the eyes, as the viewer sees them."""


class FaceMesh:
    """Not thread-safe: one thread at a time."""

    def __init__(self) -> None:
        self._session = open_session(embedded_model("face_landmark"))
        self._crop = np.empty((SIDE, SIDE, 3), np.uint8)

    def locate(self, image: np.ndarray, roi: Roi) -> Landmarks:
        """The points of the face that fills ``roi`` of ``image`` (uint8 [H, W, 3] BGR); a low score where there is none."""
        matrix = roi_matrix(roi, SIDE)
        cv2.warpAffine(
            image, matrix, (SIDE, SIDE), dst=self._crop, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE
        )
        cv2.cvtColor(self._crop, cv2.COLOR_BGR2RGB, dst=self._crop)
        result = self._session.run({"image": self._crop[None]})
        points = result["points"][0]
        place = np.empty_like(points)
        place[:, :2] = points[:, :2] @ matrix[:, :2].T + matrix[:, 2]
        place[:, 2] = points[:, 2] * (roi.size / SIDE)
        return Landmarks(place, 1 / (1 + math.exp(-max(-80.0, min(80.0, float(result["logit"][0, 0]))))))


def roi_matrix(roi: Roi, side: int) -> np.ndarray:
    """float32 [2, 3]: pixels of a ``side`` × ``side`` crop → pixels of the picture."""
    scale = roi.size / side
    cos, sin = math.cos(roi.angle) * scale, math.sin(roi.angle) * scale
    half = side / 2
    return np.array(
        [[cos, -sin, roi.x - (cos - sin) * half], [sin, cos, roi.y - (sin + cos) * half]],
        np.float32,
    )


def roi_from_detection(detection: Detection) -> Roi:
    """The region that FaceMesh wants to see, from a detector's box, turned by the line of the eyes."""
    left, top, right, bottom = map(float, detection.box)
    return Roi((left + right) / 2, (top + bottom) / 2, MARGIN * max(right - left, bottom - top), _angle(*detection.keypoints[:2]))


def roi_from_points(points: np.ndarray) -> Roi:
    """The same from the points of the frame before: float32 [468, 2 or 3] pixels."""
    angle = _angle(points[LEFT_EYE_CORNER], points[RIGHT_EYE_CORNER])
    cos, sin = math.cos(angle), math.sin(angle)
    upright = points[:, :2] @ np.array([[cos, -sin], [sin, cos]], np.float32)
    low, high = upright.min(0), upright.max(0)
    x, y = map(float, (low + high) / 2)
    return Roi(cos * x - sin * y, sin * x + cos * y, MARGIN * float((high - low).max()), angle)


def _angle(left_eye: np.ndarray, right_eye: np.ndarray) -> float:
    return math.atan2(float(right_eye[1] - left_eye[1]), float(right_eye[0] - left_eye[0]))

"""The 21 points of a hand. 224 pixels, 2 ms on one thread of a fast processor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engines.face import Roi
from engines.hands.palm import upright_angle
from engines.landmarks.crop import crop_rgb, roi_matrix, to_picture
from engines.session import Session, open_session
from engines.store import embedded_model

MODEL = "hand_landmark_lite"

SIDE = 224

WRIST, INDEX_KNUCKLE, MIDDLE_KNUCKLE, RING_KNUCKLE, LITTLE_KNUCKLE = 0, 5, 9, 13, 17
FINGERS = ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16), (17, 18, 19, 20))
"""Thumb to little finger, root to tip."""

STEADY = (0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18)
"""Points that move little when fingers bend: the region of the next frame is laid around these."""

ENLARGE, SHIFT = 2.0, -0.1
"""MediaPipe's hand landmarks to region graph."""


@dataclass(frozen=True, slots=True)
class Hand:
    """One hand."""

    points: np.ndarray
    """float32 [21, 2] pixels."""
    score: float
    """Probability in [0, 1] that the region held a hand."""


class HandLandmarks:
    """Not thread-safe: one thread at a time."""

    def __init__(self) -> None:
        """Raises ``ModelError`` when the embedded model is missing or damaged."""
        self._session = open_session(embedded_model(MODEL))

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {MODEL: self._session}

    def locate(self, image: np.ndarray, rois: Sequence[Roi]) -> list[Hand]:
        """The hand in each of ``rois`` of ``image`` (uint8 [H, W, 3] BGR), in one run; a low score where there is none."""
        if not rois:
            return []
        result = self._session.run({"image": np.stack([crop_rgb(image, roi, SIDE) for roi in rois])})
        return [
            Hand(to_picture(points[:, :2], roi_matrix(roi, SIDE)), float(presence[0]))
            for roi, points, presence in zip(rois, result["points"], result["presence"], strict=True)
        ]


def roi_from_hand(hand: Hand) -> Roi:
    """Where to look for the hand in the next frame."""
    points = hand.points
    knuckles = (points[INDEX_KNUCKLE] + points[RING_KNUCKLE]) / 4 + points[MIDDLE_KNUCKLE] / 2
    angle = upright_angle(points[WRIST], knuckles)
    cos, sin = math.cos(angle), math.sin(angle)
    turn = np.array([[cos, -sin], [sin, cos]])
    upright = points[list(STEADY)] @ turn
    low, high = upright.min(0), upright.max(0)
    size = float((high - low).max())
    middle = (low + high) / 2 + [0, SHIFT * size]
    x, y = map(float, middle @ turn.T)
    return Roi(x, y, ENLARGE * size, angle)

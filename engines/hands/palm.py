"""The palm detector: where hands are, roughly. 192 pixels, 3.5 ms on one thread of a fast processor: not for every frame."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from engines.detect.blazeface import anchor_centres, letterbox
from engines.face import Roi
from engines.session import Session, open_session
from engines.store import embedded_model

MODEL = "palm_detection_lite"

SIDE = 192
LAYERS = ((8, 2), (16, 6))
"""(stride, anchors a cell): MediaPipe's palm detection graph has strides 8, 16, 16, 16 of two anchors a cell."""

SCORE_MIN, OVERLAP_MAX = 0.5, 0.3
"""Its score threshold and its non-maximum suppression's."""

WRIST, MIDDLE_KNUCKLE = 0, 2
"""Of the seven key points of a palm."""

ENLARGE, SHIFT = 2.6, -0.5
"""The hand's square over the palm's box, and how far along the hand it is moved: MediaPipe's palm detection to region graph."""


@dataclass(frozen=True, slots=True)
class Palm:
    """A palm as the detector sees it."""

    roi: Roi
    """The square in which to look for the whole hand, fingers up."""
    score: float


class PalmDetector:
    """Not thread-safe: one thread at a time."""

    def __init__(self) -> None:
        """Raises ``ModelError`` when the embedded model is missing or damaged."""
        self._session = open_session(embedded_model(MODEL))
        self._anchors = anchor_centres(SIDE, SIDE, LAYERS)

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {MODEL: self._session}

    def detect(self, image: np.ndarray) -> list[Palm]:
        """``image``: uint8 [H, W, 3] BGR. Palms by falling score."""
        box = letterbox(image, SIDE, SIDE)
        result = self._session.run({"image": box.pixels[None]})
        raw, logits = result["boxes"][0], result["logits"][0]
        chosen = np.flatnonzero(logits > math.log(SCORE_MIN / (1 - SCORE_MIN)))
        if not len(chosen):
            return []
        scores = 1 / (1 + np.exp(-logits[chosen].astype(np.float64)))
        anchors = self._anchors[chosen]
        centres, sizes = raw[chosen, :2] + anchors, raw[chosen, 2:4]
        corners = np.concatenate([centres - sizes / 2, sizes], 1)
        kept = np.asarray(cv2.dnn.NMSBoxes(corners.tolist(), scores.tolist(), SCORE_MIN, OVERLAP_MAX)).ravel()
        keypoints = raw[chosen, 4:].reshape(-1, 7, 2) + anchors[:, None]
        return [
            Palm(
                hand_roi(
                    box.to_picture(centres[k]), float(sizes[k].max()) / box.scale, box.to_picture(keypoints[k][[WRIST, MIDDLE_KNUCKLE]])
                ),
                float(scores[k]),
            )
            for k in kept
        ]


def hand_roi(centre: np.ndarray, size: float, line: np.ndarray) -> Roi:
    """The hand's square. ``line`` [2, 2]: from the wrist to the knuckle of the middle finger, pixels, which is to point up in it."""
    angle = upright_angle(line[0], line[1])
    up = np.array([math.sin(angle), -math.cos(angle)])
    x, y = map(float, centre - up * SHIFT * size)
    return Roi(x, y, ENLARGE * size, angle)


def upright_angle(wrist: np.ndarray, knuckle: np.ndarray) -> float:
    """Radians by which the hand is turned clockwise from fingers up, as seen."""
    right, down = map(float, knuckle - wrist)
    return math.atan2(right, -down)

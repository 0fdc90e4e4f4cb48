"""BlazeFace (Bazarevsky et al. 2019), the two models of MediaPipe 0.10.21: full range (sparse) and short range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from engines.detect import detectors
from engines.detect.canvas import reduced
from engines.face import Detection
from engines.session import Session, open_session
from engines.store import embedded_model

SCORE_MIN = 0.3
"""Probability from which a box counts. Low on purpose: faces in a dark, noisy picture get 0.3 to 0.6, and one that is not looked at
is shown unswapped. What else this lets in is refused by FaceMesh (``engines.landmarks.find``), all but some drawn faces."""

OVERLAP_MAX = 0.3
"""Two boxes with a higher intersection over union are one face."""


@dataclass(frozen=True, slots=True)
class Letterbox:
    """A picture scaled into a square, centred, with black bars."""

    square: np.ndarray
    """uint8 [S, S, 3] RGB."""
    scale: float
    """Square pixels per picture pixel."""
    left: int
    """Width of the bar on the left, square pixels."""
    top: int

    def to_picture(self, points: np.ndarray) -> np.ndarray:
        """Square coordinates [..., 2] in pixels → picture coordinates."""
        return (points - np.array([self.left, self.top], np.float32)) / np.float32(self.scale)


def letterbox(image: np.ndarray, side: int) -> Letterbox:
    """``image``: uint8 [H, W, 3] BGR."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    small_height, small_width = max(1, round(height * scale)), max(1, round(width * scale))
    small = reduced(image, small_width, small_height)
    square = np.zeros((side, side, 3), np.uint8)
    top, left = (side - small_height) // 2, (side - small_width) // 2
    cv2.cvtColor(small, cv2.COLOR_BGR2RGB, dst=square[top : top + small_height, left : left + small_width])
    return Letterbox(square, scale, left, top)


def anchor_centres(side: int, layers: Sequence[tuple[int, int]]) -> np.ndarray:
    """float32 [N, 2] in pixels of the square: the centre of every anchor, in the model's order.

    ``layers``: (stride, anchors a cell). From MediaPipe's SSD anchor calculator with fixed anchor size, offset 0.5.
    """
    centres = []
    for stride, per_cell in layers:
        line = (np.arange(side // stride, dtype=np.float32) + 0.5) * stride
        grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        centres.append(np.repeat(grid, per_cell, 0))
    return np.concatenate(centres)


class BlazeFace:
    """Six keypoints a face: viewer's left eye, right eye, nose tip, mouth, left ear, right ear."""

    def __init__(self, model: str, side: int, layers: Sequence[tuple[int, int]]) -> None:
        self._model = model
        self._session = open_session(embedded_model(model))
        self._side = side
        self._anchors = anchor_centres(side, layers)

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {self._model: self._session}

    def detect(self, image: np.ndarray) -> list[Detection]:
        box = letterbox(image, self._side)
        result = self._session.run({"image": box.square[None]})
        return self._decode(box, result["boxes"][0], result["logits"][0])

    def _decode(self, box: Letterbox, raw: np.ndarray, logits: np.ndarray) -> list[Detection]:
        """``raw``: [anchors, 16] centre, size and six keypoints, in pixels of the square from the anchor's centre."""
        floor = np.log(SCORE_MIN / (1 - SCORE_MIN))
        chosen = np.flatnonzero(logits > floor)
        if not len(chosen):
            return []
        scores = 1 / (1 + np.exp(-logits[chosen].astype(np.float64)))
        anchors = self._anchors[chosen]
        centres, sizes = raw[chosen, :2] + anchors, raw[chosen, 2:4]
        keypoints = raw[chosen, 4:].reshape(-1, 6, 2) + anchors[:, None]
        corners = np.concatenate([centres - sizes / 2, sizes], 1)
        kept = cv2.dnn.NMSBoxes(corners.tolist(), scores.tolist(), SCORE_MIN, OVERLAP_MAX)
        return [
            Detection(
                box.to_picture(np.stack([corners[k, :2], corners[k, :2] + sizes[k]])).reshape(4).astype(np.float32),
                box.to_picture(keypoints[k]).astype(np.float32),
                float(scores[k]),
            )
            for k in np.asarray(kept).ravel()
        ]


@detectors.register("blazeface-full")
def full_range() -> BlazeFace:
    """For a whole scene: of twelve people in 1280x720 it finds all at a face of 100 pixels, eight at 50; 1.6 ms."""
    return BlazeFace("face_detection_full_range_sparse", 192, [(4, 1)])


@detectors.register("blazeface-short")
def short_range() -> BlazeFace:
    """For a face before a webcam, from about 200 pixels of height in 1280x720; 0.65 ms."""
    return BlazeFace("face_detection_short_range", 128, [(8, 2), (16, 6)])

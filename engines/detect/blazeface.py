"""BlazeFace (Bazarevsky et al. 2019), the two models of MediaPipe 0.10.21: full range (sparse) and short range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from engines.detect import detectors
from engines.detect.canvas import MULTIPLE, reduced
from engines.face import Detection
from engines.session import Session, open_session
from engines.store import embedded_model

SCORE_MIN = 0.3
"""Probability from which a box counts. Low on purpose: faces in a dark, noisy picture get 0.3 to 0.6, and one that is not looked at
is shown unswapped. What else this lets in is refused by FaceMesh (``engines.landmarks.find``), all but some drawn faces."""

OVERLAP_MAX = 0.3
"""Two boxes with a higher intersection over union are one face."""

USUAL_PICTURE = (720, 1280)
"""Height and width of what is expected before the first picture."""


@dataclass(frozen=True, slots=True)
class Letterbox:
    """A picture scaled onto a canvas, centred, with black bars."""

    pixels: np.ndarray
    """uint8 [h, w, 3] RGB."""
    scale: float
    """Canvas pixels per picture pixel."""
    left: int
    """Width of the bar on the left, canvas pixels."""
    top: int

    def to_picture(self, points: np.ndarray) -> np.ndarray:
        """Canvas coordinates [..., 2] in pixels → picture coordinates."""
        return (points - np.array([self.left, self.top], np.float32)) / np.float32(self.scale)


def letterbox(image: np.ndarray, height: int, width: int) -> Letterbox:
    """``image``: uint8 [H, W, 3] BGR. ``height``, ``width``: of the canvas, pixels."""
    scale = min(height / image.shape[0], width / image.shape[1])
    rows, columns = (max(1, round(length * scale)) for length in image.shape[:2])
    small = reduced(image, columns, rows)
    pixels = np.zeros((height, width, 3), np.uint8)
    top, left = (height - rows) // 2, (width - columns) // 2
    cv2.cvtColor(small, cv2.COLOR_BGR2RGB, dst=pixels[top : top + rows, left : left + columns])
    return Letterbox(pixels, scale, left, top)


def close_canvas(height: int, width: int, side: int) -> tuple[int, int]:
    """Height and width of the canvas for a picture of ``height`` × ``width`` whose longer side becomes ``side`` pixels: no more rows and
    columns than hold it, in whole strides.

    For a picture of 16:9 it is 128 × 192, which takes two thirds of the time of a square with black bars. Without the bars, of 34 faces
    laid into 1280x720 at three places each, it finds 101 (102 with them) at a height of 100 pixels, 95 (98) at 70 and 71 (85) at 50; in a
    title without a face the tracker shows one in 1 of 95 frames (12). A finer canvas of 128 × 224 finds 97 and 82, but in that title a face
    in 74 frames.
    """
    scale = side / max(height, width)
    rows, columns = (-(-max(1, round(length * scale)) // MULTIPLE) * MULTIPLE for length in (height, width))
    return rows, columns


def anchor_centres(height: int, width: int, layers: Sequence[tuple[int, int]]) -> np.ndarray:
    """float32 [N, 2] in pixels of a canvas of ``height`` × ``width``: the centre of every anchor, in the model's order.

    ``layers``: (stride, anchors a cell). From MediaPipe's SSD anchor calculator with fixed anchor size, offset 0.5.
    """
    centres = []
    for stride, per_cell in layers:
        across, down = ((np.arange(length // stride, dtype=np.float32) + 0.5) * stride for length in (width, height))
        grid = np.stack(np.meshgrid(across, down), -1).reshape(-1, 2)
        centres.append(np.repeat(grid, per_cell, 0))
    return np.concatenate(centres)


class BlazeFace:
    """Six keypoints a face: viewer's left eye, right eye, nose tip, mouth, left ear, right ear."""

    def __init__(self, model: str, side: int, layers: Sequence[tuple[int, int]], *, has_free_size: bool = False) -> None:
        """``side``: of the square that the network was trained on, pixels. ``has_free_size``: whether its file leaves the size open; the
        network is then given no bars, and opened for the one size that the pictures have."""
        self._model, self._path = model, embedded_model(model)
        self._side, self._layers, self._has_free_size = side, layers, has_free_size
        self._open_for(self._canvas(*USUAL_PICTURE))

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {self._model: self._session}

    def detect(self, image: np.ndarray) -> list[Detection]:
        height, width = image.shape[:2]
        canvas = self._canvas(height, width)
        if canvas != self._opened_for:
            self._session.close()
            self._open_for(canvas)
        box = letterbox(image, *canvas)
        result = self._session.run({"image": box.pixels[None]})
        return self._decode(box, result["boxes"][0], result["logits"][0])

    def _canvas(self, height: int, width: int) -> tuple[int, int]:
        return close_canvas(height, width, self._side) if self._has_free_size else (self._side, self._side)

    def _open_for(self, canvas: tuple[int, int]) -> None:
        """For one size the network is a twelfth faster than for any, and is opened for another in 12 ms."""
        sizes = dict(zip(("N", "height", "width"), (1, *canvas), strict=True)) if self._has_free_size else {}
        self._session = open_session(self._path, sizes=sizes)
        self._opened_for, self._anchors = canvas, anchor_centres(*canvas, self._layers)

    def _decode(self, box: Letterbox, raw: np.ndarray, logits: np.ndarray) -> list[Detection]:
        """``raw``: [anchors, 16] centre, size and six keypoints, in pixels of the canvas from the anchor's centre."""
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
    """For a whole scene; some 1.4 ms for a picture of 16:9."""
    return BlazeFace("face_detection_full_range_sparse", 192, [(4, 1)], has_free_size=True)


@detectors.register("blazeface-short")
def short_range() -> BlazeFace:
    """For a face before a webcam, from about 200 pixels of height in 1280x720; 0.65 ms."""
    return BlazeFace("face_detection_short_range", 128, [(8, 2), (16, 6)])

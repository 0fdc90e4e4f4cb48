"""What the stand-ins of detectors see: two kinds of marker, each of a colour of its own, at most one of each in a picture."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from standins.sketch import Sketch

STRONG, WEAK = (200, 40, 90), (40, 190, 120)
"""RGB levels of the marker that scores 0.9 and of the one that scores 0.7. Read as BGR neither is there."""

SCORES = (0.9, 0.7)

GROUND = 60

KEYPOINTS = np.array([[0.3, 0.4], [0.7, 0.42], [0.5, 0.6], [0.35, 0.8], [0.66, 0.81]])
"""Of a marker's box: across and down."""

TOLERANCE = 0.2 / 255
"""How far a colour may be off, of the span from black to white: less than lies between dividing by 127.5 and by 128."""


@dataclass(frozen=True)
class Marker:
    left: float
    top: float
    right: float
    bottom: float
    colour: tuple[int, int, int] = STRONG

    @property
    def box(self) -> np.ndarray:
        return np.array([self.left, self.top, self.right, self.bottom])

    @property
    def keypoints(self) -> np.ndarray:
        return self.box[:2] + KEYPOINTS * (self.box[2:] - self.box[:2])


def scene(height: int, width: int, *markers: Marker) -> np.ndarray:
    """uint8 [height, width, 3] BGR."""
    picture = np.full((height, width, 3), GROUND, np.uint8)
    for marker in markers:
        corners = (round(marker.left), round(marker.top)), (round(marker.right) - 1, round(marker.bottom) - 1)
        cv2.rectangle(picture, *corners, marker.colour[::-1], cv2.FILLED)
    return picture


class Seen:
    """Steps of a graph that find both markers in its input [1, 3, H, W]."""

    def __init__(self, sketch: Sketch, given: str, *, span: float, zero: float, bgr: bool = False) -> None:
        """A level v of 0…255 stands in the input as v / 255 · ``span`` + ``zero``."""
        self.sketch = sketch
        self.masks, self.boxes = [], []
        for colour in (STRONG, WEAK):
            channels = np.array(colour[::-1] if bgr else colour) / 255 * span + zero
            mask = self._mask(given, channels, TOLERANCE * span)
            self.masks.append(mask)
            self.boxes.append(self._box(mask))
        self.x, self.y = sketch.grid(self.masks[0])

    def _mask(self, given: str, channels: np.ndarray, tolerance: float) -> str:
        s = self.sketch
        away = s.op("Abs", s.sub(given, s.const(channels.reshape(1, 3, 1, 1))))
        near = s.op("Less", s.op("ReduceMax", away, axes=[1], keepdims=1), s.const(tolerance))
        return s.op("Cast", near, to=1)

    def _box(self, mask: str) -> tuple[str, str, str, str]:
        """Left, top, right, bottom: a run of w pixels has the variance (w² - 1) / 12."""
        s = self.sketch
        size = s.add(s.total(mask), 1e-6)
        low, high = [], []
        for place in s.grid(mask):
            middle = s.div(s.total(s.mul(mask, place)), size)
            away = s.sub(place, middle)
            variance = s.div(s.total(s.mul(mask, s.mul(away, away))), size)
            half = s.op("Sqrt", s.add(s.mul(variance, 3.0), 0.25))
            edge = s.add(middle, 0.5)
            low.append(s.sub(edge, half))
            high.append(s.add(edge, half))
        return low[0], low[1], high[0], high[1]

    def at_cells(self, stride: int, start: int = 0) -> dict[str, list[str]]:
        """For every cell [1, 1, h, w] of a layer: its ``place`` (x, y), its ``score``, the ``box`` and the ``points`` (x0, y0, x1 …)
        of the marker that it lies in."""
        s = self.sketch
        strong, weak = (s.every(mask, stride, start) for mask in self.masks)
        score = s.add(s.mul(strong, SCORES[0]), s.mul(weak, SCORES[1]))
        rest = s.sub(s.const(1.0), strong)
        box = [s.add(s.mul(a, strong), s.mul(b, rest)) for a, b in zip(*self.boxes, strict=True)]
        sides = s.sub(box[2], box[0]), s.sub(box[3], box[1])
        points = [s.add(box[axis], s.mul(sides[axis], float(point[axis]))) for point in KEYPOINTS for axis in (0, 1)]
        return {"place": [s.every(self.x, stride, start), s.every(self.y, stride, start)], "score": [score], "box": box, "points": points}

    def rows(self, planes: list[str], anchors: int = 1) -> str:
        """[1, 1, h, w] each → [1, h · w · anchors, n], cell by cell."""
        s = self.sketch
        last = s.op("Transpose", s.op("Concat", *planes, axis=1), perm=[0, 2, 3, 1])
        return s.shape(s.op("Concat", *[last] * anchors, axis=3), 1, -1, len(planes))

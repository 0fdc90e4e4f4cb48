"""Iris (Ablavatski et al. 2020): where the eyes look, from the points of FaceMesh. Model of MediaPipe 0.10.21."""

from __future__ import annotations

import math

import numpy as np

from engines.face import Roi
from engines.landmarks.crop import crop_rgb, roi_matrix, to_picture
from engines.landmarks.facemesh import line_angle
from engines.session import Session, open_session
from engines.store import embedded_model

MODEL = "iris_landmark"

SIDE = 64
"""Pixels of the square that the model looks at."""

MARGIN = 2.3
"""Side of that square over the distance of the eye's corners: MediaPipe's iris landmark graph."""

EYES = ((33, 133, False), (362, 263, True))
"""The person's right eye, then the left one: its corners from the viewer's left to right, and whether it is to be
mirrored for the model, which knows one side of the face only."""


class Iris:
    """Not thread-safe: one thread at a time."""

    def __init__(self) -> None:
        """Raises ``ModelError`` when the embedded model is missing or damaged."""
        self._session = open_session(embedded_model(MODEL))

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {MODEL: self._session}

    def locate(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """float32 [2, 5, 2] pixels: centre and four points of the edge of the person's right and left iris.

        ``image``: uint8 [H, W, 3] BGR. ``points``: float32 [468, 2 or 3], FaceMesh landmarks in its pixels.
        """
        views = [(eye_roi(points[left], points[right]), SIDE, mirror) for left, right, mirror in EYES]
        found = self._session.run({"image": np.stack([crop_rgb(image, *view) for view in views])})["iris"]
        return np.stack([to_picture(eye[:, :2], roi_matrix(*view)) for eye, view in zip(found, views, strict=True)])


def eye_roi(left: np.ndarray, right: np.ndarray) -> Roi:
    """The region around an eye from its two corners."""
    x, y = map(float, (left[:2] + right[:2]) / 2)
    return Roi(x, y, MARGIN * math.hypot(*(right[:2] - left[:2])), line_angle(left, right))

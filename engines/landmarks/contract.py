"""The contract of landmark models beside FaceMesh: they look at a face that is known and say where its points are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Points:
    """Landmarks of one face in a model's own numbering."""

    points: np.ndarray
    """float32 [N, 2 or 3] pixels of the picture given."""
    five: np.ndarray
    """float32 [5, 2] pixels: eye on the left of the picture, eye on the right, tip of the nose, corners of the mouth left and right."""
    score: float
    """Probability in [0, 1]; 1 where the model says none."""


class Landmarker(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def locate(self, image: np.ndarray, box: np.ndarray, five: np.ndarray) -> Points:
        """``image``: uint8 [H, W, 3] BGR. ``box``: float32 [4] left, top, right, bottom of the face; ``five`` float32 [5, 2]: where
        its five points are thought to be (both in pixels). Raises ``ModelError``."""
        ...

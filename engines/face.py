"""What the models say of a face: plain values that pass between the engines' rooms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Roi:
    """A rotated square of the picture that a model looks at."""

    x: float
    """Centre, pixels."""
    y: float
    size: float
    """Side, pixels."""
    angle: float
    """Radians, clockwise as seen (y points down): the direction from the viewer's left eye to the right one."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A face as a detector sees it."""

    box: np.ndarray
    """float32 [4]: left, top, right, bottom, pixels; may reach over the border."""
    keypoints: np.ndarray
    """float32 [K, 2] pixels; the first two are the eyes, viewer's left first."""
    score: float
    """Probability in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """FaceMesh landmarks of one face."""

    points: np.ndarray
    """float32 [468, 3]: x and y in pixels of the picture given, z in the same unit, nearer is smaller."""
    score: float
    """Probability in [0, 1] that the region held a face."""


@dataclass(frozen=True, slots=True)
class SourceFace:
    """One photo of the face to wear, with its face located."""

    image: np.ndarray
    """uint8 [H, W, 3] BGR, upright."""
    landmarks: Landmarks
    name: str
    """What a person calls this photo: its file name."""


@dataclass(slots=True)
class Patch:
    """A piece of picture to be blended over the frame. Valid until the next call of whoever made it."""

    pixels: np.ndarray
    """uint8 [h, w, 3] BGR."""
    alpha: np.ndarray
    """uint8 [h, w]: 0 keeps the frame, 255 shows the patch."""
    left: int
    """Frame column of the patch's first column; the patch lies wholly inside the frame."""
    top: int
    """Frame row of the patch's first row."""

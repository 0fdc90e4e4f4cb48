"""A face whose points are known without a model: FaceMesh's mean shape, laid anywhere; and five points of it found by hand."""

from __future__ import annotations

import numpy as np

from engines.mesh.topology import topology


def face_at(x: float, y: float, size: float, degrees: float = 0) -> np.ndarray:
    """float32 [468, 3]: ``size`` is the distance of the eyes, pixels."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    shape = topology().shape.astype(np.float64)
    return ((shape - shape.mean(0)) @ turn.T * size + [x, y, 0]).astype(np.float32)


def five_by_hand(points: np.ndarray) -> np.ndarray:
    """The eyes' rims as MediaPipe's connections list them (33 … 133 and 362 … 263), its nose tip 1, mouth corners 61 and 291."""
    left = [33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7]
    right = [263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249]
    return np.stack([points[left, :2].mean(0), points[right, :2].mean(0), *points[[1, 61, 291], :2]]).astype(np.float64)


def to_crop_by_hand(points: np.ndarray, template: np.ndarray, side: int) -> np.ndarray:
    """float64 [2, 3], picture → crop: the similarity that lstsq finds for ``template`` (shares of the side)."""
    five = five_by_hand(points)
    rows = [[x, -y, 1, 0] for x, y in five] + [[y, x, 0, 1] for x, y in five]
    cos, sin, right, down = np.linalg.lstsq(np.array(rows), np.r_[template[:, 0], template[:, 1]] * side, rcond=None)[0]
    return np.array([[cos, -sin, right], [sin, cos, down]])


def in_crop(matrix: np.ndarray, left: int, top: int, height: int, width: int) -> np.ndarray:
    """float64 [height, width, 2]: where in the crop the pixels of a piece of the picture are."""
    rows, columns = np.mgrid[top : top + height, left : left + width]
    return np.stack([columns, rows], -1) @ matrix[:, :2].T + matrix[:, 2]

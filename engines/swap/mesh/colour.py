"""Colours of vertices: what the target's light is learned from, and what the source's face looks like, vertex by vertex."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from engines.mesh.topology import topology
from engines.swap.mesh import kernels

LUMA = np.array([0.114, 0.587, 0.299], np.float32)
"""BT.601 weights of blue, green, red."""

LOG_OFFSET = 6.0
"""Added before the logarithm, in grey levels, so that noise in the dark does not become large ratios."""

INSIDE = 0.18
"""Inter-ocular distances from the oval at which neither hair nor background is seen on most people."""

ROI_WIDTH = 72
"""Pixels: the face is reduced to about this width, by averaging, before its vertices are looked at, so that each sees its surroundings."""


@dataclass(frozen=True, slots=True)
class Glance:
    """Which part of a picture is looked at to see a face's colours: averaged by whole blocks."""

    left: int
    top: int
    columns: int
    """Of blocks."""
    rows: int
    block: int
    """Pixels a side."""


def glance(points: np.ndarray, shape: tuple[int, ...]) -> Glance | None:
    """At ``points`` [N, 2+] in a picture of ``shape`` (H, W, …); None where the face is outside."""
    height, width = shape[:2]
    low = np.floor(points[:, :2].min(0)).astype(int) - 4
    high = np.ceil(points[:, :2].max(0)).astype(int) + 4
    left, top = np.maximum(low, 0)
    right, bottom = np.minimum(high, [width, height])
    if right - left < 8 or bottom - top < 8:
        return None
    block = max(1, round(int(high[0] - low[0]) / ROI_WIDTH))  # whole pixels are averaged twice as fast
    columns, rows = max(2, (right - left) // block), max(2, (bottom - top) // block)
    return Glance(int(left), int(top), int(columns), int(rows), block)


def log_colours(image: np.ndarray, points: np.ndarray) -> np.ndarray | None:
    """float32 [N, 3] BGR: log(colour + 6) of ``image`` (uint8 [H, W, 3]) at ``points`` [N, 2+]; None where the face is outside."""
    seen = glance(points, image.shape)
    if seen is None:
        return None
    region = image[seen.top : seen.top + seen.rows * seen.block, seen.left : seen.left + seen.columns * seen.block]
    small = cv2.resize(region, (seen.columns, seen.rows), interpolation=cv2.INTER_AREA)
    x = ((points[:, 0] - seen.left + 0.5) / seen.block - 0.5).astype(np.float32)
    y = ((points[:, 1] - seen.top + 0.5) / seen.block - 0.5).astype(np.float32)
    colours = np.empty((len(points), 3), np.float32)
    kernels.sample(small, x, y, colours)
    return np.log(colours + LOG_OFFSET)


def smooth(kernel: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean of ``values`` [468, K] by ``kernel`` [468, 468] and ``weights`` [468]: float32 [468, K]."""
    return (kernel @ (values * weights[:, None])) / (kernel @ weights[:, None] + 1e-6)


def relief_of(logs: np.ndarray, kernel: np.ndarray) -> float:
    """How much the luma of vertices [468, 3] deviates from that around them (by ``kernel``), inside of the face: log units."""
    mesh = topology()
    luma = logs @ LUMA
    detail = luma - smooth(kernel, luma[:, None], mesh.area)[:, 0]
    return math.sqrt(float(weighted_mean(detail**2, mesh.area * (mesh.from_oval > INSIDE))))


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of ``values`` [468] or [468, K] by ``weights`` [468]."""
    return np.tensordot(weights, values, 1) / weights.sum()

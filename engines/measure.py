"""How two results of one network are compared: what a family says of its outputs, and the parity gate goes by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LANDMARKS_SIDE = 192
"""Landmark errors are told in pixels of a crop of this side, FaceMesh's."""


class Measure(StrEnum):
    """How two tensors are compared."""

    PSNR_DB = "psnr_db"
    """Of pictures, masks and all that is nothing else; the peak is the reference's span."""
    COSINE = "cosine"
    """Of embeddings."""
    LANDMARK_PX = "landmark_px"
    """Of points: mean distance over the points of an input, pixels at 192."""


@dataclass(frozen=True, slots=True)
class Check:
    """How one output is compared."""

    measure: Measure
    side: float = LANDMARKS_SIDE
    """Of landmarks alone: units of their coordinates across the model's crop (192 pixels; 1 where they are shares)."""
    numbers: int = 0
    """Of landmarks that come as one row of numbers: how many a point has, x and y first; 0 where they come point by point."""


def landmarks(side: float, numbers: int = 0) -> Check:
    """Of points whose crop is ``side`` units wide."""
    return Check(Measure.LANDMARK_PX, side, numbers)

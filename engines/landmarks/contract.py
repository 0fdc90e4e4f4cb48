"""The contract of landmark models beside FaceMesh: they look at faces that are known and say where their points are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engines.align import five_of_mesh


@dataclass(frozen=True, slots=True)
class Sought:
    """A face as it is known before a landmark model looks at it."""

    box: np.ndarray
    """float32 [4] left, top, right, bottom, pixels."""
    five: np.ndarray
    """float32 [5, 2] pixels: where its five points are thought to be (see ``Points.five``)."""


def sought_by_mesh(points: np.ndarray) -> Sought:
    """By FaceMesh's points, float32 [468, 2 or 3] pixels."""
    return Sought(np.concatenate([points[:, :2].min(0), points[:, :2].max(0)]).astype(np.float32), five_of_mesh(points))


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

    def locate(self, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        """The points of each of ``faces`` in ``image`` (uint8 [H, W, 3] BGR): one run of the model where its graph takes any number.

        Raises ``ModelError``.
        """
        ...

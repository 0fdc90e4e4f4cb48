"""The five points of tracked faces by a landmark model of the user's choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.landmarks.contract import Landmarker, sought_by_mesh

SCORE_MIN = 0.5
"""Below this the model does not believe itself, and FaceMesh's points are taken."""


class ModelAligner:
    """Keeps ``engines.align.Aligner``. Not thread-safe: one thread at a time."""

    def __init__(self, model: Landmarker) -> None:
        self._model = model

    def fives(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Raises ``ModelError``."""
        rough = [sought_by_mesh(points) for points in faces]
        found = self._model.locate(image, rough)
        return [
            own.five if own.score >= SCORE_MIN and np.isfinite(own.five).all() else given.five
            for own, given in zip(found, rough, strict=True)
        ]

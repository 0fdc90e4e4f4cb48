"""The five points of a tracked face by a landmark model of the user's choice."""

from __future__ import annotations

import numpy as np

from engines.align import five_of_mesh
from engines.landmarks.contract import Landmarker

SCORE_MIN = 0.5
"""Below this the model does not believe itself, and FaceMesh's points are taken."""


class ModelAligner:
    """Keeps ``engines.align.Aligner``. Not thread-safe: one thread at a time."""

    def __init__(self, model: Landmarker) -> None:
        self._model = model

    def five(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Raises ``ModelError``."""
        rough = five_of_mesh(points)
        box = np.concatenate([points[:, :2].min(0), points[:, :2].max(0)]).astype(np.float32)
        found = self._model.locate(image, box, rough)
        return found.five if found.score >= SCORE_MIN and np.isfinite(found.five).all() else rough

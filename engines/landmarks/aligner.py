"""The five points of tracked faces by a landmark model of the user's choice."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from engines.landmarks.contract import Landmarker, sought_by_mesh

SCORE_MIN = 0.5
"""Below this the model does not believe itself, and FaceMesh's points are taken."""

FACES_KEPT = 16
"""Twice what a line tracks at most."""


class ModelAligner:
    """Keeps ``engines.align.Aligner``. Not thread-safe: one thread at a time.

    Masks, swapper and enhancer all ask for the points of the faces of a frame; the model looks at each once. A face of a frame is known
    by its array of landmarks, which belongs to that frame alone: what is asked for again is answered from memory, so that a face is laid
    in place for the enhancer as it was for the swapper, whose work would mislead the model.
    """

    def __init__(self, model: Landmarker) -> None:
        self._model = model
        self._known: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=FACES_KEPT)  # landmarks, held so that no other array is they

    def fives(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Raises ``ModelError``."""
        known = [self._of(points) for points in faces]
        new = [points for points, five in zip(faces, known, strict=True) if five is None]
        seen = iter(self._look(image, new) if new else ())
        return [next(seen) if five is None else five for five in known]

    def _of(self, face: np.ndarray) -> np.ndarray | None:
        return next((five for points, five in self._known if points is face), None)

    def _look(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[np.ndarray]:
        rough = [sought_by_mesh(points) for points in faces]
        found = self._model.locate(image, rough)
        fives = [
            own.five if own.score >= SCORE_MIN and np.isfinite(own.five).all() else given.five
            for own, given in zip(found, rough, strict=True)
        ]
        self._known.extend(zip(faces, fives, strict=True))
        return fives

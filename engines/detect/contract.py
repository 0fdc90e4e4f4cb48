"""The contract of every detector."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from engines.face import Detection


class Detector(Protocol):
    """Finds faces in a picture. Not thread-safe: one thread at a time."""

    def detect(self, image: np.ndarray) -> list[Detection]:
        """``image``: uint8 [H, W, 3] BGR. Faces by falling score."""
        ...

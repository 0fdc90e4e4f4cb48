"""The mouth stays the target's own: what is between the lips and the lips themselves, from FaceMesh's points alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.face import Patch
from engines.mask import masks
from engines.mask.shapes import Ramp, Shapes, limit, polygon
from engines.mesh.regions import LIPS

OUTER_LIPS = tuple(LIPS[:20])
"""The lips' outline, closed and in order."""

EDGE_SHARE = 0.06
"""Width of the soft edge over the mouth's: it lies inside of the lips, so that nothing outside of them changes."""


class MouthMask:
    """Not thread-safe: one thread at a time."""

    name = "mouth"

    def __init__(self, strength: float = 1.0) -> None:
        """``strength``: share of the target that is seen in the middle of the mouth, 0 to 1. Raises ``ValueError`` for others."""
        if not 0 <= strength <= 1:
            raise ValueError(f"the mouth's strength is {strength}; give a number from 0 (swapped) to 1 (the target's own)")
        self._strength = strength

    def limit(self, image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
        """See ``engines.mask.contract.Mask``. Works on the box of the mouth alone."""
        for mouth in self.shapes(image, points):
            limit(patch, mouth)

    def shapes(self, image: np.ndarray, points: np.ndarray) -> Sequence[Shapes]:
        """See ``engines.mask.contract.ShapeMask``: 255 outside of the lips, falling inside of them to 255 · (1 - strength)."""
        ring = points[list(OUTER_LIPS), :2]
        if not self._strength or not np.isfinite(ring).all():
            return ()
        edge = max(1.0, EDGE_SHARE * float(np.ptp(ring[:, 0])))
        return (Shapes(polygon(ring), Ramp(255, 255 * self._strength / edge, 255 * (1 - self._strength))),)


masks.register("mouth")(MouthMask)

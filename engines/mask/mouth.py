"""The mouth stays the target's own: what is between the lips and the lips themselves, from FaceMesh's points alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from engines.mask import masks
from engines.mask.contract import Cover
from engines.mask.shapes import Ramp, Shapes, limit_all, polygon
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

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        """See ``engines.mask.contract.Mask``; the picture is not looked at."""
        return [partial(limit_all, drawn=shapes) for shapes in self.shapes(image, faces)]

    def shapes(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Sequence[Shapes]]:
        """See ``engines.mask.contract.ShapeMask``: 255 outside of the lips, falling inside of them to 255 · (1 - strength)."""
        return [self._lips(points[list(OUTER_LIPS), :2]) for points in faces]

    def _lips(self, ring: np.ndarray) -> Sequence[Shapes]:
        if not self._strength or not np.isfinite(ring).all():
            return ()
        edge = max(1.0, EDGE_SHARE * float(np.ptp(ring[:, 0])))
        return (Shapes(polygon(ring), Ramp(255, 255 * self._strength / edge, 255 * (1 - self._strength))),)


masks.register("mouth")(MouthMask)

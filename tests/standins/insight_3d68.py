"""Stand-in of 1k3d68."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from standins.blob import points
from standins.sketch import Sketch

DEPTHS = np.linspace(-30, 45, 68)
"""Of the points, pixels of the crop."""


def insight_3d68(path: Path) -> Path:
    """[N, 3, 192, 192] of 0…255 → [N, 3309]: 1035 points that are not to be used, then 68; x and y in [-1, 1], depth alike from 0."""
    s = Sketch()
    found, _ = points(s, "data", 68, 255.0)
    depths = s.add(s.mul(s.channel(found, 0, 2), 0.0), s.const((DEPTHS / 96).reshape(1, 68, 1)))
    rows = s.op("Concat", s.sub(s.div(found, 96.0), 1.0), depths, axis=2)
    flat = s.op("Pad", s.shape(rows, -1, 68 * 3), s.ints(0, 1035 * 3, 0, 0), s.const(7.0))
    return s.save(path, [("data", ("None", 3, 192, 192))], [(flat, "fc1", ("None", 3309))])

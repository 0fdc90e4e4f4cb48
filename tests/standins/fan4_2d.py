"""Stand-in of 2DFAN4."""

from __future__ import annotations

from pathlib import Path

from standins.blob import points
from standins.sketch import Sketch


def fan4_2d(path: Path, *, batch: int | str = 1) -> Path:
    """[batch, 3, 256, 256] → points in units of a heatmap, and heatmaps whose maxima are 0.7 of the brightest red."""
    s = Sketch()
    found, bright = points(s, "input", 68, 1.0)
    units = s.mul(found, 64 / 256)
    score = s.op("Expand", s.shape(bright, -1, 1, 1), s.ints(1, 68, 1))
    heat = s.mul(s.op("Expand", bright, s.ints(1, 68, 64, 64)), 0.7)
    outputs = [
        (s.op("Concat", units, score, axis=2), "landmarks_xyscore", (batch, 68, 3)),
        (heat, "heatmaps", (batch, 68, 64, 64)),
    ]
    return s.save(path, [("input", (batch, 3, 256, 256))], outputs)

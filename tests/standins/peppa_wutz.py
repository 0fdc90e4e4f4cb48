"""Stand-in of Peppa-WuTz."""

from __future__ import annotations

from pathlib import Path

from standins.blob import points
from standins.sketch import Sketch


def peppa_wutz(path: Path, *, batch: int | str = 1) -> Path:
    """[batch, 3, 256, 256] → points in 64ths of the crop, and as their confidence 0.7 of the brightest red."""
    s = Sketch()
    found, bright = points(s, "input", 68, 1.0)
    score = s.mul(s.op("Expand", s.shape(bright, -1, 1, 1), s.ints(1, 68, 1)), 0.7)
    rows = s.op("Concat", s.mul(found, 64 / 256), score, axis=2)
    return s.save(path, [("input", (batch, 3, 256, 256))], [(rows, "landmarks_xyscore", (batch, 68, 3))])

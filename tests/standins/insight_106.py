"""Stand-in of 2d106det."""

from __future__ import annotations

from pathlib import Path

from standins.blob import points
from standins.sketch import Sketch


def insight_106(path: Path) -> Path:
    """[N, 3, 192, 192] of 0…255 → [N, 212] in [-1, 1]."""
    s = Sketch()
    found, _ = points(s, "data", 106, 255.0)
    flat = s.shape(s.sub(s.div(found, 96.0), 1.0), 1, 212)
    return s.save(path, [("data", ("None", 3, 192, 192))], [(flat, "fc1", ("None", 212))])

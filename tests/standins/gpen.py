"""Stand-in of GPEN."""

from __future__ import annotations

from pathlib import Path

from standins.gfpgan import restored
from standins.sketch import Sketch


def gpen(path: Path, *, side: int = 256, batch: int | str = 1) -> Path:
    s = Sketch()
    return s.save(path, [("input", (batch, 3, side, side))], [(restored(s, "input"), "output", (batch, 3, side, side))])

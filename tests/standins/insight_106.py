"""Stand-in of 2d106det."""

from __future__ import annotations

from pathlib import Path

from standins.blob import points
from standins.sketch import Sketch


def insight_106(path: Path, *, honest: bool = True) -> Path:
    """[N, 3, 192, 192] of 0…255 → [N, 212] in [-1, 1]. Not ``honest``: it says so, and works on one picture."""
    s = Sketch()
    found, _ = points(s, "data", 106, 255.0)
    flat = s.sub(s.div(found, 96.0), 1.0)
    if honest:
        flat = s.shape(flat, -1, 212)
    else:  # a shape that is not known before it runs
        one = s.op("Cast", s.op("ReduceMax", s.add(s.mul(found, 0.0), 1.0), keepdims=0), to=7)
        flat = s.op("Reshape", flat, s.op("Mul", s.ints(1, 212), one))
    return s.save(path, [("data", ("None", 3, 192, 192))], [(flat, "fc1", ("None", 212))])

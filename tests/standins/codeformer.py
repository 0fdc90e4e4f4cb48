"""Stand-in of CodeFormer."""

from __future__ import annotations

from pathlib import Path

from standins.gfpgan import restored
from standins.sketch import Sketch


def codeformer(path: Path, *, visomaster: bool = False) -> Path:
    """The colour that is mixed in is as bright as ``weight`` (float64 [1]) says. ``visomaster``: `x`, `w`, `y`; else FaceFusion's."""
    s = Sketch()
    picture, weight, output = ("x", "w", "y") if visomaster else ("input", "weight", "output")
    brightness = s.op("Cast", weight, to=1)
    shape = (1, 3, 512, 512)
    return s.save(path, [(picture, shape), (weight, (1,))], [(restored(s, picture, brightness), output, shape)], doubles=[weight])

"""Stand-in of RestoreFormer++."""

from __future__ import annotations

from pathlib import Path

from standins.gfpgan import restored
from standins.sketch import Sketch


def restoreformer(path: Path, *, others: bool = False) -> Path:
    """``others``: VisoMaster's file, whose picture `2359` three outputs of its inside follow; else FaceFusion's."""
    s = Sketch()
    shape = (1, 3, 512, 512)
    outputs = [(restored(s, "input"), "2359" if others else "output", shape)]
    if others:
        outputs += [(s.mul("input", factor), name, shape) for name, factor in (("1228", 0.0), ("1238", -1.0), ("1198", 0.5))]
    return s.save(path, [("input", shape)], outputs)

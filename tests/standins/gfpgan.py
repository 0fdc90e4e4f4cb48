"""Stand-in of GFPGAN; and what the stand-ins of all restorers do with a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from standins.sketch import Sketch

KEPT = np.array([0.3, 0.5, 0.9])
"""Share of the crop's red, green and blue that stays."""

COLOUR = np.array([0.8, 0.1, 0.35])
"""RGB in [0, 1] of what comes in its place."""


def by_hand(picture: np.ndarray, brightness: float = 1.0) -> np.ndarray:
    """float64 [..., 3] BGR of 0…255: what becomes of BGR levels."""
    kept, colour = KEPT[::-1], COLOUR[::-1] * brightness
    return kept * picture.astype(np.float64) + (1 - kept) * colour * 255


def restored(sketch: Sketch, given: str, brightness: str | None = None) -> str:
    """Steps from and to [-1, 1]. ``brightness``: a number that the colour is multiplied by."""
    s = sketch
    plain = s.add(s.mul(given, 0.5), 0.5)
    colour = s.const(((1 - KEPT) * COLOUR).reshape(1, 3, 1, 1))
    colour = colour if brightness is None else s.mul(colour, brightness)
    mixed = s.add(s.mul(plain, s.const(KEPT.reshape(1, 3, 1, 1))), colour)
    return s.sub(s.mul(mixed, 2.0), 1.0)


def gfpgan(path: Path, *, output: str = "output") -> Path:
    """[1, 3, 512, 512]. ``output``: `output` (FaceFusion, VisoMaster) or `1288` (roop)."""
    s = Sketch()
    return s.save(path, [("input", (1, 3, 512, 512))], [(restored(s, "input"), output, (1, 3, 512, 512))])

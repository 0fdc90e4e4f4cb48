"""Stand-in of fan_68_5."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from standins.sketch import Sketch


def shares() -> np.ndarray:
    """float32 [68, 5]: how much of each of the five points is in each of the 68; rows sum to 1."""
    raw = np.random.default_rng(21).uniform(-0.2, 1, (68, 5))
    return (raw / raw.sum(1, keepdims=True)).astype(np.float32)


SHIFT = (0.05, -0.03)
"""What is added to all of them, in sides of the crop."""


def fan_68_5(path: Path, *, batch: int | str = 1) -> Path:
    """[batch, 5, 2] → [batch, 68, 2]."""
    s = Sketch()
    found = s.add(s.op("MatMul", s.const(shares()[None]), "input"), s.const(SHIFT))
    return s.save(path, [("input", (batch, 5, 2))], [(found, "output", (batch, 68, 2))])

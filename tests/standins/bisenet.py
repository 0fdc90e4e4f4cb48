"""Stand-in of BiSeNet on CelebAMask-HQ."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from standins.sketch import Sketch

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

COLOURS = [(r, g, b) for r in (30, 120, 220) for g in (30, 120, 220) for b in (30, 120, 220) if not r == g == b][:19]
"""RGB levels of the 19 classes; read as BGR most are another class's."""


def bisenet(path: Path, *, others: int = 0, batch: int | str = "n") -> Path:
    """Every pixel is of the class whose colour is nearest. ``others``: outputs more, as training leaves them in the graph."""
    colours = (np.array(COLOURS) / 255 - MEAN) / STD
    return _linear(path, 2 * colours, -(colours**2).sum(1), others, batch)


def threshold(path: Path, channel: int, level: int) -> Path:
    """Skin where the colour number ``channel`` (of RGB) is over ``level``, hair elsewhere."""
    weights, biases = np.zeros((19, 3)), np.full(19, -100.0)
    weights[1, channel], biases[1], biases[17] = 1, 0, (level / 255 - MEAN[channel]) / STD[channel]
    return _linear(path, weights, biases)


def half(path: Path) -> Path:
    """Skin in the left half of the crop and hair in the right one."""
    s = Sketch()
    planes = np.zeros((1, 19, 512, 512), np.float32)
    planes[:, 1, :, :256], planes[:, 17, :, 256:] = 1, 1
    scores = s.add(s.mul(s.channel("input", 0), 0.0), s.const(planes))
    return s.save(path, [("input", ("n", 3, 512, 512))], [(scores, "output", ("n", 19, 512, 512))])


def _linear(path: Path, weights: np.ndarray, biases: np.ndarray, others: int = 0, batch: int | str = "n") -> Path:
    s = Sketch()
    scores = s.op("Conv", "input", s.const(weights.reshape(19, 3, 1, 1)), s.const(biases))
    outputs = [(scores, "output", (batch, 19, 512, 512))]
    outputs += [(s.mul(scores, -1.0), str(number + 2), (batch, 19, 512, 512)) for number in range(others)]
    return s.save(path, [("input", (batch, 3, 512, 512))], outputs)

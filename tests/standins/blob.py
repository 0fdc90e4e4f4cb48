"""What the stand-ins of landmark models see: where in their crop a red blob is, and how bright its red is."""

from __future__ import annotations

import numpy as np

from standins.sketch import Sketch

COLOUR, DECOY = (230, 30, 60), (60, 30, 230)
"""RGB levels of the blob, and of one that is taken for it where colours are swapped."""

BRIGHT_PX = 10.0
"""By so many pixels of the crop all points move to the right for every time the blob's red is wider than ``COLOUR``'s."""


def pattern(count: int) -> np.ndarray:
    """float64 [count, 2]: where around the blob the points are, pixels of the crop. No two alike, no symmetry."""
    number = np.arange(count)
    return np.stack([(number % 11) * 2.5 - 11, (number // 11) * 3.5 - 14 + 0.3 * (number % 3)], 1)


def points(sketch: Sketch, given: str, count: int, white: float) -> tuple[str, str]:
    """Steps [N, count, 2]: the points in pixels of the crop; and [N, 1, 1, 1]: the brightest red over ``white``.

    The blob's middle is the mean of red less blue. Values that are not 0…``white`` push the points away.
    """
    s = sketch
    red, blue = s.channel(given, 0), s.channel(given, 2)
    weight = s.op("Relu", s.sub(red, blue))
    total = s.add(s.total(weight), 1e-9)
    bright = s.op("ReduceMax", red, axes=[2, 3], keepdims=1)
    off = s.mul(s.sub(s.div(bright, COLOUR[0] / 255 * white), 1.0), BRIGHT_PX)
    x, y = (s.div(s.total(s.mul(weight, place)), total) for place in s.grid(red))
    middle = s.shape(s.op("Concat", s.add(x, off), y, axis=3), -1, 1, 2)
    return s.add(middle, s.const(pattern(count)[None])), s.div(bright, float(white))

"""Stand-in of XSeg, in both layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from standins.sketch import Sketch


def xseg(path: Path, *, planar: bool = False, name: str | None = None, half: bool = False, batch: int | str = "n") -> Path:
    """The probability is the red of a pixel, in [0, 1]. ``planar``: RGB [N, 3, 256, 256] (VisoMaster, Rope), else BGR
    [N, 256, 256, 3] (FaceFusion, roop). ``half``: 1 in the left half of the crop and 0 in the right one, whatever is there."""
    s = Sketch()
    name = name or ("in_face:0" if planar else "input")
    red = s.channel(name, 0) if planar else s.channel(name, 2, 3)
    if half:
        left = np.broadcast_to((np.arange(256) < 128).astype(np.float32), (1, 1, 256, 256))
        red = s.add(s.mul(red, 0.0), s.const(left if planar else left.transpose(0, 2, 3, 1)))
    shapes: list[tuple[int | str, ...]] = [(batch, 256, 256, 3), (batch, 256, 256, 1)]
    if planar:
        shapes = [(batch, 3, 256, 256), (batch, 1, 256, 256)]
    return s.save(path, [(name, shapes[0])], [(red, "out_mask:0" if planar else "output", shapes[1])])

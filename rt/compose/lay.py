"""How a patch gets onto a frame: limited by masks, fitted to the seam, blended."""

from __future__ import annotations

import numpy as np

from engines.swap.contract import Patch
from rt.compose import host
from rt.options import Blending, Look


def lay(pixels: np.ndarray, points: np.ndarray, patch: Patch, look: Look, opacity: float) -> None:
    """Lays ``patch`` over ``pixels`` (uint8 [H, W, 3] BGR) in place, as ``look`` says; the patch is changed too.

    ``points``: float32 [468, 3] FaceMesh landmarks of the face that it is for, pixels.
    """
    for mask in look.masks:
        mask.limit(pixels, points, patch)
    if look.blending is Blending.SEAMLESS:
        host.match_seam(pixels, patch)
    host.blend(pixels, patch, opacity)

"""How a patch gets onto a frame: limited by masks, fitted to the seam, blended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.mask.contract import Cover, Mask
from engines.swap.contract import Patch
from rt.compose import host, seam
from rt.options import Blending


def covers_of(masks: Sequence[Mask], pixels: np.ndarray, faces: Sequence[np.ndarray]) -> list[tuple[Cover, ...]]:
    """What every mask says of each face (float32 [468, 3] FaceMesh landmarks) in ``pixels`` (uint8 [H, W, 3] BGR, not swapped yet)."""
    said = [mask.covers(pixels, faces) for mask in masks]
    return [tuple(each[number] for each in said) for number in range(len(faces))]


def lay(
    pixels: np.ndarray,
    patch: Patch,
    covers: Sequence[Cover],
    blending: Blending,
    opacity: float,
    *,
    colour_match: float = 1.0,
    colour_transfer: float = 0.0,
    sharpness: float = 0.0,
) -> None:
    """Lays ``patch`` over ``pixels`` (uint8 [H, W, 3] BGR) in place; the patch is changed too. ``covers``: of the face it is for.
    ``colour_match``, ``colour_transfer``, ``sharpness``: as in ``rt.options.Look``."""
    for cover in covers:
        cover(patch)
    seam.match_colours(pixels, patch, blending, colour_match, colour_transfer)
    host.blend(pixels, patch, opacity)
    if sharpness:
        host.sharpen(pixels, patch, sharpness * opacity)

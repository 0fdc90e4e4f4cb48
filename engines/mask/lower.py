"""How a mask that a network has made in its own crop takes from a patch."""

from __future__ import annotations

import cv2
import numpy as np

from engines.face import Patch

SIDE = 256
"""Pixels of the masks here: a finer one would be blurred to this anyway."""

SIGMA = 5.0
"""Of the blur that takes the steps from a mask's edge: FaceFusion's, on its crops of 256."""


def softened(mask: np.ndarray) -> np.ndarray:
    """uint8 [256, 256], 0 to 255: blurred, then the upper half of the range drawn out over all of it. So the edge is soft and lies
    wholly inside of what was seen as face (FaceFusion's clip to 0.5…1, times two)."""
    kernel = blur_weights()
    blurred = cv2.sepFilter2D(mask, -1, kernel, kernel)  # a quarter of what GaussianBlur takes on bytes
    table = np.clip(np.round(2.0 * np.arange(256) - 255), 0, 255).astype(np.uint8)
    soft: np.ndarray = cv2.LUT(blurred, table)
    return soft


def blur_weights() -> np.ndarray:
    """float32 [31], whole 256ths: OpenCV then blurs bytes without a rounding on the way, and a device does the very same."""
    kernel: np.ndarray = np.round(cv2.getGaussianKernel(2 * round(3 * SIGMA) + 1, SIGMA)[:, 0] * 256).astype(np.float32) / 256
    assert kernel.sum() == 1
    return kernel


def lower(patch: Patch, mask: np.ndarray, matrix: np.ndarray) -> None:
    """Where ``mask`` (uint8 [S, S]) is less than ``patch.alpha``, that becomes as little, in place.

    ``matrix``: float32 [2, 3], pixels of the picture → pixels of the mask. What of the patch lies outside of the mask takes from the
    mask's border: an end there would be seen as a straight edge.
    """
    height, width = patch.alpha.shape
    moved = matrix.astype(np.float32)
    moved[:, 2] += matrix[:, :2] @ np.array([patch.left, patch.top], np.float32)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    shown = cv2.warpAffine(mask, moved, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    np.minimum(patch.alpha, shown, out=patch.alpha)


def levels(share: np.ndarray) -> np.ndarray:
    """float [...] in [0, 1] → uint8; what is no number keeps nothing."""
    whole: np.ndarray = np.round(255 * np.clip(np.nan_to_num(share, nan=0.0), 0, 1)).astype(np.uint8)
    return whole

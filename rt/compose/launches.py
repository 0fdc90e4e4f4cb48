"""What a frame with one face launches outside of the networks, as data: tests count it, and docs/kernels.md shows it."""

from __future__ import annotations

LAUNCHES_MAX = 12
"""Of a frame with one face. A seam that is matched twice is beyond it: see ``launches``."""

SWAP: dict[str, tuple[str, ...]] = {
    "mesh": ("mesh_vertices", "mesh_raster", "mesh_draw"),
    "network": ("crop_to_tensor", "paste_planes"),
}
"""Swapper → kernels in order, where it is drawn onto the picture. Masks that are drawn are drawn in the last of them."""

PATCH: dict[str, tuple[str, ...]] = {
    "mesh": ("mesh_vertices", "mesh_raster", "mesh_patch"),
    "network": ("crop_to_tensor", "planes_to_patch"),
}
"""The same where a patch is made, since its seam is matched or it is sharpened."""

LAY, SEAM, SHARPEN = ("lay_patch",), ("seam_cells", "seam_membrane"), ("sharpen_rows", "sharpen_columns")

_SOFTENED = ("mask_blur_rows", "mask_blur_columns")

NETWORK_MASKS: dict[str, tuple[str, ...]] = {
    "planes": ("crop_to_tensor", "mask_levels", *_SOFTENED),
    "pixels": ("crop_to_pixels", "mask_levels", *_SOFTENED),
    "classes": ("crop_to_tensor", "mask_classes", *_SOFTENED),
}
"""What a mask's network takes and gives → kernels around it. What is laid is then lowered by ``LOWER``."""

LOWER = ("mask_lower",)

ENHANCE = "network"
"""An enhancer is one more of these."""

HIDE = ("hide_cells", "hide_face")
"""Of a face that is not to be seen."""

BADGE = ("paint_badge",)

PACK = ("bgr_to_nv12",)
"""Of a frame that an encoder takes where it lies, beside those of ``launches``."""


def launches(
    swapper: str, *, enhanced: bool = False, seamless: bool = False, sharpened: bool = False, badge: bool = False, mask: str = ""
) -> tuple[str, ...]:
    """The kernels of a frame with one face, in order; 14 at the most without a network's mask, 20 with it. ``swapper``: a key of ``SWAP``,
    ``mask``: of ``NETWORK_MASKS``, or none."""
    made, lowered = (NETWORK_MASKS[mask], LOWER) if mask else ((), ())
    swap = lowered + _drawn(swapper, seamless, sharpened and not enhanced)
    return (*made, *swap, *(lowered + _drawn(ENHANCE, seamless, sharpened) if enhanced else ()), *(BADGE if badge else ()))


def _drawn(kind: str, seamless: bool, sharpened: bool) -> tuple[str, ...]:
    if not seamless and not sharpened:
        return SWAP[kind]
    return (*PATCH[kind], *(SEAM if seamless else ()), *LAY, *(SHARPEN if sharpened else ()))

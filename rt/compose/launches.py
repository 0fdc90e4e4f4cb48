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

ENHANCE = "network"
"""An enhancer is one more of these."""

HIDE = ("hide_cells", "hide_face")
"""Of a face that is not to be seen."""

BADGE = ("paint_badge",)


def launches(
    swapper: str, *, enhanced: bool = False, seamless: bool = False, sharpened: bool = False, badge: bool = False
) -> tuple[str, ...]:
    """The kernels of a frame with one face, in order; 14 at the most, with all of it. ``swapper``: a key of ``SWAP``."""
    swap = _drawn(swapper, seamless, sharpened and not enhanced)
    return (*swap, *(_drawn(ENHANCE, seamless, sharpened) if enhanced else ()), *(BADGE if badge else ()))


def _drawn(kind: str, seamless: bool, sharpened: bool) -> tuple[str, ...]:
    if not seamless and not sharpened:
        return SWAP[kind]
    return (*PATCH[kind], *(SEAM if seamless else ()), *LAY, *(SHARPEN if sharpened else ()))

"""What a frame with one face launches outside of the networks, as data: tests count it, and docs/kernels.md shows it."""

from __future__ import annotations

from rt.options import Blending

LAUNCHES_MAX = 12
"""Of a frame with one face, whatever is chosen."""

SWAP: dict[str, tuple[str, ...]] = {
    "mesh": ("mesh_raster", "mesh_draw"),
    "network": ("crop_to_tensor", "paste_planes"),
}
"""Swapper → kernels in order, where it is drawn onto the picture. What masks leave is known to the last of them."""

PATCH: dict[str, tuple[str, ...]] = {
    "mesh": ("mesh_raster", "mesh_patch"),
    "network": ("crop_to_tensor", "planes_to_patch"),
}
"""The same where a patch is made, since its seam is matched or it is sharpened."""

MATCHING = {
    Blending.SOFT: "seam_colours",
    Blending.SEAMLESS: "seam_membrane",
    Blending.POISSON: "seam_poisson",
    Blending.MULTIBAND: "seam_bands",
}
"""What a patch's colours are matched by; the first where they are transferred alone."""

LAY, SHARPEN = ("lay_patch",), ("lay_rows", "lay_columns")

NETWORK_MASKS = ("crop_to_tensor", "mask_soften")
"""Around the networks of masks, however many there are."""

ENHANCE = "network"
"""An enhancer is one more of these."""

HIDE = ("hide_cells", "hide_face")
"""Of a face that is not to be seen."""

BADGE = ("paint_badge",)

PACK = ("bgr_to_nv12",)
"""Of a frame that an encoder takes where it lies, beside those of ``launches``."""


def launches(
    swapper: str,
    *,
    blending: Blending = Blending.SOFT,
    transferred: bool = False,
    enhanced: bool = False,
    sharpened: bool = False,
    badge: bool = False,
    masked: bool = False,
) -> tuple[str, ...]:
    """The kernels of a frame with one face, in order. ``swapper``: a key of ``SWAP``; ``masked``: by networks."""
    matched = (MATCHING[blending],) if blending is not Blending.SOFT or transferred else ()
    swap = _drawn(swapper, matched, sharpened and not enhanced)
    enhance = _drawn(ENHANCE, matched, sharpened) if enhanced else ()
    return (*(NETWORK_MASKS if masked else ()), *swap, *enhance, *(BADGE if badge else ()))


def _drawn(kind: str, matched: tuple[str, ...], sharpened: bool) -> tuple[str, ...]:
    if not matched and not sharpened:
        return SWAP[kind]
    return (*PATCH[kind], *matched, *(SHARPEN if sharpened else LAY))

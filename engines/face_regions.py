"""Regions of a head by which a person says where the face is worn; masks that tell them apart (``engines.mask.bisenet``) keep to it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Region(StrEnum):
    """A part of the head that is worn, or stays the target's own."""

    FACE = "face"
    """Skin, brows, eyes and nose."""
    MOUTH = "mouth"
    HAIR = "hair"
    """What of it hangs into the face."""
    GLASSES = "glasses"
    EARS = "ears"
    HAT = "hat"
    NECK = "neck"


WORN = (Region.FACE, Region.MOUTH)
"""Unless asked otherwise: hair, hats and glasses before the face stay the target's."""

PARSED: dict[Region, tuple[str, ...]] = {
    Region.FACE: ("skin", "left_brow", "right_brow", "left_eye", "right_eye", "nose"),
    Region.MOUTH: ("mouth", "upper_lip", "lower_lip"),
    Region.HAIR: ("hair",),
    Region.GLASSES: ("glasses",),
    Region.EARS: ("left_ear", "right_ear", "earring"),
    Region.HAT: ("hat",),
    Region.NECK: ("neck", "necklace"),
}
"""Region → its names in ``engines.mask.bisenet.REGIONS``."""


def parsed(regions: Iterable[Region]) -> tuple[str, ...]:
    """What a face parser calls ``regions``."""
    return tuple(name for region in regions for name in PARSED[region])

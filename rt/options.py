"""Immutable snapshots of what the line is to do; a stage takes the current one at the start of each frame."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engines.enhance.contract import Enhancer
    from engines.mask.contract import Mask
    from engines.swap.contract import Swapper
    from rt.compose.badge import Badge


class OnLost(StrEnum):
    """What the picture shows when a face that was swapped is not found."""

    HOLD = "hold"
    """The swap stays on the predicted place for the tracker's hold, then the last region is blurred."""
    BLUR = "blur"
    """The last region is blurred at once."""
    FREEZE = "freeze"
    """The last picture with the face found is repeated."""
    SHOW = "show"
    """The picture passes unchanged: the real face may be seen."""


class Blending(StrEnum):
    """How a patch is joined to the frame."""

    SOFT = "soft"
    """By its alpha."""
    SEAMLESS = "seamless"
    """Its colours first move to those of the frame along the seam, as if only its gradients were pasted."""


class Corner(StrEnum):
    """Of the picture."""

    TOP_LEFT = "top-left"
    TOP_RIGHT = "top-right"
    BOTTOM_LEFT = "bottom-left"
    BOTTOM_RIGHT = "bottom-right"


class CropFit(StrEnum):
    """What becomes of what a crop of the source's picture leaves."""

    FILL = "fill"
    """It fills a picture of the size before: cut further to that shape, about its middle, and enlarged."""
    PART = "part"
    """It is the picture, as small as it is."""


CROP_LEAVES_MIN = 0.05
"""Share of a side that a crop must leave."""


@dataclass(frozen=True, slots=True)
class Look:
    """Whose face is worn, and how."""

    swapper: Swapper | None = None
    """None leaves every face as it is."""
    identity: Any = None
    """What the swapper prepared."""
    opacity: float = 1.0
    """0 shows the person filmed, 1 the identity."""
    on_lost: OnLost = OnLost.HOLD
    masks: tuple[Mask, ...] = ()
    """What each leaves to the target is the target's."""
    enhancer: Enhancer | None = None
    """Works on every face that was swapped."""
    enhancer_opacity: float = 0.8
    """0 leaves the swap as it is, 1 shows the enhancer's picture alone."""
    blending: Blending = Blending.SOFT
    colour_match: float = 1.0
    """0 leaves a face its own colours, 1 gives it the target's: of swappers that can be told, and of a seam that is matched."""
    sharpness: float = 0.0
    """0 leaves a face as it is drawn, 1 sharpens it as much as can be looked at."""
    badge: Badge | None = None
    """Stamped on every picture in which a face may be worn."""
    faces: int = 8
    """So many faces of a frame are swapped, those known longest; further ones are hidden."""
    patience: int = 1
    """The detector looks for further faces so many times less often than the tracker was told."""

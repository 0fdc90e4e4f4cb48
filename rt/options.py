"""Immutable snapshots of what the line is to do; a stage takes the current one at the start of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engines.enhance.contract import Enhancer
    from engines.mask.contract import Mask
    from engines.swap.contract import Swapper
    from rt.compose.badge import Badge
    from rt.frame import TrackedFace


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


class Wear(StrEnum):
    """What the face of one person gets."""

    SWAP = "swap"
    """Another face is worn."""
    LEAVE = "leave"
    """The face is shown as it is."""
    HIDE = "hide"
    """The face is blurred."""


@dataclass(frozen=True, slots=True)
class Role:
    """What one person gets."""

    wear: Wear = Wear.SWAP
    identity: Any = None
    """What the swapper prepared; None wears what everybody wears."""


class Blending(StrEnum):
    """How a patch is joined to the frame."""

    SOFT = "soft"
    """By its alpha."""
    SEAMLESS = "seamless"
    """Its colours first move to those of the frame along the seam, as if only its gradients were pasted."""
    POISSON = "poisson"
    """Its gradients and those of the frame go over into one another."""
    MULTIBAND = "multiband"
    """Its coarse colours go over into those of the frame over a wide seam, its detail over a narrow one."""


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
    """Whose face is worn, by whom, and how."""

    swapper: Swapper | None = None
    """None leaves every face as it is."""
    identity: Any = None
    """What the swapper prepared, for everybody who wears nothing else."""
    roles: Mapping[int, Role] = field(default_factory=dict)
    """Number of a person (``TrackedFace.person``) → what they get; not written to again."""
    others: Role = Role()
    """What those get who are not named in ``roles``."""
    seats: tuple[Any, ...] = ()
    """Identities, one each by ``TrackedFace.seat`` and round again, in the place of ``identity``; empty: all wear that."""
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
    seam_width: float = 1.0
    """A swapper's seam is so many times as wide as it has it by itself."""
    colour_match: float = 1.0
    """0 leaves a face its own colours, 1 gives it the target's: of swappers that can be told, and of a seam that is matched."""
    colour_transfer: float = 0.0
    """0 leaves a face its own mean colour and contrast, 1 gives it those of what it covers; before its seam is matched."""
    sharpness: float = 0.0
    """0 leaves a face as it is drawn, 1 sharpens it as much as can be looked at."""
    badge: Badge | None = None
    """Stamped on every picture in which a face may be worn."""
    faces: int = 8
    """So many faces of a frame are swapped, those known longest; further ones are hidden."""
    patience: int = 1
    """The detector looks for further faces so many times less often than the tracker was told."""

    @property
    def swaps(self) -> bool:
        """Whether anybody could wear anything."""
        identities = (self.identity, *self.seats, *(role.identity for role in self.roles.values()))
        return self.swapper is not None and any(identity is not None for identity in identities)

    def role(self, face: TrackedFace) -> Role:
        """What whoever has ``face`` gets, the identity filled in; with an identity of None there is nothing to wear."""
        role = self.roles.get(face.person, self.others)
        if role.identity is not None:
            return role
        return replace(role, identity=self.seats[face.seat % len(self.seats)] if self.seats else self.identity)

"""Immutable snapshots of what the line is to do; a stage takes the current one at the start of each frame."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engines.swap.contract import Swapper


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

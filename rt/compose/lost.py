"""No face leaks by accident: what each face of a frame gets, by its state and the policy the user chose."""

from __future__ import annotations

from enum import StrEnum

from rt.frame import FaceState
from rt.options import OnLost


class Treatment(StrEnum):
    """What is done with one face in one frame."""

    SWAP = "swap"
    BLUR = "blur"
    FREEZE = "freeze"
    SHOW = "show"


_WHEN_NOT_SEEN: dict[tuple[OnLost, FaceState], Treatment] = {
    (OnLost.HOLD, FaceState.HELD): Treatment.SWAP,
    (OnLost.HOLD, FaceState.LOST): Treatment.BLUR,
    (OnLost.BLUR, FaceState.HELD): Treatment.BLUR,
    (OnLost.BLUR, FaceState.LOST): Treatment.BLUR,
    (OnLost.FREEZE, FaceState.HELD): Treatment.FREEZE,
    (OnLost.FREEZE, FaceState.LOST): Treatment.FREEZE,
    (OnLost.SHOW, FaceState.HELD): Treatment.SHOW,
    (OnLost.SHOW, FaceState.LOST): Treatment.SHOW,
}


def treatment(state: FaceState, policy: OnLost) -> Treatment:
    """A face that is seen is swapped; one that is not follows the policy."""
    return Treatment.SWAP if state is FaceState.SEEN else _WHEN_NOT_SEEN[policy, state]

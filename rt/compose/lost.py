"""No face leaks by accident: what each face of a frame gets, by whose it is, its state, and what the user chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Look, OnLost, Role, Wear


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


def treatments(faces: Sequence[TrackedFace], look: Look) -> list[tuple[TrackedFace, Treatment]]:
    """Every face of a frame with what it gets. Of those that are to wear something, ``look.faces`` do; the others are hidden."""
    chosen = []
    worn = 0
    for face in faces:
        what, is_worn = _of_face(face, look), _wears(look, look.role(face))
        worn += is_worn
        chosen.append((face, Treatment.BLUR if what is Treatment.SWAP and worn > look.faces else what))
    return chosen


def _of_face(face: TrackedFace, look: Look) -> Treatment:
    role = look.role(face)
    if role.wear is Wear.HIDE or (role.wear is Wear.LEAVE and _may_be_hidden(face, look)):
        return Treatment.BLUR
    return treatment(face.state, look.on_lost) if _wears(look, role) else Treatment.SHOW


def _wears(look: Look, role: Role) -> bool:
    return look.swapper is not None and role.wear is Wear.SWAP and role.identity is not None


def _may_be_hidden(face: TrackedFace, look: Look) -> bool:
    """It may be somebody out of sight whose face is not to be seen."""
    covered = {number for number, role in look.roles.items() if role.wear is not Wear.LEAVE}
    return look.on_lost is not OnLost.SHOW and not covered.isdisjoint(face.perhaps)


class LastGood:
    """The freeze policy, where frames are in order again: the last picture with the face found, kept to be shown once more. One thread."""

    def __init__(self) -> None:
        self._kept: Frame | None = None  # its slot is retained

    def shown_for(self, frame: Frame) -> Frame:
        """What is to be shown for ``frame``, whose slot is taken over: itself, or the last good picture with its number and its time."""
        if frame.is_good:
            self._keep(frame)
        if not frame.wants_good or self._kept is None:
            return frame
        good = self._kept
        _retain(good)
        _release(frame)
        shown = {name: getattr(good, name) for name in ("pixels", "slot", "is_here", "composed")}
        return replace(frame, **shown, repeated=True)

    def clear(self) -> None:
        """Lets go of what is kept."""
        self._keep(None)

    def _keep(self, frame: Frame | None) -> None:
        if frame is not None:
            _retain(frame)
        if self._kept is not None:
            _release(self._kept)
        self._kept = frame


def _retain(frame: Frame) -> None:
    if frame.slot is not None:
        frame.slot.retain()


def _release(frame: Frame) -> None:
    if frame.slot is not None:
        frame.slot.release()

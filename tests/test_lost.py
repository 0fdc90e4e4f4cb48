"""No face leaks by accident: what each policy shows when a face is not found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from one_lane import OneLane

from engines.mesh.topology import topology
from engines.swap.contract import Patch, SourceFace
from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Look, OnLost
from rt.ring import SlotRing

WORN = 255
"""The grey level that the swapper below paints."""


class ScriptedTracker:
    """Says the states it was given, one a frame, of one face that does not move."""

    def __init__(self, states: Sequence[FaceState | None]) -> None:
        self._states = list(states)
        self.points = (topology().shape * 40 + [100, 80, 0]).astype(np.float32)

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        state = self._states.pop(0)
        return () if state is None else (TrackedFace(1, self.points, state, 1.0),)


class PaintingSwapper:
    """Paints a white square on the middle of the face."""

    name = "painting"

    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def warm_up(self) -> None:
        """Nothing to prepare."""

    def prepare(self, faces: Sequence[SourceFace]) -> Any:
        return "white"

    def swap(self, image: np.ndarray, points: np.ndarray, identity: Any, face_id: int, captured_ns: int) -> Patch | None:
        x, y = points[:, :2].mean(0).astype(int)
        square = np.full((20, 20, 3), WORN, np.uint8)
        return Patch(square, np.full((20, 20), 255, np.uint8), x - 10, y - 10)

    def forget(self, face_id: int) -> None:
        self.forgotten.append(face_id)


def run(policy: OnLost, states: Sequence[FaceState | None]) -> tuple[list[np.ndarray], list[np.ndarray], PaintingSwapper]:
    """The pictures as they came and as they went; noise, so that nothing is alike by chance."""
    swapper = PaintingSwapper()
    lane = OneLane(ScriptedTracker(states))
    ring = SlotRing(4, 160, 200)
    random = np.random.default_rng(1)
    came, went = [], []
    for number in range(len(states)):
        slot = ring.acquire()
        assert slot is not None
        slot.pixels[:] = random.integers(0, 200, slot.pixels.shape, np.uint8)
        came.append(slot.pixels.copy())
        shown = lane.process(Frame(slot.pixels, number, number * 33_000_000, slot=slot), Look(swapper, "white", on_lost=policy))
        went.append(shown.pixels.copy())
        assert shown.slot is not None
        shown.slot.release()
    lane.close()
    assert ring.free == len(ring)
    return came, went, swapper


SEEN, HELD, LOST = FaceState.SEEN, FaceState.HELD, FaceState.LOST


def middle(picture: np.ndarray) -> np.ndarray:
    return picture[70:90, 90:110]


def detail(picture: np.ndarray) -> float:
    """Mean step from a pixel to its neighbour, over the face's middle."""
    return float(np.abs(np.diff(middle(picture).astype(int), axis=1)).mean())


def test_hold_goes_on_wearing_the_face_and_then_blurs() -> None:
    came, went, _ = run(OnLost.HOLD, [SEEN, HELD, LOST])
    x = ScriptedTracker([]).points[:, :2].mean(0).astype(int)
    assert (went[0][x[1], x[0]] == WORN).all()
    assert (went[1][x[1], x[0]] == WORN).all()
    assert detail(went[2]) < 0.1 * detail(came[2])


@pytest.mark.parametrize("state", [HELD, LOST])
def test_blur_hides_at_once(state: FaceState) -> None:
    came, went, _ = run(OnLost.BLUR, [SEEN, state])
    assert detail(went[1]) < 0.1 * detail(came[1])


def test_freeze_repeats_the_last_good_picture() -> None:
    _, went, _ = run(OnLost.FREEZE, [SEEN, HELD, LOST, SEEN])
    assert np.array_equal(went[1], went[0])
    assert np.array_equal(went[2], went[0])
    assert not np.array_equal(went[3], went[0])


def test_freeze_without_a_good_picture_blurs() -> None:
    came, went, _ = run(OnLost.FREEZE, [LOST])
    assert detail(went[0]) < 0.1 * detail(came[0])


def test_show_shows() -> None:
    came, went, _ = run(OnLost.SHOW, [SEEN, HELD, LOST])
    assert np.array_equal(went[1], came[1])
    assert np.array_equal(went[2], came[2])


def test_hiding_touches_the_region_alone() -> None:
    came, went, _ = run(OnLost.BLUR, [LOST])
    changed = np.argwhere((came[0] != went[0]).any(-1))
    points = ScriptedTracker([]).points
    reach = 0.7 * np.ptp(points[:, :2], 0).max()
    centre = points[:, :2].mean(0)
    assert (np.abs(changed[:, ::-1] - centre) < reach * 1.3).all()
    assert np.array_equal(came[0][:8], went[0][:8])


def test_a_face_that_cannot_be_drawn_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PaintingSwapper, "swap", lambda *arguments: None)
    came, went, _ = run(OnLost.HOLD, [SEEN])
    assert detail(went[0]) < 0.1 * detail(came[0])


def test_a_face_that_has_left_is_forgotten() -> None:
    _, _, swapper = run(OnLost.HOLD, [SEEN, None, None])
    assert swapper.forgotten == [1]


def test_a_failing_step_is_raised_to_the_line_and_the_lane_still_works() -> None:
    class Failing(ScriptedTracker):
        def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
            if captured_ns == 0:
                raise ValueError("bad picture")
            return ()

    lane = OneLane(Failing([]))
    with pytest.raises(ValueError, match="bad picture"):
        lane.process(Frame(np.zeros((8, 8, 3), np.uint8), 0, 0), Look())
    lane.process(Frame(np.zeros((8, 8, 3), np.uint8), 1, 1), Look())
    lane.close()

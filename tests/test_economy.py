"""What a line gives up to stay young: in the written order, no more than it must, shown, and back when it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_lane import OneLane

from engines.device.host import HostDevice
from engines.face import Detection, Landmarks, Patch, Roi
from engines.mesh.topology import topology
from engines.swap.echo import echo
from rt.audio import AudioBus
from rt.budget import STEPS, BudgetOptions
from rt.capture import CaptureRequest, open_spec
from rt.clock import MonotonicClock
from rt.economy import PATIENCE, Economy, possible, without
from rt.frame import FaceState, Frame, TrackedFace
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look, OnLost
from rt.sinks.null import NullSink
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker
from rt.tracking import Tracking

MS, SECOND_NS = 1_000_000, 1_000_000_000


class NoEnhancer:
    """Enhances nothing."""

    name = "no"

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        return None


def full_look(faces: int = 3, boost: int = 2) -> Look:
    swapper = echo(boost)
    return Look(swapper, swapper.prepare([]), enhancer=NoEnhancer(), faces=faces, opacity=0.7, on_lost=OnLost.BLUR)


LOOKS = [
    (full_look(), STEPS),
    (full_look(boost=1), ("detect less often", "enhancer off", "fewer faces")),
    (full_look(faces=1), ("enhancer off", "smaller swap")),
    (replace(full_look(faces=1, boost=1), enhancer=None), ()),
    (Look(faces=4), ()),
]


@pytest.mark.parametrize(("look", "steps"), LOOKS)
def test_a_step_is_possible_exactly_where_it_changes_the_look(look: Look, steps: tuple[str, ...]) -> None:
    assert possible(look) == steps
    for step in steps:
        assert step not in possible(without(look, [step]))


def test_each_step_changes_what_it_says_and_nothing_else() -> None:
    look = full_look()
    lesser = without(look, STEPS)
    assert lesser == replace(look, patience=PATIENCE, enhancer=None, swapper=look.swapper.smaller, faces=1)  # type: ignore[union-attr]
    assert without(look, STEPS[:2]) == replace(look, patience=PATIENCE, enhancer=None)


def cost_ms(look: Look, load: float) -> float:
    """What a frame takes of a machine under ``load``: the detector, then each face."""
    faces = load * min(3, look.faces)
    swap = 12 if look.swapper.smaller is None else 30  # type: ignore[union-attr]
    return 15 / look.patience + faces * (swap + (20 if look.enhancer is not None else 0))


class Simulated:
    """A camera at 30 fps, a machine, and a sink that takes pictures as they are done, on a clock of numbers."""

    def __init__(self, look: Look, options: BudgetOptions) -> None:
        self.economy, self.metrics = Economy([look], options), Metrics()
        self.now_ns, self._asked_ns = 0, 0

    def run(self, seconds: float, load: float) -> list[str]:
        """What changed, in order."""
        changed, until_ns = [], self.now_ns + round(seconds * SECOND_NS)
        while self.now_ns < until_ns:
            captured_ns = self.now_ns
            self.now_ns += max(33 * MS, round(cost_ms(self.economy.look(), load) * MS))
            self.metrics.taken("null", captured_ns, captured_ns + round(cost_ms(self.economy.look(), load) * MS))
            if self.now_ns - self._asked_ns >= SECOND_NS // 4:
                self._asked_ns = self.now_ns
                age_ms = self.metrics.recent_age_ms(["null"], self.now_ns)
                assert age_ms is not None
                change = self.economy.notice_age(age_ms, self.now_ns)
                changed += [] if change is None else [("-" if change.given_up else "+") + change.step]
        return changed


def test_no_more_is_given_up_than_must_be_and_all_comes_back_in_reverse() -> None:
    look = full_look()
    machine = Simulated(look, BudgetOptions())
    assert machine.run(20, load=0.5) == []
    assert machine.run(30, load=1) == ["-detect less often", "-enhancer off"]  # 165 → 154 → 94 ms
    assert machine.economy.given_up == STEPS[:2]
    assert machine.run(9, load=4) == ["-smaller swap", "-fewer faces"]
    assert machine.economy.look().faces == 1
    assert machine.run(90, load=0.3) == ["+" + step for step in reversed(STEPS)]
    assert machine.economy.look() == look
    assert [change.given_up for change in machine.economy.changes] == [True] * 4 + [False] * 4


@given(st.lists(st.tuples(st.floats(1, 40), st.floats(0.1, 6)), max_size=6))
@settings(deadline=None, max_examples=8)
def test_whatever_the_load_the_look_in_force_is_the_chosen_one_without_what_is_told(loads: list[tuple[float, float]]) -> None:
    look = full_look()
    machine = Simulated(look, BudgetOptions())
    for seconds, load in loads:
        machine.run(seconds, load)
        given_up = machine.economy.given_up
        assert given_up == STEPS[: len(given_up)]
        assert machine.economy.look() == without(look, given_up)
    machine.run(1500, load=0.1)
    assert machine.economy.look() == look


def test_another_look_is_worn_without_what_is_given_up() -> None:
    economy = Economy([replace(full_look(), enhancer=None)], BudgetOptions(hold_ns=0))
    for now_ns in range(3):
        economy.notice_age(150, now_ns)
    assert economy.given_up == ("detect less often", "smaller swap", "fewer faces")
    chosen = replace(full_look(), opacity=0.2)
    economy.wear([chosen])
    assert economy.look() == without(chosen, STEPS)  # the enhancer stands before what was given up: it goes, too
    economy.wear([Look()])
    assert economy.given_up == ()


def test_a_slow_sink_does_not_count_against_the_line() -> None:
    metrics = Metrics()
    for number in range(30):
        at_ns = number * 33 * MS
        metrics.taken("camera", at_ns, at_ns + 20 * MS)
        metrics.taken("rtmp", at_ns, at_ns + 900 * MS)
    assert metrics.recent_age_ms(["camera", "rtmp"], SECOND_NS) == pytest.approx(20)
    assert metrics.recent_age_ms(["rtmp"], SECOND_NS) == pytest.approx(900)
    assert metrics.recent_age_ms(["camera"], 10 * SECOND_NS) is None


def test_recent_is_the_last_second_alone() -> None:
    metrics = Metrics()
    for second, age_ms in enumerate((500, 40)):
        for frame in range(3000):  # more than is kept of one second: the newest count
            now_ns = second * SECOND_NS + frame * 100_000
            metrics.taken("null", now_ns - age_ms * MS, now_ns)
    assert metrics.recent_age_ms(["null"], SECOND_NS + 300 * MS) == pytest.approx(40)


# --- on the real lane and line ---


class TwoFaces:
    """Two that stand still."""

    patience = 1

    def __init__(self) -> None:
        shape = topology().shape * 40
        self.points = [(shape + [x, 80, 0]).astype(np.float32) for x in (90, 300)]

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        return tuple(TrackedFace(n, points, FaceState.SEEN, 1.0) for n, points in enumerate(self.points, 1))


@pytest.mark.parametrize("policy", OnLost)
def test_a_face_too_many_is_hidden_not_shown(policy: OnLost) -> None:
    tracker, random = TwoFaces(), np.random.default_rng(1)
    came = random.integers(0, 256, (160, 400, 3), np.uint8)
    frame = Frame(came.copy(), 0, 0)
    lane = OneLane(tracker)
    look = replace(full_look(), on_lost=policy)
    lane.process(frame, replace(look, faces=1, enhancer=None))
    lane.close()
    x, y = tracker.points[1][:, :2].mean(0).astype(int)
    place = np.s_[y - 15 : y + 15, x - 15 : x + 15]
    detail = [float(np.abs(np.diff(picture[place].astype(int), axis=1)).mean()) for picture in (came, frame.pixels)]
    assert detail[1] < 0.1 * detail[0]


class CountedDetector:
    def __init__(self) -> None:
        self.calls = 0

    def detect(self, image: np.ndarray) -> list[Detection]:
        self.calls += 1
        return [Detection(np.array([20, 20, 90, 90], np.float32), np.zeros((6, 2), np.float32), 0.9)] if self.calls == 1 else []


class SureMesh:
    def locate(self, image: np.ndarray, roi: Roi) -> Landmarks:
        return Landmarks((topology().shape * 20 + [60, 60, 0]).astype(np.float32), 1.0)

    def locate_all(self, image: np.ndarray, rois: Sequence[Roi]) -> list[Landmarks]:
        return [self.locate(image, roi) for roi in rois]


@pytest.mark.parametrize("patience", [1, PATIENCE])
def test_the_detector_is_asked_so_many_times_less_often(patience: int) -> None:
    detector = CountedDetector()
    tracker = Tracker(detector, SureMesh(), TrackOptions(max_faces=2, detect_every=5))
    tracker.patience = patience
    for number in range(100):
        tracker.update(np.zeros((120, 160, 3), np.uint8), number * 33 * MS)
    assert detector.calls == 1 + (100 - 1) // (5 * patience)


class OneFace(TwoFaces):
    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        return super().update(image, captured_ns)[:1]


def test_a_line_that_is_late_gives_up_its_enhancer_shows_it_and_takes_it_back() -> None:
    clock, metrics = MonotonicClock(), Metrics()
    tracking, lane = Tracking(OneFace(), metrics, clock), Lane(HostDevice(), clock, slow_ms={"enhance": 300.0})
    source = open_spec("synthetic:size=400x160,fps=30", CaptureRequest(), clock)
    look = replace(full_look(faces=1, boost=1), on_lost=OnLost.HOLD)
    options = BudgetOptions(budget_ms=250, back_at=0.99, hold_ns=300 * MS, back_hold_ns=300 * MS)
    line = Line(source, tracking, [lane], [NullSink(clock)], [look], clock, metrics, AudioBus(), budget=options)
    line.start()
    try:
        shown: list[Any] = []
        while len(line.economy.changes) < 2:
            assert not line.wait(0.01)
            shown.append(metrics.snapshot().given_up)
    finally:
        line.stop()
        assert line.wait(30)
        line.join()
    down, back = line.economy.changes[:2]
    assert (down.step, down.given_up, back.step, back.given_up) == ("enhancer off", True, "enhancer off", False)
    assert down.at_ns < back.at_ns
    assert ("enhancer off",) in shown
    assert line.error is None

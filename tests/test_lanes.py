"""Several lanes: who gets a frame, in what order frames come out, and what happens when a lane is late, fails or has no memory left."""

from __future__ import annotations

import itertools
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paired import Paired
from small_line import MIDDLE, MS, WORN, Grey, Keeping, Painting, Scripted

from engines.device.checking import CheckingDevice
from engines.device.contract import Device
from engines.device.host import HostDevice
from engines.device.simulated import SimulatedDevice
from engines.errors import DeviceError, DeviceMemoryError
from engines.face import Patch
from rt.audio import AudioBus
from rt.capture.contract import Grab
from rt.clock import ManualClock, MonotonicClock
from rt.economy import MEMORY_STEPS, Economy
from rt.errors import LaneError
from rt.frame import FaceState, Frame, TrackedFace, VideoFormat
from rt.lane import Lane
from rt.lanes import FORGET_S, LATE_GRACE_NS, SLOWEST, Lanes
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look, OnLost
from rt.order import Sequence as Order
from rt.sinks.runner import SinkRunner
from rt.tracking import Tracking
from rt.wardrobe import Wardrobe
from rt.witness import Witness

MB = 1_000_000


class Hungry(Painting):
    """Takes so much of a device's memory for every face of a picture."""

    def __init__(self, device: SimulatedDevice, nbytes: int, smaller: Hungry | None = None) -> None:
        super().__init__(self._eat)
        self.smaller = smaller
        self._device = device
        self._nbytes = nbytes
        self._eaten = ExitStack()
        self._at_ns = -1

    def _eat(self, captured_ns: int) -> None:
        if captured_ns != self._at_ns:
            self._eaten.close()
        self._at_ns = captured_ns
        self._eaten.enter_context(self._device.memory(self._nbytes))


class Enhancing:
    """Does nothing."""

    name = "enhancing"

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        return None


@contextmanager
def running(
    devices: Sequence[Device], looks: Sequence[Look], *, frames: int | None = None, tracker: Any = None, witness: Witness | None = None
) -> Iterator[tuple[Line, Metrics, Keeping]]:
    """With ``frames`` the input waits for the line, so that none is dropped or late however slow the machine is; else it is a camera."""
    clock, metrics, sink = MonotonicClock(), Metrics(), Keeping()
    lanes = [Lane(device, clock) for device in devices]
    source = Grey(frames, clock)
    tracking = Tracking(tracker or Scripted(), metrics, clock)
    line = Line(source, tracking, lanes, [sink], looks, clock, metrics, AudioBus(), witness=witness)
    line.start()
    try:
        yield line, metrics, sink
    finally:
        line.stop()
        assert line.wait(60)
        line.join()
    assert sink.seqs == sorted(set(sink.seqs)), "numbers only rise"
    seen = metrics.snapshot()
    if line.error is None:
        assert seen.frames_in == seen.frames_out + sum(seen.dropped.values()), "every frame is shown or counted"
    assert len(sink.seqs) == seen.frames_out
    assert line._ring is not None
    assert line._ring.free == len(line._ring)


def until(line: Line, happened: Callable[[], bool]) -> None:
    while not happened():
        assert not line.wait(0.005), line.error


def worn(swapper: Any, **more: Any) -> Look:
    return Look(swapper, "white", **more)


# --- order ---


def frame_of(seq: int) -> Frame:
    return Frame(np.zeros((2, 2, 3), np.uint8), seq, 0)


@given(st.permutations(range(8)), st.sets(st.integers(0, 7)), st.lists(st.integers(0, 9), min_size=8, max_size=8))
@settings(deadline=None)
def test_whatever_the_lanes_do_frames_come_out_in_order_and_none_is_lost_silently(
    arrivals: list[int], lost: set[int], late: list[int]
) -> None:
    """``late``: by how much each comes after its turn; deadlines are 5 after it was dealt."""
    order, shown, refused, now = Order(), [], [], 0
    for seq in range(8):
        order.expect(seq, 5)
    for seq in arrivals:
        now = max(now, late[seq])
        if seq in lost:
            order.give_up(seq)
        elif not order.arrive(frame_of(seq)):
            refused.append(seq)
        while (frame := order.next(now)) is not None:
            shown.append(frame.seq)
    assert shown == sorted(shown)
    assert sorted([*shown, *refused, *lost]) == list(range(8))
    assert len(order) == 0
    if now < 5:
        assert not refused, "nobody is late before the deadline"


def test_a_late_frame_holds_the_others_until_its_deadline_and_not_longer() -> None:
    order = Order()
    order.expect(0, 100)
    order.expect(1, 200)
    assert order.wait_ns(0) is None, "nobody waits for it"
    order.arrive(frame_of(1))
    assert order.next(99) is None
    assert order.wait_ns(90) == 10
    shown = order.next(100)
    assert shown is not None
    assert shown.seq == 1
    assert not order.arrive(frame_of(0))


def test_without_a_deadline_the_order_waits_for_ever() -> None:
    order = Order()
    order.expect(0, None)
    order.expect(1, None)
    order.arrive(frame_of(1))
    assert order.next(1 << 62) is None
    assert order.wait_ns(0) is None


# --- dealing ---


def lanes_of(count: int) -> Lanes:
    clock = ManualClock()
    wardrobe = Wardrobe(Economy([Look()], lanes=count))
    return Lanes([Lane(HostDevice(), clock) for _ in range(count)], wardrobe, clock, Metrics(), lambda: None)


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(1, 50)), st.booleans(), st.integers(0, 60)), min_size=1, max_size=4))
@settings(deadline=None, max_examples=60)
def test_a_frame_goes_to_the_lane_that_will_finish_first(plan: list[tuple[int | None, bool, int]]) -> None:
    """Each lane: its milliseconds a frame where known, whether it works on one, and for how long already."""
    lanes = lanes_of(len(plan))
    known = [work for work, _, _ in plan if work is not None]
    usual = sum(known) / len(known) if known else 0
    now, finishes = 100, []
    lanes._clock.advance(now * MS)  # type: ignore[attr-defined]
    for runner, (work, busy, since) in zip(lanes._runners, plan, strict=True):
        runner.work_ns, runner.is_fresh = None if work is None else work * MS, work is None
        runner.begun_ns, runner.last_ns = (now - since) * MS if busy else None, now * MS
        each = usual if work is None else work
        finishes.append((max(now, now - since + each) if busy else now) + each)
    lanes.deal(frame_of(0))
    dealt = [place for place, runner in enumerate(lanes._runners) if runner.waiting is not None]
    quick = [
        place
        for place, (work, _, _) in enumerate(plan)
        if work is None or work * MS <= SLOWEST * min(known) * MS + LATE_GRACE_NS
    ]  # fmt: skip
    sure = [place for place in quick if plan[place][0] is not None or not plan[place][1]]  # a busy one that nobody knows comes last
    assert len(dealt) == 1
    assert dealt[0] in (sure or quick)
    assert finishes[dealt[0]] == pytest.approx(min(finishes[place] for place in sure or quick))
    lanes.end()


def test_the_first_frame_of_a_lane_says_nothing_of_its_speed() -> None:
    lanes = lanes_of(1)
    (runner,) = lanes._runners
    runner.learn(2_000 * MS, 0)
    assert runner.work_ns is None
    for _ in range(60):
        runner.learn(10 * MS, 0)
    assert runner.work_ns == pytest.approx(10 * MS)
    lanes.end()


def test_one_frame_that_was_held_up_says_nothing_of_a_lane_and_two_do() -> None:
    lanes = lanes_of(1)
    (runner,) = lanes._runners
    for spent_ms in (500, 20, 20, 20, 400):
        runner.learn(spent_ms * MS, 0)
    assert runner.work_ns == pytest.approx(20 * MS)
    runner.learn(400 * MS, 0)
    assert runner.work_ns == 400 * MS
    lanes.end()


def shown_in(seconds: float, works_ms: Sequence[float], jitter: Sequence[float], track_ms: float = 2.0) -> list[int]:
    """Numbers of the frames that lanes of these speeds show."""
    return [seq for seq, _ in shows(seconds, works_ms, jitter, track_ms)]


def shows(
    seconds: float, works_ms: Sequence[float], jitter: Sequence[float] = (0,), track_ms: float = 2.0, first_ms: Sequence[float] = ()
) -> list[tuple[int, float]]:
    """Number and time (ms) of the frames that lanes of these speeds show, on a clock of numbers: the threads' own steps, one after the
    other. ``first_ms``: how much longer each lane takes for its first frame."""
    lanes = lanes_of(len(works_ms))
    clock, under_way = lanes._clock, {}
    shown: list[tuple[int, float]] = []
    assert isinstance(clock, ManualClock)
    colder = list(first_ms or [0] * len(works_ms))
    tracked_ns, seq = 0, 0
    while clock.now_ns() < seconds * 1e9:
        clock.advance(MS // 2)
        now_ns = clock.now_ns()
        for runner, done_ns in list(under_way.items()):
            if now_ns >= done_ns:
                del under_way[runner]
                lanes._bring(runner, True)
        for runner in lanes._runners:
            if runner.waiting is not None and runner not in under_way:
                frame = lanes._next(runner)
                assert frame is not None
                spent_ms = works_ms[runner.number] * (1 + jitter[frame.seq % len(jitter)]) + colder[runner.number]
                colder[runner.number] = 0
                under_way[runner] = now_ns + round(spent_ms * MS)
        while (out := lanes._order.next(now_ns)) is not None:
            shown.append((out.seq, now_ns / MS))
        if tracked_ns and now_ns >= tracked_ns:
            lanes.deal(Frame(np.zeros((2, 2, 3), np.uint8), seq, tracked_ns - round(track_ms * MS)))
            seq, tracked_ns = seq + 1, 0
        elif not tracked_ns and lanes._wanted_in_ns(0) == 0:
            tracked_ns = now_ns + round(track_ms * MS)
    lanes.end()
    return shown


@given(st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=7), st.integers(12, 60))
@settings(deadline=None, max_examples=20)
def test_two_lanes_show_almost_twice_as_many_frames_in_order_and_none_late(jitter: list[float], work_ms: int) -> None:
    one, two = shown_in(6, [work_ms], jitter), shown_in(6, [work_ms] * 2, jitter)
    assert two == list(range(len(two)))
    assert len(two) >= 1.9 * len(one)


def test_a_slow_lane_beside_a_quick_one_takes_what_the_quick_one_cannot() -> None:
    alone, both = shown_in(6, [20], [0]), shown_in(6, [20, 60], [0])
    assert both == sorted(both)
    assert len(both) > 1.2 * len(alone)


@pytest.mark.parametrize("slow_ms", [120, 300, 1000])
def test_a_lane_that_is_too_slow_does_not_hold_up_the_quick_one(slow_ms: int) -> None:
    """But for the frame that finds it out, and one when that is forgotten."""
    alone, both = shown_in(15, [20], [0]), shown_in(15, [20, slow_ms], [0])
    assert both == sorted(both)
    assert len(both) > 0.9 * len(alone)


@given(st.lists(st.tuples(st.integers(5, 40), st.integers(0, 1900)), min_size=2, max_size=4))
@settings(deadline=None, max_examples=30)
def test_lanes_of_unknown_speed_hold_nobody_longer_than_the_budget(lanes: list[tuple[int, int]]) -> None:
    """Each lane: what it takes for a frame, and how much longer for its first one, which loads kernels."""
    works_ms, first_ms = zip(*lanes, strict=True)
    shown = shows(4, works_ms, first_ms=first_ms)
    times = [at_ms for _, at_ms in shown]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    budget_ms = 100
    assert [seq for seq, _ in shown] == sorted({seq for seq, _ in shown})
    assert times[0] <= min(work + first for work, first in lanes) + budget_ms + 5
    assert max(gaps) <= budget_ms + max(works_ms) + 5
    alone = max((4000 - first - work - budget_ms) / (work + 2) for work, first in lanes)
    assert len(shown) >= 0.8 * alone, "as many as the best one alone, from its first frame on"


def test_a_lane_that_nobody_knows_gets_one_frame_at_a_time() -> None:
    lanes = lanes_of(2)
    first, second = lanes._runners
    for seq in range(2):
        lanes.deal(frame_of(seq))
    assert (first.waiting, second.waiting) != (None, None)
    for runner in lanes._runners:
        lanes._next(runner)
    for seq in range(2, 5):
        assert lanes._wanted_in_ns(1) is None
        lanes._clock.advance(10 * MS)  # type: ignore[attr-defined]
        lanes._bring(first, True)
        lanes.deal(frame_of(seq))
        assert lanes._next(first) is not None
    lanes.deal(frame_of(5))
    assert first.waiting is not None, "known by now, though it works"
    assert second.waiting is None
    for runner in lanes._runners:
        runner.working = runner.waiting = None
    lanes.end()


# --- finding faces beside the work on the frame before ---


class Asked(Scripted):
    """Says when it is asked for the faces of each picture."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = [threading.Event() for _ in range(40)]

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        self.asked[captured_ns // (10 * MS)].set()
        return super().update(image, captured_ns)


class Filed(Grey):
    """Pictures whose time of capture tells their number."""

    def grab(self) -> Grab | None:
        found = super().grab()
        return None if found is None else Grab(found.media_ns, found.media_ns)


@pytest.mark.parametrize("count", [1, 2])
def test_the_faces_of_the_next_picture_are_found_beside_the_work_on_this_one(count: int) -> None:
    """Each work ends only when the faces of the next picture were asked for, with a lane whose order of work is proven from its calls."""
    tracker, met = Asked(), []

    def meet(captured_ns: int) -> None:
        number = captured_ns // (10 * MS)
        if 8 <= number < 36:
            met.append(tracker.asked[number + 1].wait(20))

    clock, metrics, sink = MonotonicClock(), Metrics(), Keeping()
    devices = [CheckingDevice(HostDevice()) for _ in range(count)]
    lanes, looks = [Lane(device, clock) for device in devices], [worn(Painting(meet)) for _ in devices]
    line = Line(Filed(40, clock), Tracking(tracker, metrics, clock), lanes, [sink], looks, clock, metrics, AudioBus())
    line.start()
    assert line.wait(120)
    line.close()
    line.join()
    assert line.error is None
    assert len(met) == 28
    assert all(met)
    assert sink.seqs == list(range(40))
    assert {frame.synchronisations for device in devices for frame in device.frames} == {1}


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 80))
def test_a_frame_is_wanted_when_its_faces_will_be_found_by_the_time_a_lane_is_free(lead_ms: int, work_ms: int, since_ms: int) -> None:
    lanes = lanes_of(1)
    (runner,) = lanes._runners
    clock = lanes._clock
    assert isinstance(clock, ManualClock)
    assert lanes._wanted_in_ns(lead_ms * MS) == 0, "nothing is worked on"
    runner.learn(1, 0)
    runner.learn(work_ms * MS, 0)
    lanes.deal(frame_of(0))
    assert lanes._wanted_in_ns(lead_ms * MS) is None, "one waits already"
    lanes._next(runner)
    clock.advance(since_ms * MS)
    left_ms = work_ms * 0.5 ** (since_ms / 1000 / FORGET_S) - since_ms
    wanted = lanes._wanted_in_ns(lead_ms * MS)
    if lead_ms == 0:
        assert wanted is None
    else:
        assert wanted == pytest.approx(max(0, left_ms - lead_ms) * MS, abs=2)
    runner.working = None
    lanes.end()


# --- the line over several lanes ---


@pytest.mark.parametrize("kind", ["host", "simulated", "checking"])
def test_lanes_of_any_speed_keep_the_order(kind: str) -> None:
    times = [{"compute": 4.0}, {"compute": 9.0}, {"compute": 1.0}]
    made: dict[str, Callable[[dict[str, float]], Device]] = {
        "host": lambda _: HostDevice(),
        "simulated": SimulatedDevice,
        "checking": lambda which: CheckingDevice(SimulatedDevice(which)),
    }
    devices = [made[kind](which) for which in times]
    with running(devices, [worn(Painting()) for _ in devices], frames=60) as (line, _, sink):
        assert line.wait(60)
    assert line.error is None
    assert all((middle == WORN).all() for middle in sink.middles)
    facts = line.lanes.facts()
    assert sum(lane["frames"] for lane in facts.values()) == len(sink.seqs)
    if kind == "checking":
        for device in devices:
            assert isinstance(device, CheckingDevice)
            assert {count.synchronisations for count in device.frames} <= {1}


def test_a_frame_that_is_late_is_dropped_and_counted_and_the_others_go_on() -> None:
    gate, held = threading.Event(), threading.Event()

    def hold(captured_ns: int) -> None:
        if not held.is_set():
            held.set()
            gate.wait()

    look = [worn(Painting(hold)), worn(Painting())]
    with running([SimulatedDevice({}, "slow"), SimulatedDevice({}, "quick")], look) as (line, metrics, sink):
        until(line, held.is_set)
        seen = len(sink.seqs)
        until(line, lambda: len(sink.seqs) > seen + 20)
        assert "late" not in metrics.snapshot().dropped
        gate.set()
        until(line, lambda: metrics.snapshot().dropped.get("late", 0) == 1)


def failing(times: int, *, after: int = 3) -> Callable[[int], None]:
    calls = iter(range(1 << 30))

    def fail(captured_ns: int) -> None:
        if after <= next(calls) < after + times:
            raise DeviceError("the card fell off")

    return fail


def test_a_lane_that_fails_is_taken_out_the_others_go_on_and_it_comes_back() -> None:
    devices = [SimulatedDevice({"compute": 5.0}, "one"), SimulatedDevice({"compute": 5.0}, "two")]
    with running(devices, [worn(Painting(failing(1))), worn(Painting())]) as (line, metrics, sink):
        until(line, lambda: line.lanes.facts()["one"]["failures"] == 1)
        seen = len(sink.seqs)
        until(line, lambda: len(sink.seqs) > seen + 5)
        said = line.lanes.facts()["one"]
        assert (said["state"], said["error"]) == ("retrying", "the card fell off")
        done = said["frames"]
        until(line, lambda: line.lanes.facts()["one"]["frames"] > done)
        assert metrics.snapshot().dropped["lane:one"] == 1
        assert line.lanes.facts()["one"]["state"] == "on"
    assert line.error is None
    assert all((middle == WORN).all() for middle in sink.middles), "what it failed on is not shown half done"


def test_with_all_lanes_gone_the_line_ends_and_says_which_failed_with_what() -> None:
    devices = [SimulatedDevice({"compute": 5.0}, "one"), SimulatedDevice({"compute": 5.0}, "two")]
    with running(devices, [worn(Painting(failing(1000))), worn(Painting(failing(1000)))]) as (line, _, _):
        assert line.wait(60)
    assert isinstance(line.error, LaneError)
    assert str(line.error) == "no device is left to work on pictures: one: the card fell off; two: the card fell off"


def test_the_only_lane_s_error_is_the_line_s() -> None:
    with running([HostDevice()], [worn(Painting(failing(1000)))]) as (line, _, _):
        assert line.wait(60)
    assert isinstance(line.error, DeviceError)
    assert str(line.error) == "the card fell off"


@given(st.integers(0, 60), st.integers(0, 1))
@settings(deadline=None, max_examples=12)
def test_whichever_call_fails_on_one_of_two_lanes_every_frame_is_shown_or_counted(number: int, which: int) -> None:
    number += 3 + (16 if which == 0 else 0)  # streams, and the slots, which the first device makes
    devices = [CheckingDevice(SimulatedDevice({}, str(place)), fail_at=number if place == which else None) for place in range(2)]
    with running(devices, [Look(), Look()], frames=12) as (line, _, _):
        assert line.wait(60)
    facts = line.lanes.facts()
    other = f"checking:{1 - which}"
    assert facts[other].get("error") is None
    assert line.error is None or f"call {number}," in str(line.error)  # only where it failed to close


@pytest.mark.parametrize("lost", [FaceState.HELD, FaceState.LOST])
def test_freeze_shows_the_last_good_picture_of_whichever_lane_and_never_the_face(lost: FaceState) -> None:
    """Each of five pictures in a row without the face, on lanes of different speed."""
    tracker = Scripted(lambda number: lost if number % 10 > 5 else FaceState.SEEN)
    devices = [SimulatedDevice({"compute": 7.0}), SimulatedDevice({"compute": 2.0})]
    looks = [worn(Painting(), on_lost=OnLost.FREEZE) for _ in devices]
    with running(devices, looks, frames=60, tracker=tracker) as (line, _, sink):
        assert line.wait(60)
    assert any(sink.repeated)
    assert not all(sink.repeated)
    good = None
    for middle, repeated in zip(sink.middles, sink.repeated, strict=True):
        assert (middle == WORN).all()
        if repeated:
            assert np.array_equal(middle, good), "the last good one, in order"
        good = middle


class Witnessing(Paired):
    """Keeps the middle of every frame as it was filmed and as it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def compare(self, before: np.ndarray, frame: Frame) -> None:
        self.seen[frame.seq] = (before[MIDDLE], frame.pixels[MIDDLE].copy())


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_witness_sees_what_was_filmed_and_what_is_shown(lanes: int) -> None:
    """Also of frames for which the freeze policy shows another one: not the blurred face that a lane made of it."""
    tracker = Scripted(lambda number: FaceState.LOST if number % 10 > 5 else FaceState.SEEN)
    devices = [SimulatedDevice({"compute": float(3 * number)}) for number in range(lanes)]
    looks, witness = [worn(Painting(), on_lost=OnLost.FREEZE) for _ in devices], Witnessing()
    with running(devices, looks, frames=40, tracker=tracker, witness=witness) as (line, _, sink):
        assert line.wait(60)
    assert any(sink.repeated)
    assert list(witness.seen) == sink.seqs
    for (before, after), shown in zip(witness.seen.values(), sink.middles, strict=True):
        assert (before == 90).all()
        assert np.array_equal(after, shown)
        assert (after == WORN).all()


class Losing(Keeping):
    """A sink that may lose frames."""

    lossless = False


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_what_several_lanes_let_go_at_once_is_not_lost_before_a_sink(lanes: int) -> None:
    """The first of them was waited for: the others are done by then. One for each lane waits; then the latest win."""
    clock, metrics, sink = MonotonicClock(), Metrics(), Losing()
    runner = SinkRunner(sink, clock, metrics, lambda: None, lanes)
    for seq in range(lanes):
        runner.offer(frame_of(seq))
    assert "sink:keeping" not in metrics.snapshot().dropped
    runner.offer(frame_of(lanes))
    assert metrics.snapshot().dropped["sink:keeping"] == 1
    runner.start(VideoFormat(160, 90, 30))
    runner.end()
    assert runner.join(30)
    assert sink.seqs == list(range(1, lanes + 1))
    assert runner.slots_needed == lanes + 1


# --- anything may fail ---


class FailsAt:
    """Calls through to methods of others; the one with this number, counted over all of them, raises."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.failed = ""
        self._calls = 0
        self._lock = threading.Lock()

    def of(self, whole: Any, *names: str) -> Any:
        for name in names:
            setattr(whole, name, self._failing(name, getattr(whole, name)))
        return whole

    def _failing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            with self._lock:
                number, self._calls = self._calls, self._calls + 1
            if number == self.number:
                self.failed = " < ".join(step.name for step in traceback.extract_stack()[-6:-1])
                raise ZeroDivisionError(f"{name} failed as it was asked to")
            return call(*args, **named)

        return counted


@pytest.mark.parametrize("number", range(0, 160, 2))
def test_whatever_fails_the_line_ends_with_its_cause_and_no_slot_or_thread_is_left(number: int) -> None:
    """Clock, numbers, wardrobe and lanes; every other time the first lane fails at its third frame too, so that it is taken out."""
    count, fails_anyway = 1 + number % 3, number % 4 == 0
    fails, clock, metrics, sink = FailsAt(number), MonotonicClock(), Metrics(), Keeping()
    lanes = [Lane(SimulatedDevice({}, str(place)), clock) for place in range(count)]
    looks = [worn(Painting(failing(1, after=2) if fails_anyway and not place else lambda _: None)) for place in range(count)]
    tracking = Tracking(Scripted(), Metrics(), MonotonicClock())
    line = Line(Grey(8, MonotonicClock()), tracking, lanes, [sink], looks, clock, metrics, AudioBus())
    for lane in lanes:
        fails.of(lane, "process", "open", "close", "settle")
    fails.of(clock, "now_ns", "wait_until")
    fails.of(metrics, "drop", "give_up", "count", "stages")
    fails.of(line._wardrobe, "worn")
    fails.of(line.economy, "look")
    with suppress(ZeroDivisionError):  # it is the line's error, too
        line.start()
    assert line.wait(60)
    line.close()
    line.join()
    assert sink.seqs == sorted(set(sink.seqs))
    assert line._ring is None or line._ring.free == len(line._ring), fails.failed
    known = [line.error, *(runner.error for runner in line.lanes._runners), *(runner.error for runner in line.runners)]
    fell_off = fails_anyway and (line.error is not None or "_close" in fails.failed)  # of a lane's or a line's errors the first is told
    assert not fails.failed or fell_off or any("failed as it was asked to" in str(error) for error in known), fails.failed
    assert all(runner.error is not None for runner in line.lanes._runners if runner.failures)


def test_a_replaced_look_is_released_when_no_lane_works_with_it() -> None:
    gate, inside = threading.Event(), threading.Event()

    def hold(captured_ns: int) -> None:
        inside.set()
        gate.wait()

    with running([SimulatedDevice({}, "one"), SimulatedDevice({}, "two")], [worn(Painting(hold)), worn(Painting())]) as (line, _, _):
        until(line, inside.is_set)
        released = line.update(worn(Painting()), worn(Painting()))
        assert not released.is_set()
        again = line.update(worn(Painting()), worn(Painting()))
        assert not again.is_set()
        gate.set()
        assert released.wait(30)
        assert again.wait(30)
    assert line.update(Look()).is_set(), "nobody works any more"


# --- memory ---


def test_without_memory_a_lane_gives_up_the_written_steps_and_goes_on_while_the_other_keeps_its_look() -> None:
    """The small device has room for one face of the smaller swap; both lanes are asked for three of the larger, and to enhance them."""
    small = SimulatedDevice({"compute": 1.0}, "small", memory_bytes=1000 * MB)
    large = SimulatedDevice({"compute": 1.0}, "large", memory_bytes=9000 * MB)

    def look(device: SimulatedDevice) -> Look:
        return Look(Hungry(device, 1100 * MB, Hungry(device, 400 * MB)), "white", faces=3, enhancer=Enhancing())

    with running([small, large], [look(small), look(large)], tracker=Scripted(faces=3)) as (line, metrics, _):
        until(line, lambda: len(line.economy.changes) == 3)
        seen = line.lanes.facts()["small"]["frames"]
        until(line, lambda: line.lanes.facts()["small"]["frames"] > seen + 3)
        assert metrics.snapshot().dropped["lane:small"] == 3
        assert line.economy.look(1).enhancer is not None
        assert line.economy.look(1).faces == 3
    assert [change.step for change in line.economy.changes] == list(MEMORY_STEPS)
    assert all("small: " in change.why and "are left" in change.why for change in line.economy.changes)
    assert line.error is None
    assert line.lanes.facts()["small"]["failures"] == 0


def test_where_nothing_is_left_to_give_up_the_line_says_what_to_do() -> None:
    def full(captured_ns: int) -> None:
        raise DeviceMemoryError("12 MB were asked for")

    with running([HostDevice()], [worn(Painting(full))]) as (line, _, _):
        assert line.wait(60)
    assert isinstance(line.error, DeviceMemoryError)
    assert "host has no memory left and nothing more of the look to give up (12 MB were asked for); close other programs" in str(line.error)


class Pinning(HostDevice):
    """As a GPU: has memory of its own kind for slots."""

    pins = True

    def __init__(self) -> None:
        self.pinned_shapes: list[tuple[int, ...]] = []

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        self.pinned_shapes.append(shape)
        return super().pinned(shape)


@pytest.mark.parametrize("place", [0, 1])
def test_slots_are_page_locked_wherever_the_gpu_stands_among_the_lanes(place: int) -> None:
    devices: list[Device] = [HostDevice()]
    devices.insert(place, gpu := Pinning())
    with running(devices, [Look(), Look()], frames=3) as (line, _, _):
        assert line.wait(60)
    assert line._ring is not None
    assert gpu.pinned_shapes == [(90, 160, 3)] * len(line._ring)


# --- what is measured ---


def test_stage_times_idle_share_and_bytes_are_the_device_s() -> None:
    """4 ms for each step, swap and hide, whatever the host takes for them; one picture up and one down."""
    with running([SimulatedDevice({"compute": 4.0}, "one")], [worn(Painting())], frames=30) as (line, metrics, _):
        assert line.wait(60)
    stages = metrics.snapshot().stages_ms
    assert stages["swap"]["p50"] >= 4  # it may begin a little after the device was ready
    assert stages["hide"]["p50"] >= 4
    facts = line.lanes.facts()["one"]
    assert (facts["bytes_up"], facts["bytes_down"]) == (160 * 90 * 3,) * 2
    assert 0 <= facts["idle_share"] < 1


def test_the_processor_moves_no_bytes() -> None:
    with running([HostDevice()], [worn(Painting())], frames=10) as (line, _, _):
        assert line.wait(60)
    facts = line.lanes.facts()["host"]
    assert (facts["bytes_up"], facts["bytes_down"]) == (0, 0)

"""Several lanes at once, each on a thread of its own: a frame goes to the lane that will finish it first, and out in the order it came in.

A lane that fails is taken out, and tried again with growing pauses. The frame that it failed on is lost and counted, since nobody knows
what its pixels are; the one that waits for it goes to another lane.
"""

from __future__ import annotations

import logging
import statistics
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import Any

from engines.errors import DeviceMemoryError
from rt import order
from rt.clock import Clock
from rt.delivery import Delivery
from rt.errors import LaneError
from rt.frame import Frame, Place
from rt.lane import Lane
from rt.metrics import Metrics
from rt.options import Look
from rt.ring import Closed
from rt.wardrobe import Wardrobe

log = logging.getLogger(__name__)

BACK_OFF_S = (1, 2, 4, 8, 16, 30)
"""Seconds between one try of a lane that failed and the next; the last is repeated."""

WEIGHT = 0.2
"""Share of the newest frames in what is known of a lane's speed: five frames make up most of it."""

LATE_FACTOR, LATE_GRACE_NS = 2, 30_000_000
"""A frame is late when it takes more than so many times what was expected of it, and so much longer: a picture at 30 fps."""

SLOWEST = 3
"""A lane that takes more than so many times what the quickest takes, and a picture longer, gets no frames: the others would wait for it."""

FORGET_S = 10.0
"""A lane without frames counts as half as slow after so long: what held it up may be over, and one frame will tell."""

IN_FLIGHT = 2
"""Frames for each lane between dealing and showing: one that is worked on, and one that waits for its turn."""

END_S = 15.0
"""How long a lane has to finish its last frame, before it is left behind."""


class LaneState(StrEnum):
    """What a person is told of a lane."""

    ON = "on"
    RETRYING = "retrying"
    """It failed, and gets no frames until it is tried again."""
    CLOSED = "closed"


class LaneRunner:
    """One lane. Its fields are guarded by the lock of ``Lanes``, but for those that say otherwise."""

    def __init__(self, lane: Lane, number: int, name: str) -> None:
        self.lane = lane
        self.number = number
        self.name = name
        """``cuda:0``; a second lane on a device is ``cpu 2``."""
        self.state = LaneState.ON
        self.error: Exception | None = None
        """The last it failed with."""
        self.frames = 0
        self.failures = 0
        self.tries = 0
        """In a row that failed."""
        self.is_fresh = True
        """It was opened and has done nothing yet: its first frame loads kernels and says nothing of the others."""
        self.work_ns: float | None = None
        """What a frame takes, by those that were done; None while nobody knows."""
        self.spent_ns: deque[int] = deque(maxlen=3)
        """What the last took. One that was held up by something else says nothing of the lane: the one in the middle counts."""
        self.first_ns: int | None = None
        """When it began with the first frame."""
        self.last_ns = 0
        """When the last was done."""
        self.begun_ns: int | None = None
        """When it began with the frame it works on; None while it has none."""
        self.working: Frame | None = None
        """That frame, whose slot is the lane's until it is brought back or lost."""
        self.waiting: Frame | None = None
        """A frame that was dealt to it and that it did not begin with yet."""
        self.thread: threading.Thread | None = None  # of the thread that starts and ends the lanes

    @property
    def has_room(self) -> bool:
        return self.state is LaneState.ON and self.waiting is None

    @property
    def is_idle(self) -> bool:
        return self.has_room and self.begun_ns is None

    @property
    def is_known(self) -> bool:
        """Whether anybody can say when it will be done: not before it has done two frames, also after it was opened again."""
        return self.work_ns is not None and not self.is_fresh

    def expected_ns(self, now_ns: int, usual_ns: float) -> float:
        """What a frame takes, half of it for every ``FORGET_S`` since the last one. ``usual_ns``: while nobody knows."""
        return usual_ns if self.work_ns is None else self.work_ns * 0.5 ** ((now_ns - self.last_ns) / 1e9 / FORGET_S)

    def finish_ns(self, now_ns: int, usual_ns: float) -> int:
        """When it would be done with a frame that it is dealt now."""
        work_ns = self.expected_ns(now_ns, usual_ns)
        begin_ns = now_ns if self.begun_ns is None else max(now_ns, round(self.begun_ns + work_ns))
        return round(begin_ns + work_ns)

    def free_in_ns(self, now_ns: int, lead_ns: int) -> int:
        """How long until it has ``lead_ns`` of its work left; of one that is known and works."""
        assert self.begun_ns is not None
        return max(0, round(self.begun_ns + self.expected_ns(now_ns, 0.0)) - lead_ns - now_ns)

    def learn(self, spent_ns: int, now_ns: int) -> None:
        """A frame is done, and took so long."""
        self.last_ns = now_ns
        self.frames, self.tries = self.frames + 1, 0
        if self.is_fresh:
            self.is_fresh = False
            return
        self.spent_ns.append(spent_ns)
        usual_ns = statistics.median_low(self.spent_ns)
        if self.work_ns is None or usual_ns > LATE_FACTOR * self.work_ns:
            self.work_ns = usual_ns  # whatever it is, it is not what it was
        else:
            self.work_ns += WEIGHT * (usual_ns - self.work_ns)

    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        said = {} if self.error is None else {"error": str(self.error)}
        return {"state": str(self.state), "frames": self.frames, "failures": self.failures, **self._measured(), **said}

    def _measured(self) -> dict[str, Any]:
        """``idle_share``: of the device, from its first frame to its last; bytes are of pictures, for each frame."""
        done = self.lane.count
        speed = {} if self.work_ns is None else {"ms_per_frame": round(self.work_ns / 1e6, 3)}
        if not done.frames or self.first_ns is None or self.last_ns <= self.first_ns:
            return speed
        idle_share = round(max(0.0, 1 - done.busy_ns / (self.last_ns - self.first_ns)), 4)
        moved = {"bytes_up": done.bytes_up // done.frames, "bytes_down": done.bytes_down // done.frames}
        return {**speed, "idle_share": idle_share, **moved}


class Lanes:
    """``start``, ``wait_for_room``, ``deal`` and ``end`` belong to one thread, ``take`` to another; the rest is any thread's."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        wardrobe: Wardrobe,
        clock: Clock,
        metrics: Metrics,
        broken: Callable[[], None],
        *,
        waits: bool = False,
        budget_ns: int = 100_000_000,
        delivery: Callable[[Place | None], Delivery] = lambda place: Delivery(),
    ) -> None:
        """``broken``: called on a lane's thread when none is left. ``waits``: no frame is ever too late, since nobody watches.

        ``budget_ns``: how old a picture may become while the order waits for a lane whose speed nobody knows yet.
        ``delivery``: what is wanted of a picture by then; asked by every lane's thread before each, with the place where it leaves it.
        """
        self.error: Exception | None = None
        """Why no lane is left, or what the first one failed with that could not be closed."""
        self._wardrobe = wardrobe
        self._clock = clock
        self._metrics = metrics
        self._broken = broken
        self._waits = waits
        self._delivery = delivery
        self._budget_ns = budget_ns
        self._changed = threading.Condition()
        self._order = order.Sequence()  # guarded by _changed, as is all below
        self._ending = False
        self._ended = False
        self._is_abandoned = False
        self._hurry = threading.Event()
        names = [lane.name for lane in lanes]
        self._runners = tuple(LaneRunner(lane, number, _numbered(names, number)) for number, lane in enumerate(lanes))

    def start(self) -> None:
        for runner in self._runners:
            thread = threading.Thread(target=self._run, args=(runner,), name=f"lane-{runner.name}", daemon=True)
            thread.start()
            runner.thread = thread

    @property
    def slots_needed(self) -> int:
        """Frames that may be here at once."""
        return IN_FLIGHT * len(self._runners)

    def wait_for_room(self, lead_ns: int = 0) -> None:
        """Blocks until a frame that is taken now, and dealt in ``lead_ns``, is begun with at once then, as far as anybody knows.

        So what is done before it is dealt is done while a lane works on the one before it. Raises ``Closed`` when no lane is left.
        """
        with self._changed:
            while not self._is_over:
                wait_ns = self._wanted_in_ns(lead_ns)
                if wait_ns == 0:
                    return
                self._changed.wait(None if wait_ns is None else wait_ns / 1e9)
            raise Closed

    def deal(self, frame: Frame) -> None:
        """Gives ``frame`` to the lane that will finish it first. Takes its slot over, but for where it raises."""
        with self._changed:
            now_ns = self._clock.now_ns()
            runner = None if self._is_over else self._first_to_finish(now_ns)
            if runner is None:
                self._lose(frame, "lanes")
                return
            self._order.expect(frame.seq, self._deadline_ns(runner, frame, now_ns))
            runner.waiting = frame
            self._changed.notify_all()

    def take(self) -> Frame:
        """Blocks until the next frame in order is done; its slot is the caller's. Raises ``Closed`` when none will ever come."""
        with self._changed:
            while (frame := self._order.next(self._clock.now_ns())) is None:
                if self._ended:
                    raise Closed
                wait_ns = self._order.wait_ns(self._clock.now_ns())
                self._changed.wait(None if wait_ns is None else wait_ns / 1e9)
            self._changed.notify_all()  # there is room for another
            return frame

    def end(self) -> None:
        """Nothing more is dealt. Returns when every lane has finished and is closed, or has had its time."""
        with self._changed:
            self._ending = True
            self._hurry.set()
            self._changed.notify_all()
        try:
            with ExitStack() as stack:  # every one, also where another one's end fails
                for runner in reversed(self._runners):
                    stack.callback(self._end, runner)
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def abandon(self) -> None:
        """Nobody takes any more: what is done is let go of, and no further frame is wanted."""
        with self._changed:
            self._is_abandoned = True
            for frame in self._order.clear():
                self._lose(frame, "lanes")
            self._changed.notify_all()

    def facts(self) -> dict[str, Any]:
        """JSON-ready, by the lane's name."""
        with self._changed:
            return {runner.name: runner.facts() for runner in self._runners}

    # --- dealing; all with the lock held ---

    @property
    def _is_over(self) -> bool:
        return self.error is not None or self._is_abandoned

    def _wanted_in_ns(self, lead_ns: int) -> int | None:
        """When another frame is wanted, from now; None where only something that happens will tell."""
        if len(self._order) >= self.slots_needed:
            return None
        now_ns = self._clock.now_ns()
        with_room = [runner for runner in self._quick(now_ns) if runner.has_room]
        if any(runner.is_idle for runner in with_room):
            return 0
        return min((runner.free_in_ns(now_ns, lead_ns) for runner in with_room if runner.is_known and lead_ns), default=None)

    def _quick(self, now_ns: int) -> list[LaneRunner]:
        """Those in service but for the ones that are too slow beside the others."""
        on = [runner for runner in self._runners if runner.state is LaneState.ON]
        limit_ns = SLOWEST * self._quickest_ns() + LATE_GRACE_NS
        return [runner for runner in on if runner.expected_ns(now_ns, 0.0) <= limit_ns]

    def _quickest_ns(self) -> float:
        return min((one.work_ns for one in self._runners if one.state is LaneState.ON and one.work_ns is not None), default=0.0)

    def _first_to_finish(self, now_ns: int) -> LaneRunner | None:
        """Of those as quick the one that has done least. One that works and is not known gets another frame only where nobody else can."""
        usual_ns = self._usual_ns() or 0.0

        def rank(one: LaneRunner) -> tuple[bool, int, bool, int]:
            return not (one.is_known or one.is_idle), one.finish_ns(now_ns, usual_ns), not one.is_idle, one.frames

        return min((runner for runner in self._quick(now_ns) if runner.has_room), key=rank, default=None)

    def _usual_ns(self) -> float | None:
        known = [runner.work_ns for runner in self._runners if runner.work_ns is not None]
        return sum(known) / len(known) if known else None

    def _deadline_ns(self, runner: LaneRunner, frame: Frame, now_ns: int) -> int | None:
        if self._waits:
            return None
        usual_ns = self._usual_ns()
        if usual_ns is None or runner.is_fresh:  # its first one loads kernels: those behind it wait as long as they stay young
            return max(now_ns + LATE_GRACE_NS, frame.captured_ns + self._budget_ns)
        waits_ns = runner.finish_ns(now_ns, usual_ns) - now_ns
        most_ns = SLOWEST * (self._quickest_ns() or usual_ns)
        return now_ns + round(LATE_FACTOR * min(max(waits_ns, runner.work_ns or 0), most_ns)) + LATE_GRACE_NS

    def _lose(self, frame: Frame, place: str) -> None:
        """Changes nothing where it raises."""
        self._metrics.drop(place, self._clock.now_ns())
        self._order.give_up(frame.seq)
        if frame.slot is not None:
            frame.slot.release()
        self._changed.notify_all()

    # --- a lane's thread ---

    def _run(self, runner: LaneRunner) -> None:
        try:
            while not self._serve(runner) and self._open_again(runner):
                pass
        except Exception as error:  # not the lane's: what is asked of the clock and the numbers, say
            log.exception("the lane %s broke unexpectedly", runner.name)
            self._break(error)

    def _serve(self, runner: LaneRunner) -> bool:
        """Works until the end, and is True then. False where anything failed: the lane is taken out and closed, its frame is lost."""
        try:
            while (frame := self._next(runner)) is not None:
                self._bring(runner, self._work(runner, frame))
        except Exception as error:
            log.debug("the lane %s failed", runner.name, exc_info=True)
            self._take_out(runner, error)
            self._close(runner)  # the pixels of its frame may be written to until then
            self._lose_all(runner)
            self._end_if_none_is_left()
            return False
        return True

    def _bring(self, runner: LaneRunner, done: bool) -> None:
        """Hands on the frame that the lane works on, or loses it."""
        with self._changed:
            now_ns = self._clock.now_ns()
            if done:
                runner.learn(now_ns - (runner.begun_ns or 0), now_ns)
            assert runner.working is not None
            if not done or not self._order.arrive(runner.working):
                self._lose(runner.working, "late" if done else f"lane:{runner.name}")
            runner.working = runner.begun_ns = None
            self._changed.notify_all()

    def _next(self, runner: LaneRunner) -> Frame | None:
        with self._changed:
            self._changed.wait_for(lambda: runner.waiting is not None or self._ending)
            if runner.waiting is not None:
                runner.begun_ns = self._clock.now_ns()
                runner.first_ns = runner.begun_ns if runner.first_ns is None else runner.first_ns
                self._changed.notify_all()  # there is room for another behind it
            runner.working, runner.waiting = runner.waiting, None
            return runner.working

    def _work(self, runner: LaneRunner, frame: Frame) -> bool:
        """False where the device had no memory left for it, and has something to do without from now on."""
        self._wardrobe.economy.retry_memory(self._clock.now_ns(), runner.number)
        with self._wardrobe.worn(runner.number) as look:
            self._metrics.give_up(self._wardrobe.economy.given_up)
            try:
                runner.lane.process(frame, look, self._delivery(runner.lane.place))
            except (DeviceMemoryError, MemoryError) as error:
                runner.lane.settle()
                self._spare_memory(runner, look, error)
                return False
        return True

    def _spare_memory(self, runner: LaneRunner, look: Look, error: DeviceMemoryError | MemoryError) -> None:
        """Raises ``DeviceMemoryError`` where nothing is left to be given up."""
        economy = self._wardrobe.economy
        if economy.spare_memory(f"{runner.name}: {error}", self._clock.now_ns(), runner.number) is None:
            raise DeviceMemoryError(
                f"{runner.name} has no memory left and nothing more of the look to give up ({error});"
                " close other programs that use it, or choose a smaller model or picture"
            ) from error
        if look.enhancer is not None and economy.sets_aside(runner.number, look.enhancer):
            runner.lane.set_aside(look.enhancer)

    def _take_out(self, runner: LaneRunner, error: Exception) -> None:
        """It gets no more frames; one that waits for it goes to another lane, if there is one."""
        with self._changed:
            runner.state, runner.begun_ns = LaneState.RETRYING, None
            runner.error, runner.failures = error, runner.failures + 1
            self._changed.notify_all()
            other = None if runner.waiting is None else self._first_to_finish(self._clock.now_ns())
            if other is not None:
                other.waiting, runner.waiting = runner.waiting, None

    def _lose_all(self, runner: LaneRunner) -> None:
        """What the lane still has. Nothing works on it any more."""
        with self._changed:
            if runner.working is not None:
                self._lose(runner.working, f"lane:{runner.name}")
                runner.working = None
            if runner.waiting is not None:
                self._lose(runner.waiting, f"lane:{runner.name}")
                runner.waiting = None

    def _close(self, runner: LaneRunner) -> None:
        try:
            runner.lane.close()
        except Exception as error:
            log.debug("the lane %s could not be closed in order", runner.name, exc_info=True)
            self._note(runner, error)

    def _end_if_none_is_left(self) -> None:
        with self._changed:
            if any(other.state is LaneState.ON for other in self._runners) or self.error is not None:
                return
            why = self._why_none_is_left()
        self._break(why)

    def _break(self, error: Exception) -> None:
        with self._changed:
            self.error = self.error or error
            self._hurry.set()
            self._changed.notify_all()
        self._broken()

    def _why_none_is_left(self) -> Exception:
        errors = {runner.name: runner.error for runner in self._runners if runner.error is not None}
        if len(self._runners) == 1:
            return next(iter(errors.values()))
        return LaneError("no device is left to work on pictures: " + "; ".join(f"{name}: {error}" for name, error in errors.items()))

    def _open_again(self, runner: LaneRunner) -> bool:
        """True when the lane is in service again, False when the end came first."""
        while True:
            pause_s = BACK_OFF_S[min(runner.tries, len(BACK_OFF_S) - 1)]
            runner.tries += 1
            log.warning("the lane %s failed and gets no frames: %s; next try in %d s", runner.name, runner.error, pause_s)
            if not self._clock.wait_until(self._clock.now_ns() + pause_s * 1_000_000_000, self._hurry):
                return False
            try:
                runner.lane.open()
            except Exception as error:
                with self._changed:
                    runner.error = error
                continue
            with self._changed:
                runner.state, runner.is_fresh = LaneState.ON, True
                self._changed.notify_all()
            log.info("the lane %s is tried again", runner.name)
            return True

    # --- the end ---

    def _end(self, runner: LaneRunner) -> None:
        """On the thread that ends them, one after the other."""
        if runner.thread is not None:
            runner.thread.join(END_S)
        if runner.thread is not None and runner.thread.is_alive():
            log.warning("the lane %s did not end within %g s and is left behind", runner.name, END_S)
            with self._changed:
                for frame in self._order.clear():
                    self._lose(frame, "late")
            return
        self._close(runner)
        with self._changed:
            runner.state = LaneState.CLOSED
        self._lose_all(runner)  # nothing, but where its thread broke

    def _note(self, runner: LaneRunner, error: Exception) -> None:
        with self._changed:
            runner.error = runner.error or error
            if self._ending:
                self.error = self.error or error


def _numbered(names: Sequence[str], place: int) -> str:
    before = names[:place].count(names[place])
    return f"{names[place]} {before + 1}" if before else names[place]

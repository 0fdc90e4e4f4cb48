"""The line: capture → track → lanes → sinks. Here is the whole journey of a frame.

    capture thread ──slot──▶ mailbox ──▶ track thread ──▶ a thread for every lane ──▶ order thread ──▶ a mailbox and a thread for every sink

Before the track thread and every sink stands a mailbox in which the latest wins, of one frame (before a sink of one for each lane, whose
frames come out together when the first of them was waited for): a slow stage builds no queue, and what it cannot take is dropped and
counted. A sink that loses nothing has a deeper one and pushes back. A frame is taken in when a lane will be there for it once its faces
are found, so that they are looked for while the frame before it is worked on.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from rt import timecode
from rt.audio import AudioBus
from rt.budget import BudgetOptions
from rt.capture.contract import Decodes, Grab, Source
from rt.clock import Clock
from rt.compose.lost import LastGood
from rt.delivery import NOTHING, Delivery, ReadsInPlace, wanted_by
from rt.economy import Economy
from rt.errors import RtError, SinkError
from rt.frame import Frame, Place, VideoFormat
from rt.lane import Lane
from rt.lanes import Lanes
from rt.metrics import Metrics
from rt.options import Look
from rt.ring import Closed, Mailbox, Slot, SlotRing
from rt.sinks.contract import Sink
from rt.sinks.runner import SinkRunner, SinkState
from rt.tracking import Tracking
from rt.wardrobe import Wardrobe
from rt.witness import Witness

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

OWN_SLOTS = 3
"""Slots beside those of lanes and sinks: one being filled, one waiting, one kept for the freeze policy."""

ASK_EVERY_NS = 250_000_000
"""How often the age is held against the budget: it is that of a second, so more often says nothing new."""

FIRST_CONTACT_S = 20.0
"""How long a line goes on whose sinks have all failed to open, before it gives up."""


class Line:
    """One running pipeline, once. Any thread may call anything; a second one that starts or closes waits for the first."""

    def __init__(
        self,
        source: Source,
        tracking: Tracking,
        lanes: Sequence[Lane],
        sinks: Sequence[Sink],
        looks: Sequence[Look],
        clock: Clock,
        metrics: Metrics,
        audio: AudioBus,
        *,
        burn_timecode: bool = False,
        budget: BudgetOptions | None = None,
        witness: Witness | None = None,
    ) -> None:
        """``lanes``: one or more, each with a device of its own. ``looks``: one for each, or one where there is one lane: what a look is
        drawn with is no two threads'.

        ``burn_timecode``: capture time is painted into the pictures, for a sink or a receiver to read the age from.

        ``budget``: how old pictures may be before something of the look is given up; None, and an input that waits for us, give up nothing.
        """
        self.error: Exception | None = None
        """Why the line ended, when it ended by itself and not at the end of the input."""
        self.video: VideoFormat | None = None
        """What the source granted; set once started."""
        self._source = source
        self._tracking = tracking
        self.economy = Economy(looks, budget if source.live else None, lanes=len(lanes))
        """The look, as a whole, and what is given up of it; stages take it at the start of a frame."""
        self._wardrobe = Wardrobe(self.economy)
        wanting = [lane for lane in lanes if lane.wants_slots]
        self._slot_memory = (wanting or lanes)[0].slot_memory  # page-locked memory is every device's
        age_ns = round((budget or BudgetOptions()).budget_ms * 1e6)
        self.lanes = Lanes(
            lanes,
            self._wardrobe,
            clock,
            metrics,
            _weakly(self.stop, None),
            waits=not source.live,
            budget_ns=age_ns,
            delivery=_weakly(self._wanted, NOTHING),
        )
        self._places = frozenset(lane.place for lane in lanes if lane.place is not None)
        self._last_good = LastGood()  # order thread
        self._at_once = len(lanes)  # frames that the order may let go in one moment
        self._judged = [sink.name for sink in sinks if not sink.lossless] or [sink.name for sink in sinks]  # one may lag by design
        self._tracked_ns: deque[int] = deque(maxlen=5)  # track thread: what it took of late; the least of it is sure to be needed
        self._ask_ns = 0  # track thread: when the age is looked at next
        self._clock = clock
        self._metrics = metrics
        self._audio = audio
        self._burn_timecode = burn_timecode
        self._life = threading.Lock()  # held while it is started or closed
        self._is_begun = False  # guarded by _life
        self._stop = threading.Event()
        self._opened = threading.Event()
        self._over = threading.Event()
        self._inbox: Mailbox[Frame] = Mailbox(1, lossless=not source.live)
        self._sinks_lock = threading.Lock()
        self._takes_sinks = False  # guarded by _sinks_lock: between start and the end
        self._witness = witness  # told by the track thread and by the order thread
        self.runners: tuple[SinkRunner, ...] = tuple(map(self._runner, sinks))
        """Of the sinks that are fed; guarded by _sinks_lock, replaced as a whole, so any thread may read it."""
        self.retired: tuple[SinkRunner, ...] = ()
        """Of those that were removed while it ran; as ``runners``."""
        self._seq = -1  # capture thread
        self._ring: SlotRing | None = None  # made by the capture thread before _opened is set
        self._started_ns = clock.now_ns()
        self._capture_thread = threading.Thread(target=self._capture, name="capture", daemon=True)
        self._track_thread = threading.Thread(target=self._track, name="track", daemon=True)
        self._order_thread = threading.Thread(target=self._deliver, name="order", daemon=True)

    # --- what others may ask ---

    def start(self) -> None:
        """Returns once the source is open and every thread runs. Raises ``SourceError``; everything is ended and closed then.

        Raises ``RtError`` where it was started before, or closed.
        """
        with self._life:
            if self._is_begun:
                raise RtError("a line was to be started a second time, and runs once; make another")
            self._is_begun = True
            try:
                self._start()
            except BaseException as error:  # raised on
                self._end_half_started(error)
                raise

    def _start(self) -> None:
        self._capture_thread.start()
        self._opened.wait()
        if self.error is not None:
            raise self.error
        assert self.video is not None
        self._started_ns = self._clock.now_ns()
        with self._sinks_lock:
            self._takes_sinks = True
            for runner in self.runners:
                runner.start(self.video)
        self.lanes.start()
        self._order_thread.start()
        self._track_thread.start()

    def _end_half_started(self, error: BaseException) -> None:
        """The track thread, whose last deed is the end of a line, does not run."""
        self.error = self.error or (error if isinstance(error, Exception) else None)
        self._stop.set()
        self._inbox.close()
        if self._capture_thread.ident is not None:
            self._capture_thread.join()
        self._finish([])
        self.join()

    def update(self, *looks: Look) -> threading.Event:
        """Takes effect with the next frame of each lane. What is returned is set once nothing uses the looks before any more."""
        return self._wardrobe.choose(looks)

    def add(self, sink: Sink) -> None:
        """Feeds another sink, from the next frame on. Once started; raises ``SinkError`` where the line has come to its end."""
        runner = self._runner(sink)
        with self._sinks_lock:
            if not self._takes_sinks:
                raise SinkError(f"{sink.name} cannot be switched on: the line is not running; start it first")
            assert self._ring is not None
            assert self.video is not None
            still_writing = (other for other in self.retired if not other.join(0))
            self._ring.grow_to(self._slots((*self.runners, runner, *still_writing)))
            self.runners = (*self.runners, runner)
            runner.start(self.video)

    def remove(self, sink: Sink) -> SinkRunner | None:
        """Feeds ``sink`` no more; what waits for it is still written, on its own thread. None where it is not fed (any more)."""
        with self._sinks_lock:
            runner = next((runner for runner in self.runners if runner.sink is sink), None)
            if runner is None or not self._takes_sinks:
                return None
            self.runners = tuple(other for other in self.runners if other is not runner)
            self.retired = (*self.retired, runner)
        runner.end()
        return runner

    def recent_age_ms(self) -> float | None:
        """What is held against the budget: the 95th percentile of the last second; None where no sink has taken a frame. Any thread."""
        return self._metrics.recent_age_ms(self._judged, self._clock.now_ns())

    def stop(self) -> None:
        """Asks the line to end: nothing more is captured, what is under way is delivered. Returns at once."""
        self._stop.set()
        for runner in self.runners:
            runner.hurry()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the line has come to its end by itself or by ``stop``. True when it has."""
        return self._over.wait(timeout_s)

    def close(self) -> None:
        """Ends the line and waits for its end, whether or not it was started, or asked to end before. It cannot be started any more."""
        self.stop()
        with self._life:
            if not self._is_begun:
                self._is_begun = True
                self._finish([])
        self.wait()

    def join(self, timeout_s: float = 15.0) -> None:
        """Once it has come to its end: waits for every thread, and says which did not end in time."""
        for thread in (self._capture_thread, self._track_thread):
            if thread.ident is not None:
                thread.join(timeout_s)
            if thread.is_alive():
                log.warning("%s did not end within %g s", thread.name, timeout_s)
        for runner in (*self.retired, *self.runners):
            if not runner.join(timeout_s):
                log.warning("sink %s did not end within %g s and is left behind", runner.sink.name, timeout_s)
        if self._ring is not None:
            self._ring.close()

    def seconds_since_start(self, at_ns: int) -> float:
        """When ``at_ns`` was, counted from the moment the source had opened."""
        return (at_ns - self._started_ns) / 1e9

    # --- capture thread ---

    def _capture(self) -> None:
        try:
            self._open_source()
            while not self._stop.is_set() and (grab := self._source.grab()) is not None:
                self._metrics.count("frames_in", not grab.stands_in)
                self._take_in(grab)
        except RtError as error:
            self.error = error
        except Exception as error:
            log.exception("capture broke unexpectedly")
            self.error = error
        finally:
            self._close_source()
            self._inbox.close()
            self._opened.set()

    def _close_source(self) -> None:
        try:
            self._source.close()
        except Exception as error:
            log.exception("the input could not be closed")
            self.error = self.error or error

    def _open_source(self) -> None:
        self.video = self._source.open(self._stop, self._audio)
        self._ring = SlotRing(self._slots(self.runners), self.video.height, self.video.width, self._slot_memory)
        self._opened.set()

    def _take_in(self, grab: Grab) -> None:
        assert self._ring is not None
        slot = self._ring.acquire(timeout_s=0.0 if self._source.live else 60.0)
        if slot is None:
            self._metrics.drop("capture", self._clock.now_ns())
            return
        try:
            frame = self._filled(slot, grab)
        except BaseException:  # raised on
            slot.release()
            raise
        displaced = self._inbox.put(frame)
        if displaced is not None and displaced.slot is not None:
            displaced.slot.release()
            self._metrics.drop("infer", self._clock.now_ns())

    def _filled(self, slot: Slot, grab: Grab) -> Frame:
        begin_ns = self._clock.now_ns()
        self._source.retrieve(slot.pixels)
        if self._burn_timecode:
            timecode.burn(slot.pixels, grab.captured_ns // 1000)
        self._seq += 1
        frame = Frame(slot.pixels, self._seq, grab.captured_ns, grab.media_ns, slot=slot, stands_in=grab.stands_in)
        if isinstance(self._source, Decodes) and not self._burn_timecode:  # which is here alone
            frame.planar = self._source.planar()
        frame.marks["capture"] = self._clock.now_ns() - begin_ns
        return frame

    # --- track thread ---

    def _track(self) -> None:
        frame = None
        try:
            while True:
                self.lanes.wait_for_room(min(self._tracked_ns, default=0))
                frame = self._inbox.take()
                assert frame is not None
                if self._witness is not None:
                    self._witness.before(frame)
                self._tracking.process(frame, self.economy.look().patience)
                if not frame.stands_in:  # nothing is looked for in such a picture
                    self._tracked_ns.append(frame.marks["track"])
                self.lanes.deal(frame)
                frame = None
                self._mind_the_age()
        except Closed:
            pass  # the end of the input, or of the last lane
        except Exception as error:
            log.exception("tracking broke unexpectedly")
            self.error = error
        finally:
            self._finish([] if frame is None else [frame])

    def _mind_the_age(self) -> None:
        now_ns = self._clock.now_ns()
        if now_ns < self._ask_ns:
            return
        self._ask_ns = now_ns + ASK_EVERY_NS
        age_ms = self.recent_age_ms()
        if age_ms is not None:
            self.economy.notice_age(age_ms, now_ns)

    def _finish(self, unfinished: list[Frame]) -> None:
        """``unfinished``: what tracking broke on."""
        try:
            self._end_all(unfinished)
        except Exception as error:
            log.exception("the line's end broke unexpectedly")
            self.error = self.error or error
        finally:
            self._over.set()

    def _end_all(self, unfinished: list[Frame]) -> None:
        self._stop.set()
        self.lanes.end()
        if self._order_thread.ident is not None:
            self._order_thread.join()
        self.error = self.error or self.lanes.error
        self._inbox.close()  # what capture still brings goes straight back to it
        for frame in [*unfinished, *self._inbox.drain()]:
            if frame.slot is not None:
                frame.slot.release()
        with self._sinks_lock:
            self._takes_sinks = False
        for runner in self.runners:
            runner.end()

    # --- order thread ---

    def _deliver(self) -> None:
        try:
            while True:
                self._publish(self._last_good.shown_for(self.lanes.take()))
        except Closed:
            pass  # all is shown
        except Exception as error:
            log.exception("delivery broke unexpectedly")
            self.error = error
            self.stop()
            self.lanes.abandon()
        finally:
            self._last_good.clear()

    def _publish(self, frame: Frame) -> None:
        assert frame.slot is not None
        try:
            if self._witness is not None:
                self._witness.after(frame)
            self._metrics.count("frames_out")
            self._metrics.count("stood_in", frame.stands_in)
            self._metrics.stages(frame.marks)
            for runner in self.runners:
                if runner.can_read(frame):
                    frame.slot.retain()
                    runner.offer(frame)
        finally:
            frame.slot.release()

    def _wanted(self, place: Place | None) -> Delivery:
        """By all who see pictures, of a lane that leaves them in ``place``. A lane's thread."""
        sinks = [runner.sink for runner in self.runners if runner.state is not SinkState.FAILED]
        return wanted_by([*sinks, *([] if self._witness is None else [self._witness])], place)

    # --- sink threads ---

    def _check_sinks(self) -> None:
        """Ends the line when no sink is left that could ever take a frame. One that was removed is none that was lost."""
        runners = self.runners
        if runners and (all(runner.state is SinkState.FAILED for runner in runners) or self._nobody_answers(runners)):
            errors = [runner.error for runner in runners if runner.error is not None]
            self.error = self.error or SinkError(str(errors[0]))
            self.stop()

    def _nobody_answers(self, runners: Sequence[SinkRunner]) -> bool:
        waiting = {SinkState.RETRYING, SinkState.FAILED}
        since_s = (self._clock.now_ns() - self._started_ns) / 1e9
        return since_s > FIRST_CONTACT_S and all(r.state in waiting and not r.ever_worked for r in runners)

    def _runner(self, sink: Sink) -> SinkRunner:
        if isinstance(sink, ReadsInPlace):
            sink.lie_in(self._places)
        return SinkRunner(sink, self._clock, self._metrics, _weakly(self._check_sinks, None), self._at_once)

    def _slots(self, runners: Sequence[SinkRunner]) -> int:
        return OWN_SLOTS + self.lanes.slots_needed + sum(runner.slots_needed for runner in runners)


def _weakly(method: Callable[P, T], gone: T) -> Callable[P, T]:
    """``method`` of a line, for parts that the line holds: they hold it not, so all of it goes when it is let go of, collector or not.

    ``gone``: what is returned from then on.
    """
    held = weakref.WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        method = held()
        return gone if method is None else method(*args, **kwargs)

    return call

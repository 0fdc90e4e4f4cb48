"""A sink's own thread: what it takes from its mailbox, and what happens when the sink breaks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from rt.clock import Clock
from rt.delivery import can_read
from rt.errors import SinkError, SinkRetryError
from rt.frame import Frame, VideoFormat
from rt.metrics import Metrics
from rt.ring import Closed, Mailbox
from rt.sinks.contract import Sink

log = logging.getLogger(__name__)

BACK_OFF_S = (1, 2, 4, 8, 16, 30)
"""Seconds between one try and the next; the last is repeated."""

LOSSLESS_DEPTH = 8
"""Frames that may wait for a sink that loses nothing, before it pushes back: a quarter of a second at 30 fps."""


OPENING_S = 1.0
"""How long the end of a line waits for a sink that is only being opened: a server that takes a connection and never answers holds it until
the sink's own time limit, many seconds, and nothing is lost with it."""


class SinkState(StrEnum):
    """What a person is told of a sink."""

    OPENING = "opening"
    ON = "on"
    RETRYING = "retrying"
    FAILED = "failed"
    CLOSED = "closed"


class SinkRunner:
    """Runs one sink. ``offer`` is called by the line, everything else of the sink by the runner's thread."""

    def __init__(self, sink: Sink, clock: Clock, metrics: Metrics, changed: Callable[[], None], at_once: int = 1) -> None:
        """``changed`` is called, without arguments, whenever ``state`` has changed. ``at_once``: how many frames may come in one moment,
        as those of several lanes do, when the first of them was waited for; so many wait here, and the latest win."""
        self.sink = sink
        depth = LOSSLESS_DEPTH if sink.lossless else at_once
        self.slots_needed = depth + 1
        """Slots this sink may hold: those waiting and the one in hand."""
        self.state = SinkState.OPENING
        self.error: SinkError | None = None
        """The last thing that went wrong; any thread may read it."""
        self.retry_at_ns: int | None = None
        """When the next try begins, on the line's clock; None but while retrying. Any thread may read it."""
        self._clock = clock
        self._metrics = metrics
        self._changed = changed
        self._box: Mailbox[Frame] = Mailbox(depth, sink.lossless)
        self._ended = threading.Event()
        self._hurry = threading.Event()
        self._frames = 0  # runner thread, as are the next two
        self._tries = 0
        self._reconnects = 0
        self._thread = threading.Thread(target=self._run, name=f"sink-{sink.name}", daemon=True)
        self._video: VideoFormat | None = None
        self._is_opening = False  # of the runner's thread; any may read it

    def start(self, video: VideoFormat) -> None:
        self._video = video
        self._thread.start()

    def can_read(self, frame: Frame) -> bool:
        """False for one that was composed before this sink wanted pixels, and for one that wants none. Any thread."""
        return frame.is_here or can_read(self.sink, frame.composed)

    def offer(self, frame: Frame) -> None:
        """Leaves a frame, whose slot the caller has retained for this sink. Blocks only for a lossless sink that is behind."""
        displaced = self._box.put(frame)
        if displaced is frame and self._ended.is_set():  # removed a moment ago: it misses nothing
            _release(frame)
        elif displaced is not None:
            self._lose(displaced)

    def end(self) -> None:
        """No more frames come; what waits is still written."""
        self._ended.set()
        self._hurry.set()
        self._box.close()

    def hurry(self) -> None:
        """Waits for no further try: the line is coming to its end."""
        self._hurry.set()

    def join(self, timeout_s: float) -> bool:
        """After ``end``. True when the thread has ended, or never began.

        A sink that is still being opened is let go of after ``OPENING_S``, but for one that loses nothing: it closes what it opens as soon
        as that answers, and touches no frame any more.
        """
        if self._thread.ident is None:
            return True
        self._thread.join(min(timeout_s, OPENING_S) if self._lets_go else timeout_s)
        if self._thread.is_alive() and self._lets_go:
            for frame in self._box.drain():
                _release(frame)
        return not self._thread.is_alive()

    @property
    def _lets_go(self) -> bool:
        return self._is_opening and not self.sink.lossless

    @property
    def ever_worked(self) -> bool:
        return self._frames > 0

    def statistics(self) -> dict[str, Any]:
        """JSON-ready (any thread)."""
        facts = {"state": str(self.state), "frames": self._frames, "reconnects": self._reconnects}
        if self.error is not None:
            facts["error"] = str(self.error)
        return {**facts, **self.sink.statistics()}

    def _lose(self, frame: Frame) -> None:
        """Counts and releases a frame that this sink will not show. What a sink that has failed no longer takes is no drop."""
        _release(frame)
        if self.state is not SinkState.FAILED:
            self._metrics.drop(f"sink:{self.sink.name}", self._clock.now_ns())

    # --- runner thread ---

    def _run(self) -> None:
        try:
            while not self._serve_until_broken():
                pass
        except SinkError as error:
            self._fail(error)
        except Exception as error:
            log.exception("sink %s broke unexpectedly", self.sink.name)
            self._fail(SinkError(f"{self.sink.name}: unexpected {type(error).__name__}: {error}; the log has the details"))
        finally:
            self._box.close()
            for frame in self._box.drain():
                self._lose(frame)

    def _serve_until_broken(self) -> bool:
        """One connection from open to close. True when the work is over, False when it is to be tried again."""
        assert self._video is not None
        try:
            try:
                self._open(self._video)
                self._tries_succeeded()
                self._deliver()
            finally:
                self.sink.close()
        except SinkRetryError as error:
            return not self._wait_for_retry(error)
        self._become(SinkState.CLOSED)
        return True

    def _open(self, video: VideoFormat) -> None:
        self._is_opening = True
        try:
            self.sink.open(video)
        finally:
            self._is_opening = False

    def _deliver(self) -> None:
        while True:
            try:
                frame = self._box.take(self._patience_s())
            except Closed:
                return
            if frame is None:
                self.sink.idle(self._clock.now_ns())
                continue
            if not self.can_read(frame):  # its encoder was another when this was composed
                self._lose(frame)
                continue
            try:
                self.sink.write(frame)
            except BaseException:
                self._lose(frame)
                raise
            self._frames += 1
            try:
                self._metrics.taken(self.sink.name, frame.captured_ns, self._clock.now_ns())
            finally:
                _release(frame)

    def _patience_s(self) -> float | None:
        deadline_ns = self.sink.deadline_ns()
        return None if deadline_ns is None else max(0.0, (deadline_ns - self._clock.now_ns()) / 1e9)

    def _tries_succeeded(self) -> None:
        if self._tries:
            self._reconnects += 1
            self._say(logging.WARNING, f"{self.sink.name} is on again", event="output-on", tries=self._tries)
        self._tries = 0
        self._become(SinkState.ON)

    def _wait_for_retry(self, error: SinkRetryError) -> bool:
        """True when the time has come to try again, False when the line ended meanwhile."""
        pause_s = BACK_OFF_S[min(self._tries, len(BACK_OFF_S) - 1)]
        self._tries += 1
        self.error = error
        self.retry_at_ns = self._clock.now_ns() + pause_s * 1_000_000_000
        self._become(SinkState.RETRYING)
        self._say(logging.WARNING, f"{error}; next try in {pause_s} s", event="output-retrying", why=str(error), retry_in_s=pause_s)
        for frame in self._box.drain():
            self._lose(frame)
        return self._clock.wait_until(self.retry_at_ns, self._hurry)

    def _fail(self, error: SinkError) -> None:
        self.error = error
        self._say(logging.ERROR, str(error), event="output-failed", why=str(error))
        self._become(SinkState.FAILED)

    def _say(self, level: int, text: str, **facts: Any) -> None:
        """Texts alone: whoever keeps a log record of the error would keep the whole line."""
        log.log(level, "%s", text, extra={"sink": self.sink.name, "facts": {**facts, "output": self.sink.name}})

    def _become(self, state: SinkState) -> None:
        if state is not SinkState.RETRYING:
            self.retry_at_ns = None
        self.state = state
        self._changed()


def _release(frame: Frame) -> None:
    if frame.slot is not None:
        frame.slot.release()

"""LiveControl: the one thread that owns the session. The window says what it wants and hears what became of it."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Signal

from app.gui.worker import shown_error
from app.session import LiveSession
from app.settings import Settings
from rt.clock import MonotonicClock
from rt.metrics import Snapshot
from rt.sinks.preview import PreviewSink
from rt.sinks.runner import SinkState

log = logging.getLogger(__name__)

PULSE_S = 0.5
"""From one look at the numbers to the next."""


class LiveState(StrEnum):
    IDLE = "idle"
    STARTING = "starting"
    LIVE = "live"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Light:
    """How one output fares."""

    state: SinkState
    error: str
    retry_in_s: int | None


@dataclass(frozen=True, slots=True)
class Pulse:
    """The numbers of one moment."""

    at_ns: int
    snapshot: Snapshot
    lights: dict[str, Light]
    video: str
    """What the source granted."""


class LiveControl(QObject):
    """``wish`` belongs to the window's thread and returns at once; of several wishes the newest counts."""

    state_changed = Signal(object)
    failed = Signal(str)
    """What was wished could not be; the line goes on as it was where it ran."""
    ended = Signal(str)
    """The line ended by itself; why, or an empty text at the end of a file."""
    pulsed = Signal(object)

    def __init__(self, preview: PreviewSink) -> None:
        super().__init__()
        self.preview = preview
        self._clock = MonotonicClock()
        self._changed = threading.Condition()
        self._wish: Settings | None = None  # guarded by _changed, as are the next two
        self._is_new = False
        self._closing = False
        self._session: LiveSession | None = None  # the control's thread
        self._thread = threading.Thread(target=self._loop, name="live-control", daemon=True)
        self._thread.start()

    def wish(self, settings: Settings | None) -> None:
        """To be live with ``settings``, or not live. A change of face or look is made while live; any other takes a new line."""
        with self._changed:
            self._wish, self._is_new = settings, True
            self._changed.notify()

    def close(self, timeout_s: float = 30.0) -> None:
        """Ends the line in order, and the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)

    # --- the control's thread ---

    def _loop(self) -> None:
        while not self._is_over():
            with self._changed:
                self._changed.wait_for(lambda: self._is_new or self._closing, PULSE_S if self._session else None)
                wish, is_new, self._is_new = self._wish, self._is_new, False
            if is_new and not self._closing:
                self._fulfil(wish)
            self._look()
        self._stop()

    def _is_over(self) -> bool:
        with self._changed:
            return self._closing

    def _fulfil(self, wish: Settings | None) -> None:
        try:
            if wish is None:
                self._stop()
            elif self._session is not None and fits(self._session.settings, wish):
                self._session.update(wish)
            else:
                self._restart(wish)
        except Exception as error:
            log.warning("%s", error)
            self.failed.emit(shown_error(error))
            if self._session is None:
                self.state_changed.emit(LiveState.IDLE)

    def _restart(self, settings: Settings) -> None:
        self._stop()
        self.state_changed.emit(LiveState.STARTING)
        session = LiveSession(settings, witness=self.preview, further_sinks=(self.preview,))
        session.start()
        self._session = session
        self.state_changed.emit(LiveState.LIVE)

    def _stop(self) -> None:
        if self._session is None:
            return
        self.state_changed.emit(LiveState.STOPPING)
        session, self._session = self._session, None
        session.close()
        self.state_changed.emit(LiveState.IDLE)

    def _look(self) -> None:
        session = self._session
        if session is None:
            return
        if session.wait(0):
            error = session.line.error
            self._stop()
            self.ended.emit("" if error is None else shown_error(error))
            return
        now_ns = self._clock.now_ns()
        lights = {}
        for runner in session.line.runners:
            at_ns = runner.retry_at_ns
            retry_in_s = None if at_ns is None else max(0, round((at_ns - now_ns) / 1e9))
            lights[runner.sink.name] = Light(runner.state, str(runner.error or ""), retry_in_s)
        self.pulsed.emit(Pulse(now_ns, session.metrics(), lights, str(session.line.video)))


def fits(now: Settings, wish: Settings) -> bool:
    """Whether ``LiveSession.update`` reaches ``wish`` from ``now``."""
    return (now.input, now.output, now.run) == (wish.input, wish.output, wish.run) and now.look.detector == wish.look.detector

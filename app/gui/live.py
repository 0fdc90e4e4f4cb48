"""LiveControl: the thread on which the Studio works for the window. The window says what it wants and hears what became of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.gui.worker import KNOWN, shown_error
from app.outputs import Output
from app.session import LiveSession
from app.settings import Settings
from app.studio import Studio, StudioState
from app.vitals import Vitals
from engines.session import ModelUse
from rt.clock import MonotonicClock
from rt.metrics import Snapshot
from rt.sinks.preview import PreviewSink
from rt.sinks.runner import SinkState
from rt.track.people import Person

log = logging.getLogger(__name__)

PULSE_S = 0.5
"""From one look at the numbers to the next."""

Change = Callable[[Settings], Settings]
"""What a person wants to be different, whatever else has changed meanwhile."""


class LiveState(StrEnum):
    IDLE = "idle"
    STARTING = "starting"
    LIVE = "live"
    STOPPING = "stopping"


SHOWN_AS = {
    StudioState.STOPPED: LiveState.IDLE,
    StudioState.STARTING: LiveState.STARTING,
    StudioState.LIVE: LiveState.LIVE,
    StudioState.STOPPING: LiveState.STOPPING,
    StudioState.ENDED: LiveState.STOPPING,
}


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
    lights: Mapping[Output, Light]
    video: str
    """What the source granted."""
    source: Mapping[str, Any]
    """What the source says of itself (``rt.capture.contract.Source.describe``)."""
    models: tuple[ModelUse, ...]
    """What runs where."""
    vitals: Vitals
    """How the line fares."""
    people: tuple[Person, ...]
    """Who was seen, and who is in the picture."""
    recording: str
    """The file that is written now, or an empty text."""


class LiveControl(QObject):
    """``apply``, ``go`` and ``close`` belong to the window's thread and return at once. What the control interface or anybody else
    does with the Studio is told by the same signals."""

    state_changed = Signal(object)
    settled = Signal(object)
    """The Studio's Settings, when they have become others than were told last, or a change was refused."""
    failed = Signal(str)
    """What was wished could not be; the line goes on as it was where it ran."""
    ended = Signal(str)
    """The line ended by itself; why, or an empty text at the end of a file."""
    pulsed = Signal(object)

    def __init__(self, settings: Settings, preview: PreviewSink) -> None:
        super().__init__()
        self.preview = preview
        self._known_error: str | None = None  # why the Studio does not run, as it was told; None from the next start on
        self.studio = Studio(settings, witness=preview, further_sinks=(preview,), changed=self._tell_state)
        self._clock = MonotonicClock()
        self._woken = threading.Condition()
        self._changes: list[Change] = []  # guarded by _woken, as are the next three
        self._is_working = False
        self._live_wish: bool | None = None
        self._closing = False
        self._told: Settings | None = settings  # the control's thread, as is the next
        self._live_since_ns: int | None = None
        self._thread = threading.Thread(target=self._loop, name="live-control", daemon=True)
        self._thread.start()

    def apply(self, change: Change) -> None:
        """``change`` of the settings: a face, a look or an output while live, anything else by a new line. In the order given."""
        with self._woken:
            self._changes.append(change)
            self._woken.notify()

    def go(self, live: bool) -> None:
        """Live, or not; of several wishes the newest counts."""
        with self._woken:
            self._live_wish = live
            self._woken.notify()
        if not live:
            self.studio.request_stop()  # also ends a start that waits for its camera

    def tell_person(self, number: int, who: int | None) -> None:
        """See ``rt.track.people.People.tell``; nothing where nothing is live."""
        session = self.studio.session
        if session is not None:
            session.tell_person(number, who)

    @property
    def busy(self) -> bool:
        """Whether changes were given that are not yet taken over, or refused."""
        with self._woken:
            return bool(self._changes) or self._is_working

    def close(self, timeout_s: float = 30.0) -> None:
        """Ends the line in order, and the thread."""
        with self._woken:
            self._closing = True
            self._woken.notify()
        self.studio.request_stop()
        self._thread.join(timeout_s)

    def _tell_state(self, state: StudioState) -> None:
        """On whichever thread moved the Studio."""
        if state is StudioState.STARTING:
            self._known_error = None
        self.state_changed.emit(SHOWN_AS[state])

    # --- the control's thread ---

    def _loop(self) -> None:
        while True:
            with self._woken:
                self._woken.wait_for(lambda: self._changes or self._live_wish is not None or self._closing, PULSE_S)
                if self._closing:
                    break
                changes, self._changes = self._changes, []
                self._is_working = bool(changes)
                live, self._live_wish = self._live_wish, None
            self._try(lambda: self._work(changes, live))  # noqa: B023  called at once
            with self._woken:
                self._is_working = False
            self._try(self._look)
        self._try(self.studio.stop)

    def _try(self, work: Callable[[], object]) -> None:
        """Whatever goes wrong is told, and the thread goes on: without it nothing could be stopped any more."""
        try:
            work()
        except Exception as error:
            if not isinstance(error, KNOWN):
                log.exception("the control broke unexpectedly")
            self.failed.emit(shown_error(error))

    def _work(self, changes: list[Change], live: bool | None) -> None:
        if live is False:
            self.studio.stop()
        self._take_over(changes)
        if live:
            self._start()

    def _start(self) -> None:
        self._live_since_ns = None
        try:
            self.studio.start()
            self._live_since_ns = self._clock.now_ns()
        except KNOWN as error:
            self._known_error = self.studio.error
            with self._woken:
                given_up = self._live_wish is False or self._closing
            if not given_up:
                self.failed.emit(shown_error(error))

    def _take_over(self, changes: list[Change]) -> None:
        """All at once: a slider that is drawn gives many. Where that cannot be, one by one, so that one bad change costs no other."""
        if not changes:
            return
        try:
            self.studio.revise(lambda settings: _composed(changes, settings))
        except KNOWN as error:
            for change in changes if len(changes) > 1 else ():
                self._try(lambda: self.studio.revise(change))  # noqa: B023  called at once
            if len(changes) == 1:
                self.failed.emit(shown_error(error))
            self._told = None  # it is told what they are, even if they are as before

    def _tell_settings(self) -> None:
        self._told = self.studio.settings
        self.settled.emit(self._told)

    def _look(self) -> None:
        if self.studio.settings is not self._told:
            self._tell_settings()
        state, session = self.studio.state, self.studio.session
        if session is None:
            self._tell_error(state)
            return
        if state is StudioState.ENDED:
            error = self.studio.error
            self.studio.stop()
            self._known_error = self.studio.error
            self.ended.emit(error or "")
        elif state is StudioState.STOPPING or self._time_is_up():
            self.studio.stop()  # whoever asked for the end did not wait for it
        elif state is StudioState.LIVE:
            self.pulsed.emit(self._pulse(session))

    def _tell_error(self, state: StudioState) -> None:
        """Of a start that somebody else asked for."""
        error = self.studio.error if state is StudioState.STOPPED else None
        if error is not None and error != self._known_error:
            self.failed.emit(error)
        self._known_error = error

    def _time_is_up(self) -> bool:
        seconds = self.studio.settings.run.seconds
        return seconds is not None and self._live_since_ns is not None and self._clock.now_ns() - self._live_since_ns >= seconds * 1e9

    def _pulse(self, session: LiveSession) -> Pulse:
        now_ns = self._clock.now_ns()
        lights = {}
        for output, runner in session.outputs().items():
            at_ns = runner.retry_at_ns
            retry_in_s = None if at_ns is None else max(0, round((at_ns - now_ns) / 1e9))
            lights[output] = Light(runner.state, str(runner.error or ""), retry_in_s)
        recording = session.settings.output.record
        return Pulse(
            now_ns,
            session.metrics(),
            lights,
            str(session.line.video),
            session.source(),
            session.uses(),
            session.vitals(),
            session.people(),
            str(recording or ""),
        )


def _composed(changes: list[Change], settings: Settings) -> Settings:
    for change in changes:
        settings = change(settings)
    return settings

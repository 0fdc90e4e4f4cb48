"""The Studio: Settings, and the LiveSession of the moment. Window, command line and control interface all hold one of these.

A LiveSession is one run; a Studio starts and stops them one after the other and carries the settings from each to the next.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from app import build
from app.errors import AppError, NotLiveError
from app.loading import loading
from app.places import check_photos
from app.report import write_json
from app.session import LiveSession
from app.settings import Settings
from engines.errors import EngineError
from rt.delivery import NOTHING, Delivery, wanted_by
from rt.errors import RtError
from rt.frame import Frame, Place
from rt.metrics import Snapshot
from rt.sinks.contract import Sink
from rt.track.people import Register
from rt.witness import Witness

SNAPSHOT_S = 5.0
"""How long a snapshot waits for the next frame."""


class StudioState(StrEnum):
    STOPPED = "stopped"
    """Nothing runs: not started yet, or stopped when asked."""
    STARTING = "starting"
    LIVE = "live"
    STOPPING = "stopping"
    ENDED = "ended"
    """The line ended by itself: the end of the input, or ``Studio.error``."""


class Studio:
    """Any thread may call anything. Starting, stopping and changing happen one at a time: a second caller waits for the first."""

    def __init__(
        self,
        settings: Settings,
        *,
        witness: Witness | None = None,
        further_sinks: Sequence[Sink] = (),
        changed: Callable[[StudioState], None] = lambda state: None,
        failed: Callable[[str], None] = lambda why: None,
    ) -> None:
        """Costs nothing: models are loaded by ``start``. ``witness`` sees the frames of every session, ``further_sinks`` get them.

        ``changed`` is told every state that is entered, on the thread that brought it about and while it holds the work: it must
        return at once and call nothing here. That the line ended by itself is only seen by whoever asks for ``state``. ``failed`` is told
        in the same way why a start came to nothing that nobody has called off; whoever asked for it gets the error beside.
        """
        self._filmed, self._shown = _Copies(), _Copies()
        self._witness = _Tap(witness, self._filmed, self._shown)
        self._further_sinks = tuple(further_sinks)
        self._changed, self._failed = changed, failed
        self._register = Register()  # of the people seen: written to by the line of the moment
        self.add_to_report: Callable[[], dict[str, Any]] = dict
        """What stands in a report beside what the run says; JSON-ready. Asked at the end of a run, on the thread that ends it."""
        self._work = threading.Lock()  # held while something is started, stopped or changed
        self._guard = threading.Lock()  # of all below; held for moments
        self._settings = settings
        self._session: LiveSession | None = None
        self._state = StudioState.STOPPED
        self._error: str | None = None
        self._stop_asked = False
        self._report: dict[str, Any] | None = None
        self._loaded = False  # with _work held, as are the next two
        self._recorded: set[Path] = set()  # recordings that were asked for and begun
        self._recording: tuple[Path, Path] | None = None  # of this run: asked for, and written

    @property
    def settings(self) -> Settings:
        with self._guard:
            return self._settings

    @property
    def state(self) -> StudioState:
        with self._guard:
            if self._state is StudioState.LIVE and self._session is not None and self._session.wait(0):
                return StudioState.STOPPING if self._stop_asked else StudioState.ENDED
            return self._state

    @property
    def error(self) -> str | None:
        """Why it ended by itself or did not start; None where all is well."""
        with self._guard:
            if self._session is not None and self._session.line.error is not None:
                return str(self._session.line.error)
            return self._error

    @property
    def recording(self) -> Path | None:
        """The file that is recorded to now."""
        session = self.session
        return None if session is None else session.settings.output.record

    @property
    def session(self) -> LiveSession | None:
        """The run of the moment, to be asked and not to be started or closed."""
        with self._guard:
            return self._session

    def start(self) -> None:
        """Goes live, if it is not, and returns once pictures flow: seconds. Raises ``AppError``, ``RtError``, ``EngineError``."""
        with self._work:
            if self.state is StudioState.LIVE:
                return
            self._close()
            self._go_live(None)

    def stop(self) -> dict[str, Any] | None:
        """Ends the run in order and returns its report; that of the last run where none is live, None before the first."""
        with self._guard:
            if self._session is not None:
                self._stop_asked = True
                self._session.request_stop()  # also ends a start that waits for its camera
        with self._work:
            self._close()
            return self._report

    def request_stop(self) -> None:
        """Asks for the end and returns at once. Takes no lock, so a signal handler may call it."""
        session = self._session
        if session is not None:
            self._stop_asked = True
            session.request_stop()

    def change(self, settings: Settings) -> None:
        """Takes over ``settings``: a look, a source or an output at once, anything else by a new run if it is live.

        A recording that a new run goes on with is written to a file beside the first, numbered. Whatever cannot be used (a photo
        without a face, a model that is not here) raises, and all stays as it was. A camera that cannot be opened raises too, and
        nothing is live then. While nothing runs, only photos that are not there raise.
        """
        self.revise(lambda _: settings)

    def revise(self, change: Callable[[Settings], Settings]) -> None:
        """As ``change``, to what ``change`` makes of the settings of this moment."""
        with self._work:
            settings = change(self.settings)
            if self.state is StudioState.LIVE:
                assert self._session is not None
                if not self._session.can_become(settings):
                    following = self._made(self._for_run(settings))  # raises before anything is given up
                    self._close()
                    self._set(settings)
                    self._go_live(following)
                    return
                run = self._for_run(settings, same_run=True)
                self._session.update(run)
                self._note_recording(settings.output.record, run.output.record)
            elif settings.source != self.settings.source:
                check_photos(settings.source)
            self._set(settings)

    def wait(self, timeout_s: float | None) -> bool:
        """True once the run has come to its end, or where nothing runs."""
        session = self.session
        return session is None or session.wait(timeout_s)

    def metrics(self) -> Snapshot | None:
        """The numbers of this moment; None where nothing runs."""
        session = self.session
        return None if session is None else session.metrics()

    def snapshot(self, timeout_s: float = SNAPSHOT_S, *, filmed: bool = False) -> np.ndarray:
        """uint8 [H, W, 3] BGR: the next frame as the sinks get it, or as it was ``filmed``. Raises ``NotLiveError``."""
        if self.state is StudioState.LIVE:
            picture = self._filmed.next_frame(timeout_s) if filmed else self._shown.next_frame(timeout_s)
            if picture is not None:
                return picture
        raise NotLiveError("there is no picture to take: the line is not live, or its source stands still; start it, then try again")

    def _made(self, run: Settings) -> LiveSession:
        with nullcontext() if self._loaded else loading():  # the first brings the models' code with it, which stays
            if not self._loaded and not run.source.photos and not run.people.sources:
                build.rehearse_unworn(run)
            session = LiveSession(run, witness=self._witness, further_sinks=self._further_sinks, register=self._register)
        self._loaded = True
        return session

    def _go_live(self, session: LiveSession | None) -> None:
        self._become(StudioState.STARTING, None)
        try:
            session = session or self._made(self._for_run(self.settings))
            with self._guard:
                self._session = session
            session.start()
        except BaseException as error:
            why = str(error) if isinstance(error, AppError | RtError | EngineError) else f"{type(error).__name__}: {error}"
            called_off = self._stop_asked
            self._end(why)
            if not called_off:
                self._failed(why)
            raise
        self._note_recording(self.settings.output.record, session.settings.output.record)
        self._become(StudioState.LIVE, None)

    def _close(self) -> None:
        session = self.session
        if session is None:
            return
        self._become(StudioState.STOPPING, self.error)
        session.close()
        self._report = {**session.report(), **self.add_to_report()}
        error = None if session.line.error is None else str(session.line.error)
        if session.settings.run.report is not None:
            try:
                write_json(session.settings.run.report, self._report)
            except AppError as problem:
                error = error or str(problem)
        self._end(error)

    def _for_run(self, settings: Settings, *, same_run: bool = False) -> Settings:
        """``settings`` with a recording that overwrites none of what was recorded before. Held with _work."""
        wished = settings.output.record
        if wished is None or wished not in self._recorded:
            return settings
        goes_on = same_run and self._recording is not None and self._recording[0] == wished
        path = self._recording[1] if goes_on and self._recording is not None else free_place(wished)
        return settings.model_copy(update={"output": settings.output.model_copy(update={"record": path})})

    def _note_recording(self, wished: Path | None, written: Path | None) -> None:
        self._recording = None if wished is None or written is None else (wished, written)
        if wished is not None:
            self._recorded.add(wished)

    def _end(self, error: str | None) -> None:
        with self._guard:
            self._session = None
        self._become(StudioState.STOPPED, error)

    def _become(self, state: StudioState, error: str | None) -> None:
        with self._guard:
            self._state, self._error = state, error
            if state is StudioState.STARTING:
                self._stop_asked = False
        self._changed(state)

    def _set(self, settings: Settings) -> None:
        with self._guard:
            self._settings = settings


def free_place(path: Path) -> Path:
    """``name-2.mp4`` beside ``name.mp4``, or the first number for which there is no file."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))
    return next(place for place in numbered if not place.exists())


class _Tap:
    """A ``rt.witness.Witness`` before another one, that offers every frame to whoever waits for it."""

    def __init__(self, witness: Witness | None, filmed: _Copies, shown: _Copies) -> None:
        self._witness, self._filmed, self._shown = witness, filmed, shown

    def before(self, frame: Frame) -> None:
        self._filmed.offer(frame)
        if self._witness is not None:
            self._witness.before(frame)

    def after(self, frame: Frame) -> None:
        self._shown.offer(frame)
        if self._witness is not None:
            self._witness.after(frame)

    def wants(self, place: Place | None) -> Delivery:
        """As ``rt.delivery.Selective``."""
        own = Delivery() if self._shown.is_waited_for else NOTHING
        return own if self._witness is None else own | wanted_by([self._witness], place)


class _Copies:
    """Copies a frame when somebody waits for it, and costs nothing otherwise."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = 0  # guarded by _changed, as is _picture
        self._picture: np.ndarray | None = None
        self._number = 0

    @property
    def is_waited_for(self) -> bool:
        return self._waiting > 0

    def offer(self, frame: Frame) -> None:
        """On the line's threads."""
        if self._waiting and frame.is_here:
            picture = frame.pixels.copy()
            with self._changed:
                self._picture = picture
                self._number += 1
                self._changed.notify_all()

    def next_frame(self, timeout_s: float) -> np.ndarray | None:
        """Whoever waits gets the same picture, and must only read it."""
        with self._changed:
            seen = self._number
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._number > seen, timeout_s)
                return self._picture if self._number > seen else None
            finally:
                self._waiting -= 1
                if not self._waiting:  # nobody is left to take it
                    self._picture = None

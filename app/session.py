"""LiveSession: builds a line from Settings, runs it, changes it while it runs, and reports. Window and command line use this alone."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cv2
from threadpoolctl import threadpool_limits

from app import build
from app.errors import NotLiveError
from app.outputs import Outlets, Output
from app.parts import Parts, close_embedded, embedded_uses
from app.places import check_places
from app.report import build_report
from app.settings import Settings
from app.usage import UsageSampler, process_age_s
from app.vitals import Vitals
from app.worn import Worn
from engines.device.contract import Device
from engines.device.kinds import open_device
from engines.errors import DeviceError
from engines.landmarks.facemesh import FaceMesh
from engines.session import ModelUse
from rt.audio import AudioBus
from rt.clock import Clock, MonotonicClock
from rt.compose.contract import Compositor
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics, Snapshot
from rt.options import Look
from rt.sinks.contract import Sink
from rt.sinks.runner import SinkRunner
from rt.track.people import People, Person, Register
from rt.tracking import Tracking
from rt.witness import Witness

if TYPE_CHECKING:
    from app.upgrade import Upgrade

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0005
"""How long one Python thread may keep another from running. The default, 5 ms, is a sixth of a frame at 30 fps."""


RELEASE_S = 0.2
"""How long a change of the look waits for the line to let go of the one before; what takes longer is closed later."""


def limit_threads() -> None:
    """One thread for each linear algebra and OpenCV call: they are small, and the line's own threads are the parallelism.

    Unlimited on two cores, two matrix products of a swap took twenty times as long.
    """
    threadpool_limits(1, user_api="blas")
    cv2.setNumThreads(1)


class LiveSession:
    """One run. Any thread may call anything; ``close`` ends what was started, or was not, and waits for a ``start`` that is under way."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        witness: Witness | None = None,
        further_sinks: Sequence[Sink] = (),
        register: Register | None = None,
    ) -> None:
        """Loads the models and prepares the identity: seconds. Raises ``AppError``, ``RtError`` or ``EngineError``.

        ``further_sinks``: beside those that Settings name, as a window's preview. ``register``: of the people who were seen before.
        """
        check_places(settings)
        self.settings = settings
        self._clock = clock or MonotonicClock()
        self._begun_ns = self._clock.now_ns()
        self._ready_ns = self._begun_ns
        self._metrics = Metrics()
        self._usage = UsageSampler()
        audio = AudioBus()
        limit_threads()
        self._source = build.source(settings, self._clock)
        self._outlets = Outlets(settings.output, self._clock, audio)
        memory_bytes = settings.run.gpu_memory_mb * 1_000_000
        self._devices = tuple(open_device(name, memory_bytes) for name in settings.run.devices)
        with ExitStack() as opened:
            self._tracking, self._mesh = build.parts(settings), FaceMesh()
            opened.callback(self._tracking.close)
            detector = build.detector(settings, self._tracking)
            self._worn = Worn(settings, self._devices, detector, self._mesh)
            opened.callback(self._worn.close)
            self._tracker = build.tracker(settings, detector, self._mesh)
            self._people = People(self._tracker, build.recogniser(settings, self._tracking), register)
            self._compositors = tuple(map(build.compositor, settings.run.devices, self._devices))
            self._check(self._worn.looks)
            self.line = Line(
                self._source,
                Tracking(self._people, self._metrics, self._clock, slow_ms=settings.run.slow_ms),
                [self._lane(opened, device, compositor) for device, compositor in zip(self._devices, self._compositors, strict=True)],
                [*self._outlets.sinks, *further_sinks],
                self._worn.looks,
                self._clock,
                self._metrics,
                audio,
                burn_timecode=settings.input.timecode,
                budget=build.budget(settings),
                witness=witness,
            )
            opened.pop_all()  # all is well: from here on ``close`` closes it
        self._looks = self._worn.looks  # guarded by _changing once started
        self._ready_ns = self._clock.now_ns()
        self._changing = threading.Lock()  # held while another look is made: by an upgrade, or by whoever calls update
        # guarded by _changing, as are settings, _tracking and _worn once started
        self._retired: list[tuple[threading.Event, Parts | Worn]] = []
        self.upgrade: Upgrade | None = None
        """Of a session that builds engines; set by ``start``."""
        self._models: tuple[ModelUse, ...] = ()
        self._life = threading.Lock()  # held while it is started or closed
        self._is_begun = False  # guarded by _life
        self._is_closed = False  # written with _life and _changing held
        self._started_ns: int | None = None
        self._ended_ns: int | None = None

    def _lane(self, opened: ExitStack, device: Device, compositor: Compositor | None) -> Lane:
        lane = Lane(device, self._clock, slow_ms=self.settings.run.slow_ms, compositor=compositor)
        opened.callback(lane.close)
        return lane

    def start(self) -> None:
        """Returns once pictures flow. Raises ``SourceError``, and the session is closed then; ``NotLiveError`` where it was
        started before, or closed: it runs once."""
        with self._life:
            if self._is_begun or self._is_closed:
                raise NotLiveError("this run was started or closed before, and a run is started once; make another")
            self._is_begun = True
            sys.setswitchinterval(SWITCH_INTERVAL_S)
            self._usage.start()
            try:
                self.line.start()
                self._started_ns = self._clock.now_ns()
                log.info("live: %s", self.line.video, extra={"facts": {"event": "live", "granted": str(self.line.video)}})
                if self.settings.run.build_engines:
                    self._begin_upgrade()
            except BaseException:  # raised on: nothing of the session is left running
                self._end()
                raise

    def can_become(self, settings: Settings) -> bool:
        """Whether ``update`` reaches ``settings``; another input, or pictures of another size, take a new session."""
        return build.same_source(self.settings.input, settings.input) and self.settings.run == settings.run

    def update(self, settings: Settings) -> None:
        """Wears other photos, another swapper or another look from the next frame on, adjusts the camera, and switches outputs on and off;
        what else differs takes a new session (see ``can_become``).

        Prepares first, on the calling thread (tenths of a second; the line goes on meanwhile), so a photo or an output that cannot be
        used changes nothing. Raises as the constructor does.
        """
        with self._changing:
            if self._is_closed:
                raise NotLiveError("this run has ended, and nothing of it can be changed any more; make another")
            check_places(settings)
            switch_over = self._outlets.prepare(settings.output)
            if build.takes_other_parts(self._looks[0], self.settings, settings):
                self._wear(settings)
            else:
                pairs = zip(self._looks, self._devices, strict=True)
                looks = tuple(self._restyled(look, device, settings) for look, device in pairs)
                self._check(looks)
                self._looks = looks
                self.line.update(*self._looks)
            self._tracker.configure(build.track_options(settings))
            self._adjust(settings)
            switch_over(self.line)
            self.settings = settings

    def remarks(self) -> tuple[str, ...]:
        """What a person should know of what was asked for and does nothing, a sentence each. Before ``start``."""
        return build.remarks(self.settings, self._looks[0])

    def _restyled(self, look: Look, device: Device, settings: Settings) -> Look:
        with device.current():
            return build.redressed(build.restyled(look, settings), self.settings, settings)

    def source(self) -> dict[str, Any]:
        """What the source says of itself: what was asked and granted, a warning. Any thread."""
        return self._source.describe()

    def uses(self) -> tuple[ModelUse, ...]:
        """What is worn and what finds faces, each model once, with what runs it. Any thread."""
        return self._uses()

    def people(self) -> tuple[Person, ...]:
        """Who was seen, by this line and those before, and who is in sight: nobody while the camera is away. Any thread."""
        people = self._people.register.people
        return tuple(replace(person, in_sight=False) for person in people) if "lost" in self._source.describe() else people

    def outputs(self) -> dict[Output, SinkRunner]:
        """How each output fares. Any thread."""
        return self._outlets.runners(self.line)

    def wait(self, timeout_s: float | None) -> bool:
        """True once the line has come to its end."""
        return self.line.wait(timeout_s)

    def request_stop(self) -> None:
        """Asks for the end and returns at once; fit for a signal handler."""
        self.line.stop()

    def close(self) -> None:
        """Ends the line, waits for its threads and for what is still being written. May be called twice, and before ``start``."""
        self.line.stop()  # also a start that waits for its camera
        with self._life:
            self._end()

    def _end(self) -> None:
        """Held with _life."""
        if self._is_closed:
            return
        self.line.close()
        self._ended_ns = self._clock.now_ns()
        if self.upgrade is not None:
            self.upgrade.close()
        self.line.join()
        with self._changing:
            self._is_closed = True
            self._models = self._uses()
            self._close_parts()
        self._usage.stop()

    def metrics(self) -> Snapshot:
        """The numbers of this moment. Any thread."""
        return self._metrics.snapshot()

    def tell_person(self, number: int, who: int | None) -> None:
        """See ``rt.track.people.People.tell``. Any thread."""
        self._people.tell(number, who)

    def vitals(self) -> Vitals:
        """How the line fares now. Any thread."""
        return Vitals(
            age_p95_ms=self.line.recent_age_ms(),
            budget_ms=self.settings.run.budget_ms,
            stages_ms=self._metrics.recent_stages_ms(),
            given_up=self.line.economy.given_up,
            changes=self.line.economy.changes,
            resident_mb=self._usage.resident_mb,
        )

    def report(self) -> dict[str, Any]:
        """JSON-ready; after ``close``."""
        ended_ns = self._clock.now_ns() if self._ended_ns is None else self._ended_ns
        seconds = 0.0 if self._started_ns is None else (ended_ns - self._started_ns) / 1e9
        upgrade = None if self.upgrade is None else self.upgrade.to_dict()
        startup_s = self._startup_s()
        return build_report(
            self.settings, self.line, self.metrics(), self._usage, seconds, self._source.describe(), startup_s, self._models, upgrade
        )

    def _startup_s(self) -> dict[str, float]:
        """Where the time until the first picture went: seconds from the start of the process until each step was done."""
        age_s, now_ns = process_age_s(), self._clock.now_ns()
        steps = {"loaded": self._begun_ns, "prepared": self._ready_ns, "first_frame": self.metrics().first_out_ns}
        return {name: round(age_s - (now_ns - at_ns) / 1e9, 3) for name, at_ns in steps.items() if at_ns is not None}

    def _adjust(self, settings: Settings) -> None:
        """The picture that the source gives, as far as it differs."""
        before, after = self.settings.input, settings.input
        self._source.reframe(build.framing(after))
        if before.exposure_ms != after.exposure_ms:
            self._source.expose(after.exposure_ms)

    def _begin_upgrade(self) -> None:
        from app.upgrade import Upgrade, wanted

        self.upgrade = Upgrade(wanted((*self._tracking.open_models, *self._worn.open_models)), self._switch_over)
        self.upgrade.start()

    def _switch_over(self) -> None:
        """The look as it is, with what can run it best by now. On the thread of the upgrade."""
        with self._changing:
            self._wear(self.settings)

    def _wear(self, settings: Settings) -> None:
        """Makes the parts and hands them to the line; those before are closed once no frame is worked on with them."""
        with ExitStack() as opened:  # where anything is raised, what was opened for nothing is not kept
            tracking = build.parts(settings)
            opened.callback(tracking.close)
            detector = build.detector(settings, tracking)
            recogniser = build.recogniser(settings, tracking)
            mesh = FaceMesh()  # the line works with the other one meanwhile
            try:
                worn = Worn(settings, self._devices, detector, mesh)
            finally:
                close_embedded(mesh)
            opened.callback(worn.close)
            self._check(worn.looks)
            opened.pop_all()
        self._looks = worn.looks
        self._tracker.find_with(detector)
        self._people.recognise_with(recogniser)
        released = self.line.update(*self._looks)  # and what comes before is not in use any more, the detector neither
        self._retired += [(released, self._tracking), (released, self._worn)]
        self._tracking, self._worn = tracking, worn
        released.wait(RELEASE_S)
        self._close_retired()

    def _check(self, looks: Sequence[Look]) -> None:
        """Raises ``DeviceError`` for a look that cannot be composed where it is to be."""
        for name, compositor, look in zip(self.settings.run.devices, self._compositors, looks, strict=True):
            if compositor is None:
                continue
            why = compositor.refusal(look)
            if why:
                raise DeviceError(f"{name} cannot show this look: {why}; choose another --device, or leave that out")

    def _close_retired(self) -> None:
        for released, parts in self._retired:
            if released.is_set():
                parts.close()
        self._retired = [(released, parts) for released, parts in self._retired if not released.is_set()]

    def _close_parts(self) -> None:
        """The line has ended: nobody uses any."""
        for parts in (self._tracking, self._worn, *(parts for _, parts in self._retired)):
            parts.close()
        close_embedded(self._mesh)
        self._retired.clear()

    def _uses(self) -> tuple[ModelUse, ...]:
        """Of what is worn and of what finds faces, each model once."""
        found = (*self._tracking.uses(), *embedded_uses(self._mesh), *self._worn.uses())
        return tuple({(use.model, use.runtime): use for use in found}.values())

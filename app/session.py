"""LiveSession: builds a line from Settings, runs it, changes it while it runs, and reports. Window and command line use this alone."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from typing import Any

import cv2
from threadpoolctl import threadpool_limits

from app import build
from app.report import build_report
from app.settings import Settings
from app.usage import UsageSampler
from engines.device.host import HostDevice
from engines.landmarks.facemesh import FaceMesh
from rt.audio import AudioBus
from rt.clock import Clock, MonotonicClock
from rt.lane import Lane, Witness
from rt.line import Line
from rt.metrics import Metrics, Snapshot
from rt.sinks.contract import Sink

log = logging.getLogger(__name__)

SWITCH_INTERVAL_S = 0.0005
"""How long one Python thread may keep another from running. The default, 5 ms, is a sixth of a frame at 30 fps."""


def limit_threads() -> None:
    """One thread for each linear algebra and OpenCV call: they are small, and the line's own threads are the parallelism.

    Unlimited on two cores, two matrix products of a swap took twenty times as long.
    """
    threadpool_limits(1, user_api="blas")
    cv2.setNumThreads(1)


class LiveSession:
    """One run. Made, started, stopped and asked by one thread, but for ``metrics``, which any thread may ask."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, witness: Witness | None = None, further_sinks: Sequence[Sink] = ()
    ) -> None:
        """Loads the models and prepares the identity: seconds. Raises ``AppError``, ``RtError`` or ``EngineError``.

        ``further_sinks``: beside those that Settings name, as a window's preview.
        """
        self.settings = settings
        self._clock = clock or MonotonicClock()
        self._metrics = Metrics()
        self._usage = UsageSampler()
        audio = AudioBus()
        limit_threads()
        self._source = build.source(settings, self._clock)
        sinks = [*build.sinks(settings, self._clock, audio), *further_sinks]
        detector, mesh = build.detector(settings), FaceMesh()
        look = build.look(settings, detector, mesh)
        self._tracker = build.tracker(settings, detector, mesh)
        lane = Lane(HostDevice(), self._tracker, self._metrics, self._clock, slow_ms=settings.run.slow_ms, witness=witness)
        self.line = Line(self._source, lane, sinks, look, self._clock, self._metrics, audio, burn_timecode=settings.input.timecode)
        self._started_ns = 0
        self._ended_ns: int | None = None

    def start(self) -> None:
        """Returns once pictures flow. Raises ``SourceError``."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.freeze()  # what lives now lives to the end: no need to look at it again while live
        self._usage.start()
        try:
            self.line.start()
        except BaseException:  # raised on: nothing of the session is left running
            self._usage.stop()
            gc.unfreeze()
            raise
        self._started_ns = self._clock.now_ns()

    def update(self, settings: Settings) -> None:
        """Wears other photos, another swapper or another look from the next frame on; what else differs takes a new session.

        Prepares first, on the calling thread (tenths of a second; the line goes on meanwhile), so a photo that cannot be used changes
        nothing. Raises as the constructor does.
        """
        look = build.look(settings, build.detector(settings), FaceMesh())
        self._tracker.configure(build.track_options(settings))
        self.line.update(look)
        self.settings = self.settings.model_copy(update={"source": settings.source, "look": settings.look})

    def wait(self, timeout_s: float | None) -> bool:
        """True once the line has come to its end."""
        return self.line.wait(timeout_s)

    def request_stop(self) -> None:
        """Asks for the end and returns at once; fit for a signal handler."""
        self.line.stop()

    def close(self) -> None:
        """Ends the line, waits for its threads and for what is still being written."""
        self.line.stop()
        self.line.wait()
        self._ended_ns = self._clock.now_ns()
        self.line.join()
        self._usage.stop()
        gc.unfreeze()

    def metrics(self) -> Snapshot:
        """The numbers of this moment. Any thread."""
        return self._metrics.snapshot()

    def report(self) -> dict[str, Any]:
        """JSON-ready; after ``close``."""
        seconds = ((self._ended_ns or self._clock.now_ns()) - self._started_ns) / 1e9
        return build_report(self.settings, self.line, self.metrics(), self._usage, seconds, self._source.describe())

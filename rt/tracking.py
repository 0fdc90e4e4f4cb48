"""What is done with every frame in the order of capture, before it is dealt to a lane: its faces are found and get their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from rt.clock import Clock
from rt.frame import FaceState, Frame, TrackedFace
from rt.metrics import Metrics
from rt.stage import Stages


class FaceTracker(Protocol):
    """What the line needs of a tracker (``rt.track.tracker.Tracker``), with or without ``rt.track.people.People`` before it."""

    patience: int
    """Set between two updates, see ``Look.patience``."""

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        """The faces of this picture (uint8 [H, W, 3] BGR), called in the order of capture."""
        ...


class Tracking:
    """One thread."""

    def __init__(self, tracker: FaceTracker, metrics: Metrics, clock: Clock, *, slow_ms: Mapping[str, float] | None = None) -> None:
        """``slow_ms``: as ``rt.stage.Stages`` takes it; this stage is called ``track``."""
        self._tracker = tracker
        self._metrics = metrics
        self._stages = Stages(clock, slow_ms)

    def process(self, frame: Frame, patience: int = 1) -> None:
        """Says whose faces are where in ``frame``, whose pixels are as they were captured. ``patience``: as ``Look.patience``.

        One that stands in for a picture has none, and the tracker remembers what was before it.
        """
        if frame.stands_in:
            return
        self._tracker.patience = patience
        self._stages.run("track", self._track, frame)

    def _track(self, frame: Frame) -> None:
        frame.faces = self._tracker.update(frame.pixels, frame.captured_ns)
        self._metrics.count("lost_frames", any(face.state is not FaceState.SEEN for face in frame.faces))
        self._metrics.high_water("faces", max((face.id for face in frame.faces), default=0))

"""What the line does with a frame between capture and sinks, without threads of its own: for tests of what is shown."""

from __future__ import annotations

from typing import Any

from engines.device.contract import Device
from engines.device.host import HostDevice
from rt.clock import Clock, MonotonicClock
from rt.compose.lost import LastGood
from rt.frame import Frame
from rt.lane import Lane
from rt.metrics import Metrics
from rt.options import Look
from rt.tracking import FaceTracker, Tracking


class OneLane:
    """Tracking, a lane and the freeze policy, one frame after the other."""

    def __init__(self, tracker: Any, device: Device | None = None, clock: Clock | None = None) -> None:
        clock = clock or MonotonicClock()
        found: FaceTracker = tracker
        self._tracking = Tracking(found, Metrics(), clock)
        self.lane = Lane(device or HostDevice(), clock)
        self._last_good = LastGood()

    def process(self, frame: Frame, look: Look) -> Frame:
        """What is shown for ``frame``; its slot is taken over."""
        self._tracking.process(frame, look.patience)
        self.lane.process(frame, look)
        return self._last_good.shown_for(frame)

    def close(self) -> None:
        self._last_good.clear()
        self.lane.close()

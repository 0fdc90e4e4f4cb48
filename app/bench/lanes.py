"""What several lanes gain: the real line over devices of declared times, so that no GPU is needed and the processor is hardly used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app import build
from app.report import machine, versions
from app.settings import Settings
from engines.device.simulated import SimulatedDevice
from engines.landmarks.facemesh import FaceMesh
from engines.wording import counted
from rt.audio import AudioBus
from rt.capture import CaptureRequest, open_spec
from rt.clock import MonotonicClock
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look
from rt.sinks.null import NullSink
from rt.tracking import Tracking

STEPS = 2
"""Pieces of work on a lane's compute stream where nothing is worn: swap and hide."""

WARM_UP = 5
"""Frames of each run before it is measured."""


def run_lanes_bench(lanes: Sequence[int], ms: float, frames: int, progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """JSON-ready: ``runs`` (of each number of lanes), ``ms`` that a device takes for a frame, ``versions``, ``machine``.

    Each run measures ``frames`` pictures of a camera that is quicker than all lanes together.
    """
    runs = []
    for done, count in enumerate(lanes):
        progress(done, len(lanes), counted(count, "lane"))
        runs.append(_run(count, ms, frames))
    progress(len(lanes), len(lanes), "done")
    for run in runs:
        run["gain"] = round(run["fps"] / runs[0]["fps"], 3)
    return {"runs": runs, "ms": ms, "frames": frames, "versions": versions(), "machine": machine()}


def _run(count: int, ms: float, frames: int) -> dict[str, Any]:
    clock, metrics, settings = MonotonicClock(), Metrics(), Settings()
    devices = [SimulatedDevice({"compute": ms / STEPS}, f"simulated:{number}") for number in range(count)]
    here = build.parts(settings)
    tracker = build.tracker(settings, build.detector(settings, here), FaceMesh())
    sink = _Counting(clock)
    line = Line(
        open_spec(f"synthetic:size=320x180,fps={min(500, 3 * count * 1000 / ms):.0f}", CaptureRequest(), clock),
        Tracking(tracker, metrics, clock),
        [Lane(device, clock) for device in devices],
        [sink],
        [Look()],
        clock,
        metrics,
        AudioBus(),
        burn_timecode=True,
    )
    line.start()
    try:
        while not sink.has(WARM_UP + frames) and not line.wait(0.005):
            pass
    finally:
        line.stop()
        line.wait()
        line.join()
        here.close()
    if line.error is not None:
        raise line.error
    seen = metrics.snapshot()
    return {
        "lanes": count,
        "fps": round(sink.fps(WARM_UP, frames), 3),
        "age_ms": seen.age_ms[sink.name],
        "late": seen.dropped.get("late", 0),
        "out_of_order": sink.statistics()["out_of_order"],
        "frames": {name: lane["frames"] for name, lane in line.lanes.facts().items()},
    }


class _Counting(NullSink):
    """Keeps when each frame came."""

    def __init__(self, clock: MonotonicClock) -> None:
        super().__init__(clock)
        self._now_ns = clock.now_ns
        self._came_ns: list[int] = []  # the sink's thread appends, others read

    def write(self, frame: Any) -> None:
        super().write(frame)
        self._came_ns.append(self._now_ns())

    def has(self, frames: int) -> bool:
        return len(self._came_ns) > frames

    def fps(self, first: int, frames: int) -> float:
        """Over so many frames from ``first`` on."""
        return frames / ((self._came_ns[first + frames] - self._came_ns[first]) / 1e9)

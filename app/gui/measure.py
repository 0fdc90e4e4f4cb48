"""What the window costs: `ffrt bench gui`. How soon it is there, what the preview takes from the line, and how much of a core it all is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.errors import AppError
from app.gui import theme
from app.gui.live import LiveState
from app.gui.watchdog import Watchdog
from app.gui.window import Window
from app.report import machine, versions
from app.settings import Settings
from app.usage import process_age_s
from rt.sinks.preview import Picture, PreviewSink

LIMITS = {
    "window_s": 2.0,
    "lane_ms": 1.0,
    "added_age_ms": 33.3,
    "share_of_a_core": 0.15,
}
"""What is to be kept, at 720p30 on software OpenGL: a frame's time is that of 30 a second."""

PATIENCE_S = 120.0
TURN_MS = 20


def run_gui_bench(settings: Settings, seconds: float, progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """JSON-ready: ``window_s`` (from the start of the process until the window is shown), ``lane_ms`` (what the lane spends on the picture
    before the work, which before | after needs), ``sink_ms`` (the preview's own thread), ``added_age_ms`` (on screen, beyond the null
    sink), ``share_of_a_core`` (the window's thread), ``watchdog``, ``limits``. Of times: median and 95th percentile.

    Main thread, once a process. ``settings`` need the null sink. Raises ``AppError`` where the line does not come up.
    """
    application = QApplication.instance() or QApplication(["ffrt"])
    assert isinstance(application, QApplication)
    theme.apply(application, theme.LIGHT)
    progress(0, 2, "opening the window")
    window = Window(settings, theme.LIGHT)
    window.show()
    _until(lambda: window.windowHandle() is not None and window.windowHandle().isExposed(), "the window")
    window_s = process_age_s()
    try:
        progress(1, 2, "live")
        return {"window_s": round(window_s, 3), **_live(window, seconds), "limits": LIMITS, "versions": versions(), "machine": machine()}
    finally:
        window.close()
        progress(2, 2, "done")


def _live(window: Window, seconds: float) -> dict[str, Any]:
    """Before | after is on: the most that the preview does."""
    ages_ms: list[float] = []
    lane, sink = _timed(window.control.preview, "before"), _timed(window.control.preview, "write")

    def note(picture: Picture) -> None:
        ages_ms.append((time.monotonic_ns() - picture.captured_ns) / 1e6)

    window.preview.set_split(0.5)
    window.preview.shown.connect(note)
    window.control.go(True)
    _until(lambda: len(ages_ms) >= 10 or bool(window.message.text()), "pictures")
    if window.state is not LiveState.LIVE:
        raise AppError(f"the line did not come up: {window.message.text()}")
    for values in (ages_ms, lane, sink):
        values.clear()  # the first are those of a line that warms up
    dog = Watchdog()
    dog.start()
    begun_s, worked_s = time.monotonic(), time.thread_time()
    until_s = begun_s + seconds
    _until(lambda: time.monotonic() >= until_s, "the end", patience_s=seconds + PATIENCE_S)
    share = (time.thread_time() - worked_s) / (time.monotonic() - begun_s)
    dog.stop()
    snapshot = window.control.studio.metrics()
    drawing = window.preview.drawing
    window.control.go(False)
    _until(lambda: window.state is LiveState.IDLE, "the end of the line")
    null_ms = 0.0 if snapshot is None else snapshot.age_ms.get("null", {}).get("p50", 0.0)
    return {
        "lane_ms": _summary(lane),
        "sink_ms": _summary(sink),
        "added_age_ms": _summary([age - null_ms for age in ages_ms]),
        "share_of_a_core": round(share, 3),
        "pictures": len(ages_ms),
        "drawing": drawing,
        "watchdog": dog.facts(),
    }


def _timed(sink: PreviewSink, name: str) -> list[float]:
    """Milliseconds of every call of the method from now on."""
    spent_ms: list[float] = []
    method = getattr(sink, name)

    def measured(frame: Any) -> None:
        begun_ns = time.perf_counter_ns()
        method(frame)
        spent_ms.append((time.perf_counter_ns() - begun_ns) / 1e6)

    setattr(sink, name, measured)
    return spent_ms


def _summary(values_ms: list[float]) -> dict[str, float]:
    if not values_ms:
        return {}
    return {name: round(float(np.percentile(values_ms, part)), 3) for name, part in (("p50", 50), ("p95", 95))}


def _until(holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """The event loop comes round meanwhile. Raises ``AppError``."""
    deadline_s = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline_s:
            raise AppError(f"waited {patience_s:g} s for {what} in vain")
        loop = QEventLoop()
        QTimer.singleShot(TURN_MS, loop.quit)
        loop.exec()

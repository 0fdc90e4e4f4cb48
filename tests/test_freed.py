"""What has ended is gone: a run at once and without the garbage collector, a window when it is deleted."""

from __future__ import annotations

import collections
import gc
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import HOPPER
from PySide6.QtCore import QCoreApplication, QEvent

from app.gui import theme
from app.gui.live import LiveState
from app.gui.window import Window
from app.session import LiveSession
from app.settings import InputSettings, Settings, SourceSettings
from app.studio import Studio
from rt.frame import Frame, VideoFormat

SETTINGS = Settings(input=InputSettings(spec="synthetic:size=320x240,fps=60"), source=SourceSettings(photos=(HOPPER,)))
PATIENCE_S = 60


@contextmanager
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Counting:
    """A sink that says when it has got some pictures, and keeps none."""

    name = "counting"
    lossless = False

    def __init__(self) -> None:
        self.has_some = threading.Event()
        self._frames = 0

    def open(self, video: VideoFormat) -> None:
        self._frames = 0
        self.has_some.clear()

    def write(self, frame: Frame) -> None:
        self._frames += 1
        if self._frames == 5:
            self.has_some.set()

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None: ...

    def close(self) -> None: ...

    def statistics(self) -> dict[str, Any]:
        return {}


def parts_of(session: LiveSession) -> dict[str, weakref.ref[Any]]:
    line = session.line
    assert line._ring is not None
    held = {
        "session": session,
        "line": line,
        "ring": line._ring,
        "lane": line.lanes._runners[0].lane,
        "runner": line.runners[0],
        "swapper": session._looks[0].swapper,
        "worn": session._worn,
        "mesh": session._mesh,
        "source": session._source,
    }
    return {name: weakref.ref(part) for name, part in held.items()}


def has_ended(window: Window, parts: dict[str, weakref.ref[Any]]) -> bool:
    return window.state is LiveState.IDLE and not left_of(parts)


def left_of(parts: dict[str, weakref.ref[Any]]) -> list[str]:
    return [name for name, ref in parts.items() if ref() is not None]


def test_nothing_is_left_of_a_run_that_was_stopped() -> None:
    """The second: while loops over pixels are compiled, the compiler keeps errors it has caught, and with them who called it."""
    sink = Counting()
    studio = Studio(SETTINGS, further_sinks=(sink,))
    studio.start()
    assert sink.has_some.wait(PATIENCE_S)
    studio.stop()
    with no_collector():
        studio.start()
        assert sink.has_some.wait(PATIENCE_S)
        assert studio.session is not None
        parts = parts_of(studio.session)
        assert left_of(parts) == list(parts)
        studio.stop()
        assert left_of(parts) == []


def test_runs_one_after_the_other_leave_nothing() -> None:
    """Each with pictures of another size: what was left of one would be there once more after the next."""
    sink = Counting()
    studio = Studio(SETTINGS, further_sinks=(sink,))
    studio.start()
    counts = []
    for width in range(320, 320 + 16 * 5, 16):
        studio.revise(lambda settings, width=width: resized(settings, width))  # type: ignore[misc]
        assert sink.has_some.wait(PATIENCE_S)
        counts.append(held())
    studio.stop()
    more = counts[-1] - counts[1]
    assert more.pop("rt.track.people.Person", 0) <= 3, "one a run: nobody recognises anybody"
    assert [name for name, count in more.items() if count >= 3] == [], "one or more for each of the last three runs"


def resized(settings: Settings, width: int) -> Settings:
    return settings.model_copy(update={"input": InputSettings(spec=f"synthetic:size={width}x240,fps=60")})


def held() -> collections.Counter[str]:
    """How many there are of each kind of ours, of what Python's collector knows."""
    gc.collect()
    names = (f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    return collections.Counter(name for name in names if name.startswith(("app.", "rt.", "engines.", "threading.")))


def test_nothing_is_left_of_a_window_that_was_closed(qapp: Any, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """…and minimised a moment before, so that something waits to be done when it is deleted."""
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    window = Window(SETTINGS, theme.LIGHT)
    window.show()
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_S * 1000):
        window.live_button.click()
    session = window.control.studio.session
    assert session is not None
    parts = parts_of(session)
    del session
    window.live_button.click()
    qtbot.waitUntil(partial(has_ended, window, parts), timeout=PATIENCE_S * 1000)
    kept = (window, window.control, window.control.studio, window.preview, window.jobs, window.face, *window.cards)
    parts = {type(part).__name__: weakref.ref(part) for part in kept}
    job = window.bench.jobs.begin("done at once", lambda: None)
    job.end()
    window.jobs._refresh()
    window.showMinimized()
    window.close()
    window.deleteLater()
    del window, kept, job
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.unfreeze()  # the window was there when its line loaded
    gc.collect()
    assert left_of(parts) == []

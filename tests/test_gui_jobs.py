"""The list of long work in the window: a model is fetched from a slow server and called off, a camera that does not open is given up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from file_server import Site, serve
from PySide6.QtCore import QElapsedTimer, QTimer
from store_files import model_bytes

from app.gui import theme
from app.gui.cards.look import EdgeCard
from app.gui.jobs_panel import LINES_MAX, JobsPanel, amount_of, left_text
from app.gui.live import LiveState
from app.gui.window import Window
from app.jobs import JobState, JobView
from app.settings import InputSettings, Settings
from engines.store.catalog import load_catalog

PATIENCE_MS = 60_000
DATA = model_bytes(weights=256)
MODEL = "xseg_1"


@pytest.fixture
def site() -> Iterator[Site]:
    """Gives the half of one model, and says no more."""
    with serve() as site:
        path = load_catalog()[MODEL].mirror_path
        site.put(f"/{path}", DATA, hold_after=len(DATA) // 2)
        site.put(f"/{path.replace('.onnx', '.hash')}", b"00000000")  # its check sum
        yield site


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("FFRT_MIRROR", site.base)
    theme.apply(qapp, theme.LIGHT)
    made = Window(Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30")), theme.LIGHT)
    made.resize(1280, 820)
    made.pages.open_named("look")
    made.show()
    yield made
    made.close()


def keep(window: Window, name: str) -> None:
    folder = os.environ.get("FFRT_SCREENSHOTS")
    if folder:
        window.grab().save(str(Path(folder) / f"{name}.png"))


def test_a_model_is_fetched_after_a_word_about_its_licence_and_called_off(window: Window, qtbot: Any, site: Site) -> None:
    (edges,) = (card for card in window.cards if isinstance(card, EdgeCard))
    qtbot.waitUntil(lambda: edges.fetch is not None and not edges.fetch.isHidden(), timeout=PATIENCE_MS)
    assert edges.fetch is not None
    (action,) = (action for action in edges.fetch.menu().actions() if action.text() == MODEL)
    action.trigger()
    qtbot.waitUntil(lambda: "Licence" in window.message.text(), timeout=PATIENCE_MS)
    assert site.asked(f"/{load_catalog()[MODEL].mirror_path}") == [], "nothing is fetched before somebody has said so"
    window.message.action.click()
    panel = window.jobs
    qtbot.waitUntil(lambda: len(panel.lines) == 1, timeout=PATIENCE_MS)
    ((number, line),) = panel.lines.items()
    qtbot.waitUntil(lambda: "MB" in line.words.text(), timeout=PATIENCE_MS)
    assert line.bar.value() in range(1, line.bar.maximum())
    keep(window, "jobs_fetching")
    line.end.click()
    qtbot.waitUntil(lambda: window.jobs.jobs.views()[0].state is JobState.CANCELLED, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: "kept" in line.words.text(), timeout=PATIENCE_MS)
    assert not site.release.is_set()
    assert line.end.accessibleName() == f"Take {MODEL} off the list"
    line.end.click()
    qtbot.waitUntil(lambda: number not in panel.lines, timeout=PATIENCE_MS)
    assert panel.isHidden()


def test_the_window_lives_while_a_download_reports(window: Window, qtbot: Any) -> None:
    """A thousand reports a moment are a few pictures of the list."""
    job = window.jobs.jobs.begin("big")
    seen = []
    window.jobs._soon.timeout.connect(lambda: seen.append(1))
    clock = QElapsedTimer()
    clock.start()
    for done in range(5000):
        job.report(done, 5000, "here")
    turn: list[int] = []
    QTimer.singleShot(0, lambda: turn.append(1))
    qtbot.waitUntil(lambda: bool(turn) and bool(window.jobs.lines), timeout=PATIENCE_MS)
    assert len(seen) <= 1 + clock.elapsed() / 100
    job.end()


def test_opening_a_camera_is_listed_and_given_up(window: Window, qtbot: Any) -> None:
    states = []
    window.control.state_changed.connect(states.append)
    window.live_button.click()
    qtbot.waitUntil(lambda: LiveState.STARTING in states, timeout=PATIENCE_MS)
    (view,) = window.jobs.jobs.views()
    assert view.title.startswith("Opening the camera")
    window.jobs.jobs.cancel(view.number)
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert window.jobs.jobs.views() == ()


def test_a_long_list_is_counted(qtbot: Any, qapp: Any) -> None:
    panel = JobsPanel()
    qtbot.addWidget(panel)
    jobs = [panel.jobs.begin(f"model {number}") for number in range(LINES_MAX + 2)]
    qtbot.waitUntil(lambda: len(panel.lines) == LINES_MAX, timeout=PATIENCE_MS)
    assert panel._more.text() == "and 2 more"
    for job in jobs:
        job.end(ValueError("no"))
        panel.jobs.forget(job.view.number)
    qtbot.waitUntil(lambda: not panel.lines, timeout=PATIENCE_MS)


def test_what_failed_stays_with_its_words(qtbot: Any, qapp: Any) -> None:
    panel = JobsPanel()
    qtbot.addWidget(panel)
    job = panel.jobs.begin("x")
    job.end(ValueError("no room"))
    qtbot.waitUntil(lambda: bool(panel.lines), timeout=PATIENCE_MS)
    line = panel.lines[job.view.number]
    assert line.words.text() == "ValueError: no room"
    line.end.click()
    qtbot.waitUntil(lambda: not panel.lines, timeout=PATIENCE_MS)


def test_words_of_amount_and_time(qapp: Any) -> None:
    def view(done: int, total: int | None, unit: str = "") -> JobView:
        return JobView(1, "x", JobState.RUNNING, "", done, total, unit)

    assert amount_of(view(3_100_000, 554_000_000, "B")) == "3.1 of 554.0 MB"
    assert amount_of(view(2, 4)) == "2 of 4"
    assert amount_of(view(3_100_000, None, "B")) == "3.1 MB"
    assert amount_of(view(0, None)) == ""
    assert [left_text(s) for s in (None, 0.2, 42.4, 61, 1500)] == ["", "1 s left", "42 s left", "1 min left", "25 min left"]

"""The truth on screen: what the line measured is what is shown, with what was given up, what was dropped where, and what runs where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import HOPPER
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from test_gui_pages import Long, cut_off, keep

from app.gui import theme
from app.gui.cards.numbers import (
    Table,
    age_words,
    change_words,
    drops,
    given_up_words,
    memory_words,
    place_words,
    runner_words,
    why_words,
)
from app.gui.chart import HISTORY, TOP_MS, AgeChart
from app.gui.live import LiveState, Pulse
from app.gui.numbers import clock_text
from app.gui.window import Window
from app.gui.words import Words
from app.settings import InputSettings, LookSettings, OutputSettings, PeopleSettings, PersonSettings, RunSettings, Settings, SourceSettings
from app.vitals import Vitals
from engines.session import ModelUse
from rt.budget import STEPS
from rt.economy import Change
from rt.metrics import RECENT_FRAMES, Metrics, Samples
from rt.track.people import THUMBNAIL_PX, Person

PATIENCE_MS = 60_000
SECOND_NS = 1_000_000_000


@pytest.fixture(autouse=True)
def kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))


# --- what is measured ---


@given(st.lists(st.floats(0, 1000, width=32), max_size=40), st.integers(1, 20), st.integers(1, 30))
def test_the_last_samples_are_the_last(values: list[float], capacity: int, count: int) -> None:
    samples = Samples(capacity)
    for value in values:
        samples.add(value)
    kept = values[-min(count, capacity) :]
    assert sorted(samples.last(count).tolist()) == sorted(np.float32(kept).tolist())


def test_recent_stages_forget_what_was_long_ago() -> None:
    metrics = Metrics()
    metrics.stages({"swap": 900_000_000})
    for _ in range(RECENT_FRAMES):
        metrics.stages({"swap": 5_000_000})
    assert metrics.recent_stages_ms() == {"swap": {"p50": 5.0, "p95": 5.0, "max": 5.0}}
    assert metrics.snapshot().stages_ms["swap"]["max"] == 900.0
    assert Metrics().recent_stages_ms() == {}


# --- words ---


def vitals(age_p95_ms: float | None, budget_ms: float) -> Vitals:
    return Vitals(age_p95_ms, budget_ms, {}, (), (), 0.0)


def test_age_is_said_against_the_budget(qapp: Any) -> None:
    assert age_words(vitals(None, 100)) == ""
    assert age_words(vitals(63.4, 100)) == "63 ms (p95 of the last second), of 100 ms allowed."
    assert "nothing is given up" in age_words(vitals(630, 0))


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_said_in_words_of_what_is_seen(step: str, qapp: Any) -> None:
    words = given_up_words([step])
    assert step not in words
    down = Change(SECOND_NS, step, True, "age p95 141 ms", 140.6)
    assert change_words(down, 76 * SECOND_NS) == f"1:15 ago: {words.partition(': ')[2]} (pictures were 141 ms old)"
    back = Change(SECOND_NS, step, False, "no memory left")
    assert change_words(back, SECOND_NS).endswith("(no memory left)")
    assert given_up_words([]) == ""


def test_drops_are_told_by_place(qapp: Any) -> None:
    metrics = Metrics()
    for place in ("infer", "sink:stream", "infer"):
        metrics.drop(place, 0)
    counts = drops(metrics.snapshot(), {"missed": 4})
    assert counts == {"camera": 4, "capture": 0, "infer": 2, "sink:stream": 1}
    assert place_words("sink:stream") == "At the output stream"
    assert drops(metrics.snapshot(), {"missed": None})["camera"] == 0


def test_what_runs_where_and_why_not_better(qapp: Any) -> None:
    here = ModelUse("a", "ort:CPUExecutionProvider", "not rtx: no GPU", 12_000_000)
    others = (ModelUse("b", "rtx:1.2", "", None), ModelUse("c", "ort:CUDAExecutionProvider", "not rtx: no GPU", None))
    assert [runner_words(model) for model in (here, *others)] == ["Processor", "rtx:1.2", "Graphics card (CUDA)"]
    assert why_words([here, *others]) == "a, c: not rtx: no GPU"
    assert (memory_words(here.memory_bytes), memory_words(None)) == ("12 MB", "–")


# --- chart and table ---


def test_a_table_shows_rows_as_they_come_and_go(qtbot: Any) -> None:
    table = Table("", "median")
    qtbot.addWidget(table)
    for rows in ([("a", "1"), ("b", "2")], [("a", "3")], [], [("c", "4"), ("d", "5"), ("e", "6")]):
        table.show_rows(rows)
        assert table.rows() == rows


@given(st.lists(st.floats(0, 5000), max_size=2 * HISTORY), st.floats(0, 500))
def test_every_age_lies_within_the_chart_and_the_budget_where_ages_come_near(qapp: Any, ages: list[float], budget_ms: float) -> None:
    chart = AgeChart(lambda: theme.LIGHT)
    for age in ages:
        chart.add(age)
    chart.show_budget(budget_ms)
    kept = ages[-HISTORY:]
    assert list(chart.ages_ms) == kept
    assert chart.top_ms >= max([TOP_MS, *kept])
    if kept and max(kept) > 0.5 * budget_ms:
        assert chart.top_ms >= budget_ms


def test_the_budget_is_a_line_of_the_chart(qtbot: Any) -> None:
    chart = AgeChart(lambda: theme.LIGHT)
    qtbot.addWidget(chart)
    chart.resize(300, 100)
    for _ in range(HISTORY):
        chart.add(60.0)
    chart.show_budget(100.0)
    image = chart.grab().toImage()
    row = round(97 * (1 - 100 / 110) + 1)
    colours = {image.pixelColor(x, row).name() for x in range(image.width())}
    assert QColor(theme.LIGHT.warn).name() in colours


# --- in the window ---


@pytest.fixture
def late(qtbot: Any, qapp: Any) -> Iterator[Window]:
    """A line too slow for its budget, with something to give up."""
    theme.apply(qapp, theme.LIGHT)
    settings = Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=320x180,fps=15"),
        look=LookSettings(max_faces=3),
        output=OutputSettings(null=True),
        run=RunSettings(budget_ms=30, slow_ms={"swap": 60.0}),
    )
    window = Window(settings, theme.LIGHT)
    window.resize(1280, 820)
    window.show()
    window.pages.open_named("numbers")
    window.toggle_live()
    yield window
    window.close()


def test_a_step_down_is_shown_with_what_and_why(late: Window, qtbot: Any) -> None:
    qtbot.waitUntil(lambda: late.numbers.given_up.isVisible(), timeout=PATIENCE_MS)
    idle, age, drops_card, stages, runs = late.truth
    assert idle.isHidden()
    qtbot.waitUntil(lambda: "ago" in age.changes.text(), timeout=PATIENCE_MS)
    assert "looked for less often" in late.numbers.given_up.text()
    assert "looked for less often" in age.given_up.text()
    assert "ms old" in age.changes.text()
    assert "of 30 ms allowed" in age.now.text()
    assert {row[0] for row in stages.table.rows()} == {"Taking over", "Finding faces", "Swapping", "Hiding"}
    assert float(next(row for row in stages.table.rows() if row[0] == "Swapping")[1]) >= 60
    assert [row[0].partition("\n")[0] for row in runs.table.rows()][:2] == ["face_detection_full_range_sparse", "face_landmark"]
    assert "embedded models" in runs.why.text()
    assert any(character.isdigit() for character in runs.memory.text())
    assert len(drops_card.table.rows()) >= 3
    late.toggle_live()
    qtbot.waitUntil(lambda: not late.numbers.given_up.isVisible(), timeout=PATIENCE_MS)
    assert late.numbers.values["age"].text() == "–"


class Paints(QObject):
    """Counts how often a widget is painted."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        self.count += event.type() is QEvent.Type.Paint
        return False


def test_the_chart_is_drawn_with_the_pulse_and_not_with_every_picture(late: Window, qtbot: Any) -> None:
    paints, pulses, pictures = Paints(), [], []
    late.numbers.chart.installEventFilter(paints)
    late.control.pulsed.connect(pulses.append)
    late.preview.shown.connect(pictures.append)
    qtbot.waitUntil(lambda: len(pulses) >= 6, timeout=PATIENCE_MS)
    assert len(pictures) > len(pulses)
    assert paints.count <= len(pulses) + 3  # layout, once the first note comes


# --- how it looks ---


def busy_pulse() -> Pulse:
    """A line in trouble, with several people before it."""
    metrics = Metrics()
    for place in ("capture", "infer", "sink:stream", "sink:virtual-camera"):
        for _ in range(1234):
            metrics.drop(place, 0)
    stages = {name: {"p50": 12.3, "p95": 145.6, "max": 200.0} for name in ("capture", "track", "swap", "enhance", "hide", "badge")}
    at_ns = 1000 * SECOND_NS
    changes = tuple(Change(at_ns - number * 77 * SECOND_NS, step, True, "", 140.0) for number, step in enumerate(STEPS))
    reason = "not rtx: tensorrt-rtx is not installed; not ort-cuda: onnxruntime has no CUDA provider"
    names = ("hyperswap_1a_256", "restoreformer_plus_plus_of_a_very_long_name", "face_detection_full_range_sparse")
    models = tuple(ModelUse(name, "ort:CPUExecutionProvider", reason, 554_253_681) for name in names)
    picture = np.full((THUMBNAIL_PX, THUMBNAIL_PX, 3), 120, np.uint8)
    people = tuple(Person(number, picture, number != 2, frozenset({1}) if number > 2 else frozenset()) for number in range(1, 6))
    return Pulse(at_ns, metrics.snapshot(), {}, "1280x720@30", {}, models, Vitals(141.0, 100.0, stages, STEPS, changes, 1234.0), people, "")


def show_busy(window: Window) -> None:
    """As while live, without a line: what is shown is the pulse's alone."""
    window.apply(lambda settings: settings.model_copy(update={"people": PeopleSettings().only(1)}))
    window.apply(lambda settings: settings.model_copy(update={"people": settings.people.with_person(PersonSettings(number=2))}))
    window._become(LiveState.LIVE)
    for age_ms in np.linspace(20, 160, HISTORY):
        window.numbers.add_age(float(age_ms))
        for card in window.truth:
            card.add_age(float(age_ms))
    window._show_pulse(busy_pulse())


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft], ids=["ltr", "rtl"])
@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("language", ["en", "de", "zh", "long"])
def test_people_and_numbers_in_every_language(
    qtbot: Any, qapp: Any, language: str, colours: theme.Theme, direction: Qt.LayoutDirection
) -> None:
    words = Long() if language == "long" else Words(language)
    qapp.installTranslator(words)
    qapp.setLayoutDirection(direction)
    theme.apply(qapp, colours)
    window = Window(Settings(source=SourceSettings(photos=(HOPPER,)), look=LookSettings(max_faces=4)), colours)
    try:
        window.resize(1100, 700)
        window.show()
        window.pages.open_named("numbers")
        show_busy(window)
        qtbot.waitUntil(lambda: all(chip.isVisible() for chip in window.people.chips.values()))
        show_busy(window)  # the page is in sight by now
        bar = window.truth[0].parentWidget().parentWidget().parentWidget().verticalScrollBar()  # type: ignore[union-attr, attr-defined]
        colour = "light" if colours is theme.LIGHT else "dark"
        for end, place in (("top", bar.minimum()), ("end", bar.maximum())):
            bar.setValue(place)
            QApplication.processEvents()
            keep(window, f"busy_{language}_{direction.name}_{colour}_{end}")
            assert cut_off(window) == []
        for chip in window.people.chips.values():
            assert chip.width() >= chip.sizeHint().width()
        assert len(window.people.chips) == 5
        assert window.truth[-1].table.rows()  # type: ignore[attr-defined]
    finally:
        window.close()
        qapp.removeTranslator(words)
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def test_what_was_measured_is_there_for_who_looks_later(late: Window, qtbot: Any) -> None:
    """Another page was open all the while."""
    window = late
    window.pages.open_named("face")
    qtbot.waitUntil(lambda: window.numbers.values["live"].text() not in ("–", "0:00"), timeout=PATIENCE_MS)
    window.toggle_live()
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    window.pages.open_named("numbers")
    tables = [card.table.rows() for card in window.truth if hasattr(card, "table")]
    assert all(tables)
    assert window.numbers.values["live"].text() == "–"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (7, "0:07"), (754, "12:34"), (3723, "1:02:03"), (360_000, "100:00:00")])
def test_the_clock(seconds: int, text: str) -> None:
    assert clock_text(seconds) == text

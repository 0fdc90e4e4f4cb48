"""Numbers: the truth about the line. How old pictures are and what was given up for that, what was dropped where, what runs where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.gui.cards.card import Bench, Card, note, show_note
from app.gui.chart import AgeChart
from app.gui.live import LiveState, Pulse
from app.gui.told import told, told_reasons
from app.gui.words import later, tr
from app.vitals import Vitals
from engines.session import ModelUse
from rt.economy import Change
from rt.metrics import Snapshot

CHANGES_SHOWN = 5

STEPS = {
    "detect less often": later("New faces are looked for less often"),
    "enhancer off": later("The enhancer is off"),
    "smaller swap": later("The face is drawn at its own size"),
    "fewer faces": later("One face is swapped, further ones are hidden"),
}
"""In the words of what a viewer sees."""

PLACES = {
    "camera": later("In the camera, before ffrt had them"),
    "capture": later("At the start: every place was taken"),
    "infer": later("Before the swap: a newer one came first"),
}

SINKS = "sink:"

STAGES = {
    "capture": later("Taking over"),
    "track": later("Finding faces"),
    "swap": later("Swapping"),
    "enhance": later("Sharpening"),
    "hide": later("Hiding"),
    "badge": later("Marking"),
}

RUNNERS = {
    "CPUExecutionProvider": later("Processor"),
    "CUDAExecutionProvider": later("Graphics card (CUDA)"),
    "DmlExecutionProvider": later("Graphics card (DirectML)"),
    "CoreMLExecutionProvider": "Core ML",
    "OpenVINOExecutionProvider": "OpenVINO",
}
"""ONNX Runtime's names of what works for it."""


class Table(QWidget):
    """Rows of words with numbers at their end; drawn anew only where something is another."""

    def __init__(self, *headings: str) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(0, 1)
        self._rows: list[list[QLabel]] = []
        self._first = 1 if headings else 0
        for column, words in enumerate(headings):
            self._grid.addWidget(_label(words, column, "muted"), 0, column)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        while len(self._rows) > len(rows):
            for label in self._rows.pop():
                label.hide()
                label.deleteLater()
        for number, texts in enumerate(rows):
            if number == len(self._rows):
                self._rows.append([_label("", column) for column in range(len(texts))])
                for column, label in enumerate(self._rows[-1]):
                    self._grid.addWidget(label, self._first + number, column)
            for label, text in zip(self._rows[number], texts, strict=True):
                if plain(label.text()) != text:
                    label.setText(breakable(text))
                    label.setAccessibleName(text)

    def rows(self) -> list[tuple[str, ...]]:
        """What is shown."""
        return [tuple(plain(label.text()) for label in row) for row in self._rows]


BREAK = "\u200b"
"""A place of no width where a line may end: names of models have no spaces."""


def breakable(text: str) -> str:
    return text.replace("_", f"_{BREAK}")


def plain(text: str) -> str:
    return text.replace(BREAK, "")


def _label(text: str, column: int, name: str = "") -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if column == 0:
        label.setWordWrap(True)
        label.setAlignment(Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignTop)
    else:
        label.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignTop)
    return label


class NumbersCard(Card):
    """Not there before something was live; what the last line measured stays to be read."""

    def __init__(self, heading: str, bench: Bench) -> None:
        super().__init__(heading, bench)
        self._last: Pulse | None = None  # that is not shown yet
        self.hide()

    def show_pulse(self, pulse: Pulse) -> None:
        self._last = pulse
        if self.isHidden():
            self.show()
        self._show_last()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        self._show_last()

    def _show_last(self) -> None:
        if self._last is not None and self.isVisible():
            pulse, self._last = self._last, None
            self.show_numbers(pulse)

    def add_age(self, age_ms: float) -> None:
        """Of a picture that was just shown."""

    def show_numbers(self, pulse: Pulse) -> None:
        """Of this moment; called while somebody can see the card."""


class AgeCard(NumbersCard):
    """Age against the budget, and every step down and back."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Age of the pictures"), bench)
        self.chart = AgeChart(bench.theme)
        self.chart.setMinimumHeight(110)
        self.chart.setAccessibleName(tr("Age of the last pictures"))
        self.now, self.given_up, self.changes = note(), note("warn"), note()
        for widget in (self.chart, self.now, self.given_up, self.changes):
            self.column.addWidget(widget)

    def add_age(self, age_ms: float) -> None:
        self.chart.add(age_ms)

    def show_state(self, state: LiveState) -> None:
        if state is LiveState.STARTING:
            self.chart.clear()

    def show_numbers(self, pulse: Pulse) -> None:
        vitals = pulse.vitals
        self.chart.show_budget(vitals.budget_ms)
        _show(self.now, age_words(vitals))
        _show(self.given_up, given_up_words(vitals.given_up))
        _show(self.changes, "\n".join(change_words(change, pulse.at_ns) for change in reversed(vitals.changes[-CHANGES_SHOWN:])))


class DropsCard(NumbersCard):
    """How many pictures were dropped, and where."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Dropped pictures"), bench)
        self.table = Table()
        self.column.addWidget(self.table)

    def show_numbers(self, pulse: Pulse) -> None:
        counts = drops(pulse.snapshot, pulse.source)
        self.table.show_rows([(place_words(place), str(count)) for place, count in counts.items()])


class StagesCard(NumbersCard):
    """Where the time goes."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Time of each stage, ms"), bench)
        self.table = Table("", tr("median"), "p95")
        self.column.addWidget(self.table)

    def show_numbers(self, pulse: Pulse) -> None:
        stages = pulse.vitals.stages_ms
        known = [name for name in STAGES if name in stages] + [name for name in stages if name not in STAGES]
        rows = [(tr(STAGES.get(name, name)), f"{stages[name]['p50']:.1f}", f"{stages[name]['p95']:.1f}") for name in known]
        self.table.show_rows(rows)


class RunsCard(NumbersCard):
    """What runs where, why not what was asked for, and what memory it takes."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("What runs where"), bench)
        self.table = Table()
        self.memory = note()
        self.why = note()
        for widget in (self.table, self.why, self.memory):
            self.column.addWidget(widget)

    def show_numbers(self, pulse: Pulse) -> None:
        self.table.show_rows([(f"{model.model}\n{runner_words(model)}", memory_words(model.memory_bytes)) for model in pulse.models])
        _show(self.why, why_words(pulse.models))
        _show(self.memory, tr("Memory of the program: {megabytes} MB").format(megabytes=round(pulse.vitals.resident_mb)))


class IdleCard(NumbersCard):
    """Stands alone on the page before there is anything to be seen."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(tr("Numbers"), bench)
        words = note()
        said = tr("While live: how old the pictures are, what was dropped and where, how long each step takes, and what runs where.")
        show_note(words, said)
        self.column.addWidget(words)
        self.show()

    def show_pulse(self, pulse: Pulse) -> None:
        self.hide()


def numbers_cards(bench: Bench) -> list[NumbersCard]:
    """In the order of the page."""
    return [IdleCard(bench), AgeCard(bench), DropsCard(bench), StagesCard(bench), RunsCard(bench)]


def drops(snapshot: Snapshot, source: Mapping[str, object]) -> dict[str, int]:
    """Place → how many since the start, those along the way first."""
    missed = source.get("missed", 0)
    return {"camera": missed if isinstance(missed, int) else 0, "capture": 0, "infer": 0, **snapshot.dropped}


def place_words(place: str) -> str:
    if place.startswith(SINKS):
        return tr("At the output {name}").format(name=place.removeprefix(SINKS))
    return tr(PLACES.get(place, place))


def age_words(vitals: Vitals) -> str:
    age_ms = vitals.age_p95_ms
    if age_ms is None:
        return ""
    if not vitals.budget_ms:
        return tr("{age} ms (p95 of the last second); nothing is given up for it.").format(age=f"{age_ms:.0f}")
    return tr("{age} ms (p95 of the last second), of {budget} ms allowed.").format(age=f"{age_ms:.0f}", budget=f"{vitals.budget_ms:g}")


def given_up_words(steps: Sequence[str]) -> str:
    """What is not shown now though it was chosen; empty where all is."""
    if not steps:
        return ""
    return tr("To keep up, for now: {steps}").format(steps="; ".join(tr(STEPS.get(step, step)) for step in steps))


def change_words(change: Change, now_ns: int) -> str:
    """One step, how long ago, and why."""
    seconds = max(0, round((now_ns - change.at_ns) / 1e9))
    ago = f"{seconds // 60}:{seconds % 60:02}"
    why = told(change.why) if change.age_ms is None else tr("pictures were {age} ms old").format(age=f"{change.age_ms:.0f}")
    words = tr("{ago} ago: {step} ({why})") if change.given_up else tr("{ago} ago, no longer: {step} ({why})")
    return words.format(ago=ago, step=tr(STEPS.get(change.step, change.step)), why=why)


def runner_words(model: ModelUse) -> str:
    """``ort:CPUExecutionProvider`` → Processor; a runtime that says more is named as it is."""
    return tr(RUNNERS.get(model.runtime.partition(":")[2], model.runtime))


def memory_words(count: int | None) -> str:
    return "–" if count is None else f"{count / 1e6:.0f} MB"


def why_words(models: Sequence[ModelUse]) -> str:
    """Why not something better, each reason once with the models that it is of."""
    by_reason: dict[str, list[str]] = {}
    for model in models:
        if model.why:
            by_reason.setdefault(model.why, []).append(model.model)
    return "\n".join(f"{breakable(', '.join(names))}: {told_reasons(why)}" for why, names in by_reason.items())


def _show(label: QLabel, text: str) -> None:
    if label.text() != text or label.isHidden() == bool(text):
        show_note(label, text)

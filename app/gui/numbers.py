"""The line under the picture: frames a second, age, drops, and what was given up, as the line measures them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout

from app.gui.cards.card import note, show_note
from app.gui.cards.numbers import drops, given_up_words
from app.gui.chart import AgeChart
from app.gui.live import Pulse
from app.gui.theme import Theme
from app.gui.words import tr


class NumbersBar(QFrame):
    """Drawn anew with every pulse, twice a second. Main thread."""

    def __init__(self, theme: Callable[[], Theme]) -> None:
        super().__init__()
        self.setObjectName("card")
        self._before: Pulse | None = None
        self._begun_ns: int | None = None
        captions = {
            "live": (tr("live"), tr("For how long it has been live.")),
            "fps_in": (tr("fps in"), tr("Pictures a second that come from the camera.")),
            "fps_out": (tr("fps out"), tr("Pictures a second that the outputs get.")),
            "age": (tr("age now"), tr("How old the picture is when it is shown here: from the camera on.")),
            "p95": (tr("age p95"), tr("95 of 100 pictures of the last second were younger.")),
            "dropped": (tr("dropped"), tr("Pictures that gave way to newer ones. The page Numbers says where.")),
        }
        self.values = {name: QLabel("–") for name in captions}
        self.chart = AgeChart(theme)
        self.chart.setAccessibleName(tr("Age of the last pictures"))
        self.given_up = note("warn")
        row = QHBoxLayout()
        row.setSpacing(10)
        for name, value in self.values.items():
            value.setObjectName("number")
            words, hint = captions[name]
            value.setAccessibleName(words)
            caption = QLabel(words)
            caption.setObjectName("muted")
            for label in (value, caption):
                label.setToolTip(hint)
            column = QVBoxLayout()
            column.setSpacing(0)
            column.addStrut(64)  # numbers grow and shrink, and the others are to stay where they are
            column.addWidget(value)
            column.addWidget(caption)
            row.addLayout(column)
        row.addStretch(1)
        row.addWidget(self.chart)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(20, 10, 20, 10)
        whole.addLayout(row)
        whole.addWidget(self.given_up)

    def clear(self) -> None:
        self._before = self._begun_ns = None
        self.chart.clear()
        show_note(self.given_up, "")
        for value in self.values.values():
            value.setText("–")

    def add_age(self, age_ms: float) -> None:
        """Of a picture that was just shown."""
        self.chart.add(age_ms)

    def show_pulse(self, pulse: Pulse) -> None:
        before, self._before = self._before, pulse
        self._begun_ns = self._begun_ns or pulse.at_ns
        self.values["live"].setText(clock_text((pulse.at_ns - self._begun_ns) // 10**9))
        if before is not None and pulse.at_ns > before.at_ns:
            seconds = (pulse.at_ns - before.at_ns) / 1e9
            self.values["fps_in"].setText(f"{(pulse.snapshot.frames_in - before.snapshot.frames_in) / seconds:.0f}")
            self.values["fps_out"].setText(f"{(pulse.snapshot.frames_out - before.snapshot.frames_out) / seconds:.0f}")
        if self.chart.ages_ms:
            self.values["age"].setText(f"{self.chart.ages_ms[-1]:.0f} ms")
        if pulse.vitals.age_p95_ms is not None:
            self.values["p95"].setText(f"{pulse.vitals.age_p95_ms:.0f} ms")
        self.values["dropped"].setText(str(sum(drops(pulse.snapshot, pulse.source).values())))
        words = given_up_words(pulse.vitals.given_up)
        if words != self.given_up.text():
            show_note(self.given_up, words)
        self.chart.show_budget(pulse.vitals.budget_ms)


def clock_text(seconds: int) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"

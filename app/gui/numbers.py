"""Truth on screen: frames a second, age, drops and stage times, as the line measures them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.gui.live import Pulse
from app.gui.theme import Theme
from app.gui.words import tr

HISTORY = 300
"""Ages the chart keeps: ten seconds at 30 pictures a second."""


class Chart(QWidget):
    """The age of the last pictures, in milliseconds, from zero up."""

    def __init__(self, theme: Callable[[], Theme]) -> None:
        super().__init__()
        self._theme = theme
        self.ages_ms: deque[float] = deque(maxlen=HISTORY)
        self.setMinimumSize(80, 40)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(220, 44)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter, theme = QPainter(self), self._theme()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        if len(self.ages_ms) < 2:
            return
        top_ms = max(40.0, max(self.ages_ms) * 1.1)
        step = self.width() / (HISTORY - 1)
        start = self.width() - step * (len(self.ages_ms) - 1)
        points = [QPointF(start + k * step, (self.height() - 3) * (1 - age / top_ms) + 1) for k, age in enumerate(self.ages_ms)]
        painter.setPen(QPen(QColor(theme.accent), 1.5))
        painter.drawPolyline(QPolygonF(points))


class NumbersBar(QFrame):
    """The line under the picture."""

    def __init__(self, theme: Callable[[], Theme]) -> None:
        super().__init__()
        self.setObjectName("card")
        self._before: Pulse | None = None
        self.values = {name: QLabel("–") for name in ("fps_in", "fps_out", "age", "p95", "dropped")}
        captions = {"fps_in": tr("fps in"), "fps_out": tr("fps out"), "age": tr("age now"), "p95": tr("age p95"), "dropped": tr("dropped")}
        self.chart = Chart(theme)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 10, 20, 10)
        row.setSpacing(16)
        for name, value in self.values.items():
            value.setObjectName("number")
            value.setAccessibleName(captions[name])
            value.setMinimumWidth(70)
            caption = QLabel(captions[name])
            caption.setObjectName("muted")
            column = QVBoxLayout()
            column.setSpacing(0)
            column.addWidget(value)
            column.addWidget(caption)
            row.addLayout(column)
        row.addStretch(1)
        row.addWidget(self.chart)

    def clear(self) -> None:
        self._before = None
        self.chart.ages_ms.clear()
        for value in self.values.values():
            value.setText("–")
        self.chart.update()

    def add_age(self, age_ms: float) -> None:
        """Of a picture that was just shown."""
        self.chart.ages_ms.append(age_ms)

    def show_pulse(self, pulse: Pulse) -> None:
        before, self._before = self._before, pulse
        if before is not None and pulse.at_ns > before.at_ns:
            seconds = (pulse.at_ns - before.at_ns) / 1e9
            self.values["fps_in"].setText(f"{(pulse.snapshot.frames_in - before.snapshot.frames_in) / seconds:.0f}")
            self.values["fps_out"].setText(f"{(pulse.snapshot.frames_out - before.snapshot.frames_out) / seconds:.0f}")
        if self.chart.ages_ms:
            self.values["age"].setText(f"{self.chart.ages_ms[-1]:.0f} ms")
            self.values["p95"].setText(f"{np.percentile(self.chart.ages_ms, 95):.0f} ms")
        self.values["dropped"].setText(str(sum(pulse.snapshot.dropped.values())))
        self.chart.update()

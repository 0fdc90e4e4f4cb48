"""A small moving chart of the age of the last pictures, against what is allowed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from app.gui.theme import Theme

HISTORY = 300
"""Ages the chart keeps: ten seconds at 30 pictures a second."""

NARROW_PX = 160
"""A chart of less width has no words."""

TOP_MS = 40.0
"""The chart is never lower than this, so that a calm line looks calm."""


class AgeChart(QWidget):
    """Milliseconds from zero up, the newest at the right. Drawn anew by ``show_budget`` alone. Main thread."""

    def __init__(self, theme: Callable[[], Theme]) -> None:
        super().__init__()
        self._theme = theme
        self._budget_ms = 0.0
        self.ages_ms: deque[float] = deque(maxlen=HISTORY)
        self.setMinimumSize(0, 40)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(220, 44)

    def add(self, age_ms: float) -> None:
        self.ages_ms.append(age_ms)

    def clear(self) -> None:
        self.ages_ms.clear()
        self.update()

    def show_budget(self, budget_ms: float) -> None:
        """Draws what has come since, with a line at the age that is allowed; 0: none."""
        self._budget_ms = budget_ms
        self.update()

    @property
    def top_ms(self) -> float:
        """The age at the upper edge. The budget is in sight once ages come near it."""
        highest = max(self.ages_ms, default=0.0)
        near = self._budget_ms if highest > 0.5 * self._budget_ms else 0.0
        return max(TOP_MS, 1.1 * highest, 1.1 * near)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter, theme, top_ms = QPainter(self), self._theme(), self.top_ms
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        left = 0  # what the budget's words take of the width
        if 0 < self._budget_ms <= top_ms:
            painter.setPen(QPen(QColor(theme.warn), 1, Qt.PenStyle.DashLine))
            y = round(self._height_of(self._budget_ms, top_ms))
            words = f"{self._budget_ms:g} ms" if self.width() >= NARROW_PX else ""
            left, tall = painter.fontMetrics().horizontalAdvance(words) + 6 if words else 0, painter.fontMetrics().height()
            painter.drawLine(left, y, self.width(), y)
            painter.setPen(QColor(theme.muted))
            top = min(max(y - tall // 2, 0), self.height() - tall)
            painter.drawText(QRectF(0, top, left, tall), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute, words)
        if len(self.ages_ms) < 2:
            return
        step = (self.width() - left) / (HISTORY - 1)
        start = self.width() - step * (len(self.ages_ms) - 1)
        points = [QPointF(start + k * step, self._height_of(age, top_ms)) for k, age in enumerate(self.ages_ms)]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.accent), 1.5))
        painter.drawPolyline(QPolygonF(points))

    def _height_of(self, age_ms: float, top_ms: float) -> float:
        return (self.height() - 3) * (1 - age_ms / top_ms) + 1

"""The picture: paints the newest frame in software. It asks for pictures; the line never waits for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen, QTransform
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.picture import closed_path, fitted, hull, to_image
from app.gui.theme import Theme
from rt.sinks.preview import Picture, PreviewSink

SCREEN_MS = 16
"""From one look for a new picture to the next: what a screen at 60 Hz can show."""

GRIP_PX = 14
"""How near to the split's line a press takes hold of it."""

STEP = 0.02
"""How far an arrow key moves the split."""


class Preview(QWidget):
    """Mirror, fit or 1:1, before | after, face outlines. Main thread."""

    shown = Signal(object)
    """A new ``Picture`` is on screen."""
    full_screen_wished = Signal()

    def __init__(self, sink: PreviewSink, theme: Callable[[], Theme]) -> None:
        super().__init__()
        self._sink = sink
        self._theme = theme
        self._picture: Picture | None = None
        self._layers: list[np.ndarray] = []  # after, and before where it is there; scaled as painted
        self._message = ""
        self._held = False
        self.mirrored = False
        self.actual_size = False
        self.outlines = False
        self.split: float | None = None
        """Where after begins, as a share of the picture's width; None shows after alone."""
        self.setMinimumSize(320, 180)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._poll)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(960, 540)

    def set_running(self, running: bool) -> None:
        """While not running nothing is polled and the message is shown."""
        if running:
            self._timer.start(SCREEN_MS)
            return
        self._timer.stop()
        self._picture = None
        self._sink.take()
        self.update()

    def say(self, text: str) -> None:
        """What stands in the place of the picture while there is none."""
        self._message = text
        self.update()

    def set_split(self, share: float | None) -> None:
        self.split = None if share is None else min(1.0, max(0.0, share))
        self._sink.keep_before = self.split is not None
        self.update()

    def set_option(self, name: str, on: bool) -> None:
        """``mirrored``, ``actual_size`` or ``outlines``."""
        setattr(self, name, on)
        self._scale()
        self.update()

    def area(self) -> QRectF:
        """Where the picture lies in the widget."""
        if not self._layers:
            return QRectF(self.rect())
        height, width = self._layers[0].shape[:2]
        ratio = self.devicePixelRatioF()
        size = QRectF(0, 0, width / ratio, height / ratio)
        size.moveCenter(QRectF(self.rect()).center())
        return size

    # --- Qt ---

    def _poll(self) -> None:
        self._sink.visible = self.isVisible() and not self.window().isMinimized()
        picture = self._sink.take()
        if picture is None:
            return
        self._picture = picture
        self._scale()
        self.update()
        self.shown.emit(picture)

    def _scale(self) -> None:
        if self._picture is None:
            self._layers = []
            return
        wanted = [self._picture.pixels]
        if self.split is not None and self._picture.before is not None:
            wanted.append(self._picture.before)
        ratio = self.devicePixelRatioF()
        size = round(self.width() * ratio), round(self.height() * ratio)
        self._layers = wanted if self.actual_size else [fitted(pixels, *size) for pixels in wanted]

    def resizeEvent(self, event: object) -> None:  # noqa: N802
        self._scale()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme()
        frame = QPainterPath()
        frame.addRoundedRect(QRectF(self.rect()), 12, 12)
        painter.fillPath(frame, QColor(theme.stage))
        if self._picture is None or not self._layers:
            painter.setPen(QColor(theme.muted))
            painter.drawText(self.rect().adjusted(40, 40, -40, -40), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._message)
            return
        painter.setClipPath(frame)
        area = self.area()
        self._paint_layers(painter, area)
        if self.outlines:
            self._paint_outlines(painter, area, theme)
        if self.split is not None:
            self._paint_split(painter, area)

    def _paint_layers(self, painter: QPainter, area: QRectF) -> None:
        painter.drawImage(area, self._image(self._layers[0]))
        if len(self._layers) > 1 and self.split is not None:
            painter.save()
            painter.setClipRect(QRectF(area.left(), area.top(), area.width() * self.split, area.height()), Qt.ClipOperation.IntersectClip)
            painter.drawImage(area, self._image(self._layers[1]))
            painter.restore()

    def _image(self, pixels: np.ndarray) -> QImage:
        image = to_image(pixels)
        return image.flipped(Qt.Orientation.Horizontal) if self.mirrored else image

    def _paint_outlines(self, painter: QPainter, area: QRectF, theme: Theme) -> None:
        assert self._picture is not None
        scale = area.width() / self._picture.pixels.shape[1]
        place = QTransform(-scale if self.mirrored else scale, 0, 0, scale, area.right() if self.mirrored else area.left(), area.top())
        painter.setPen(QPen(QColor(theme.accent), 2))
        for face in self._picture.faces:
            painter.drawPath(place.map(closed_path(hull(face.points))))

    def _paint_split(self, painter: QPainter, area: QRectF) -> None:
        assert self.split is not None
        x = area.left() + area.width() * self.split
        painter.setPen(QPen(QColor("#ffffff"), 2))
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        painter.setBrush(QColor("#ffffff"))
        painter.drawEllipse(QPointF(x, area.center().y()), 8, 8)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        area = self.area()
        if self.split is not None and abs(event.position().x() - area.left() - area.width() * self.split) <= GRIP_PX:
            self._held = True

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        if self._held:
            area = self.area()
            self.set_split((event.position().x() - area.left()) / max(1.0, area.width()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        self._held = False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        self.full_screen_wished.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        steps = {Qt.Key.Key_Left: -STEP, Qt.Key.Key_Right: STEP}
        step = steps.get(Qt.Key(event.key()))
        if step is None or self.split is None:
            super().keyPressEvent(event)
        else:
            self.set_split(self.split + step)

"""What is to be seen in the preview, and the form of it that is drawn in software."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import QWidget

from app.gui.icons import icon
from app.gui.picture import closed_path, hull
from app.gui.theme import Theme
from rt.frame import FaceState, TrackedFace
from rt.sinks.preview import Picture, fitted_size

RADIUS = 12
"""Of the corners, as cards have it."""

LETTERBOX = "#000000"
"""Beside the picture, in every theme: what is shown to others has no frame of ours."""

ICON_PX, MESSAGE_PX = 56, 18
"""Of what stands in the place of the picture."""

GRIP = 8
"""Radius of the knob on the split's line."""


@dataclass(slots=True)
class Scene:
    """Read by a canvas while it paints. Main thread."""

    theme: Callable[[], Theme]
    picture: Picture | None = None
    message: str = ""
    """In the place of the picture while there is none."""
    hint: str = ""
    """A smaller line below it."""
    inviting: bool = False
    """Something is held over the window that may be dropped."""
    mirrored: bool = False
    actual_size: bool = False
    """One pixel of the picture is one of the screen, else it fits."""
    outlines: bool = False
    landmarks: bool = False
    split: float | None = None
    """Where after begins, as a share of the picture's width as it is shown; None shows after alone."""
    chosen: frozenset[int] | None = None
    """Numbers of the people who are swapped, if not all are; their outlines are stronger."""
    names: tuple[str, str] | None = None
    """Of what is left and right of the split, where it is not before and after."""
    focused: bool = False
    """The keyboard moves the split."""
    rounded: bool = True

    def area(self, width: float, height: float, ratio: float) -> QRectF:
        """Where the picture lies in a widget of that size, on whole pixels of the screen, of which ``ratio`` make one of the widget's."""
        if self.picture is None:
            return QRectF(0, 0, width, height)
        there = (round(width * ratio), round(height * ratio))
        size = self.picture.size if self.actual_size else fitted_size(self.picture.size, there)
        left, top = ((there[k] - size[k]) // 2 for k in range(2))
        return QRectF(left / ratio, top / ratio, size[0] / ratio, size[1] / ratio)

    def place(self, area: QRectF) -> QTransform:
        """From pixels of the frame to the widget's."""
        assert self.picture is not None
        scale = area.width() / self.picture.size[0]
        left = area.right() if self.mirrored else area.left()
        return QTransform(-scale if self.mirrored else scale, 0, 0, scale, left, area.top())

    def face_at(self, point: QPointF, area: QRectF) -> TrackedFace | None:
        """The face under ``point`` of the widget; of several the smallest, which is the one that would be hidden else."""
        if self.picture is None:
            return None
        back, invertible = self.place(area).inverted()
        at = back.map(point)
        inside = [face for face in self.picture.faces if invertible and closed_path(hull(face.points)).contains(at)]
        return min(inside, key=lambda face: float(np.ptp(face.points[:, 0])), default=None)


class Canvas(Protocol):
    """Paints a scene; a ``QWidget``."""

    drawing: str
    """What draws, in a few words, for diagnostics."""

    scales: bool
    """Whether it scales and mirrors by itself, so that pictures may come as they are."""


class SoftwareCanvas(QWidget):
    """Paints what the sink has scaled already. Main thread."""

    scales = False

    def __init__(self, scene: Scene, why: str) -> None:
        """``why`` it is this one that draws."""
        super().__init__()
        self.drawing = f"software ({why})"
        self._scene = scene
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        scene, area = self._scene, self._area()
        if scene.picture is not None:
            self._paint_beside(painter, area)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
            painter.drawImage(area, self._image(scene.picture.pixels))
            if scene.split is not None and scene.picture.before is not None:
                painter.setClipRect(QRectF(area.left(), area.top(), area.width() * scene.split, area.height()))
                painter.drawImage(area, self._image(scene.picture.before))
                painter.setClipping(False)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
        paint_over(painter, scene, area, QRectF(self.rect()))

    def _area(self) -> QRectF:
        return self._scene.area(self.width(), self.height(), self.devicePixelRatioF())

    def _paint_beside(self, painter: QPainter, area: QRectF) -> None:
        """Black where the picture is not, and only there."""
        whole, black = QRectF(self.rect()), QColor(LETTERBOX)
        for strip in (
            QRectF(0, 0, whole.width(), area.top()),
            QRectF(0, area.bottom(), whole.width(), whole.height() - area.bottom()),
            QRectF(0, area.top(), area.left(), area.height()),
            QRectF(area.right(), area.top(), whole.width() - area.right(), area.height()),
        ):
            if strip.width() > 0 and strip.height() > 0:
                painter.fillRect(strip, black)

    def _image(self, pixels: np.ndarray) -> QImage:
        """Shares the memory of ``pixels``; turned only where the view was mirrored after the picture had been made."""
        assert self._scene.picture is not None
        image = QImage(pixels.data, pixels.shape[1], pixels.shape[0], pixels.strides[0], QImage.Format.Format_RGB32)
        return image if self._scene.picture.mirrored == self._scene.mirrored else image.flipped(Qt.Orientation.Horizontal)


def paint_over(painter: QPainter, scene: Scene, area: QRectF, whole: QRectF) -> None:
    """What lies over the picture, or stands in its place; the same for every canvas."""
    theme = scene.theme()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if scene.picture is None:
        _paint_message(painter, scene, whole, theme)
    else:
        _paint_faces(painter, scene, area, theme)
        if scene.split is not None:
            _paint_split(painter, area, scene.split)
            if scene.names is not None:
                _paint_names(painter, area, scene.names)
        if scene.focused and scene.split is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRoundedRect(whole.adjusted(1, 1, -1, -1), RADIUS, RADIUS)
    if scene.inviting:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.accent), 3, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(whole.adjusted(8, 8, -8, -8), RADIUS, RADIUS)
    if scene.rounded:
        _round_corners(painter, whole, QColor(theme.page))


def _paint_message(painter: QPainter, scene: Scene, whole: QRectF, theme: Theme) -> None:
    """An icon, a line, and a smaller one, in the middle."""
    painter.fillRect(whole, QColor(theme.stage))
    font = painter.font()
    large, wide, centred = QFont(font), whole.adjusted(40, 0, -40, 0), Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap
    large.setPixelSize(MESSAGE_PX)
    large.setWeight(QFont.Weight.DemiBold)
    painter.setFont(large)
    height = painter.boundingRect(wide, centred, scene.message).height()
    top = whole.center().y() - (ICON_PX + 12 + height) / 2 - 8
    icon("face", theme.muted, side=ICON_PX).paint(painter, QRectF(whole.center().x() - ICON_PX / 2, top, ICON_PX, ICON_PX).toRect())
    top += ICON_PX + 12
    painter.setPen(QColor(theme.text))
    painter.drawText(QRectF(wide.left(), top, wide.width(), height), centred, scene.message)
    painter.setFont(font)
    painter.setPen(QColor(theme.muted))
    painter.drawText(QRectF(wide.left(), top + height + 8, wide.width(), whole.bottom() - top - height - 8), centred, scene.hint)


def _paint_faces(painter: QPainter, scene: Scene, area: QRectF, theme: Theme) -> None:
    assert scene.picture is not None
    place = scene.place(area)
    for face in scene.picture.faces:
        is_worn = scene.chosen is None or face.person in scene.chosen
        colour = QColor(theme.accent if face.state is FaceState.SEEN else theme.warn)
        colour.setAlpha(255 if is_worn else 130)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if scene.outlines:
            painter.setPen(QPen(colour, 2.5 if is_worn else 1.5))
            painter.drawPath(place.map(closed_path(hull(face.points))))
        if scene.landmarks:
            painter.setPen(QPen(colour, 2))
            painter.drawPoints(place.map(QPolygonF([QPointF(x, y) for x, y in face.points[:, :2].tolist()])))


def _paint_names(painter: QPainter, area: QRectF, names: tuple[str, str]) -> None:
    metrics = painter.fontMetrics()
    for name, is_left in zip(names, (True, False), strict=True):
        text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(area.width() / 2) - 48)
        width = metrics.horizontalAdvance(text) + 16
        left = area.left() + 12 if is_left else area.right() - 12 - width
        plate = QRectF(left, area.top() + 12, width, metrics.height() + 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(0, 0, 0, 150))
        painter.drawRoundedRect(plate, 6, 6)
        painter.setPen(QColor("#ffffff"))
        painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, text)


def _paint_split(painter: QPainter, area: QRectF, split: float) -> None:
    x = area.left() + area.width() * split
    for colour, width, radius in ((QColor(0, 0, 0, 110), 4, GRIP + 1), (QColor("#ffffff"), 2, GRIP)):
        painter.setPen(QPen(colour, width))
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawEllipse(QPointF(x, area.center().y()), radius, radius)


def _round_corners(painter: QPainter, whole: QRectF, page: QColor) -> None:
    """Paints the page over the corners: clipping every picture to a round shape takes three times as long as the picture."""
    inside = QPainterPath()
    inside.addRoundedRect(whole, RADIUS, RADIUS)
    painter.setPen(Qt.PenStyle.NoPen)
    for x in (whole.left() - 1, whole.right() - RADIUS):
        for y in (whole.top() - 1, whole.bottom() - RADIUS):
            corner = QPainterPath()
            corner.addRect(QRectF(x, y, RADIUS + 1, RADIUS + 1))  # beyond the edge: it may lie within a pixel of the screen
            painter.fillPath(corner.subtracted(inside), page)

"""Arrays of pixels as Qt paints them."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen, QPixmap


def to_image(pixels: np.ndarray) -> QImage:
    """``pixels``: uint8 [H, W, 3] BGR. The image shares their memory: whoever paints it holds both."""
    pixels = np.ascontiguousarray(pixels)
    return QImage(pixels.data, pixels.shape[1], pixels.shape[0], pixels.strides[0], QImage.Format.Format_BGR888)


def fitted(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """Scaled to lie within width × height pixels."""
    scale = min(width / pixels.shape[1], height / pixels.shape[0])
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 0.5 else cv2.INTER_LINEAR)


def portrait(image: np.ndarray, face: np.ndarray | None, side: int) -> np.ndarray:
    """A square around the face (float32 [468, 3]), or the middle of the picture; uint8 [side, side, 3] BGR."""
    height, width = image.shape[:2]
    if face is None:
        centre, reach = np.array([width / 2, height / 2]), min(width, height) / 2
    else:
        centre = (face[:, :2].min(0) + face[:, :2].max(0)) / 2
        reach = min(float(np.ptp(face[:, :2], 0).max()) * 0.85, min(width, height) / 2)
    left, top = (int(np.clip(c - reach, 0, limit - 2 * reach)) for c, limit in zip(centre, (width, height), strict=True))
    cut = image[top : top + max(1, round(2 * reach)), left : left + max(1, round(2 * reach))]
    return cv2.resize(cut, (side, side), interpolation=cv2.INTER_AREA)


def rounded_pixmap(picture: QPixmap, radius: float = 10.0) -> QPixmap:
    """``picture`` with round corners."""
    made = QPixmap(picture.size())
    made.setDevicePixelRatio(picture.devicePixelRatio())
    made.fill(Qt.GlobalColor.transparent)
    painter = QPainter(made)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    path = QPainterPath()
    path.addRoundedRect(QRectF(made.rect()), radius, radius)
    painter.setClipPath(path)
    painter.drawPixmap(0, 0, picture)
    painter.end()
    return made


def rounded(pixels: np.ndarray, radius: float = 8.0) -> QPixmap:
    """``pixels``: uint8 [H, W, 3] BGR."""
    image = to_image(pixels)
    pixmap = QPixmap(image.size())
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    path = QPainterPath()
    path.addRoundedRect(QRectF(pixmap.rect()), radius, radius)
    painter.setClipPath(path)
    painter.drawImage(0, 0, image)
    painter.end()
    return pixmap


def hull(points: np.ndarray) -> np.ndarray:
    """float32 [N, 2]: the outline of a face's points [468, 3]."""
    outline: np.ndarray = cv2.convexHull(points[:, :2].astype(np.float32))[:, 0]
    return outline


def outlined(image: np.ndarray, faces: Iterable[np.ndarray], side: int, colour: str, width: float = 2) -> QPixmap:
    """The whole photo within ``side`` pixels, its first face outlined strongly and the others faintly."""
    small = fitted(image, side, side)
    scale = small.shape[1] / image.shape[1]
    pixmap = rounded(small)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for number, points in enumerate(faces):
        pen = QColor(colour)
        pen.setAlpha(90 if number else 255)
        painter.setPen(QPen(pen, width))
        painter.drawPath(closed_path(hull(points) * scale))
    painter.end()
    return pixmap


def closed_path(corners: np.ndarray) -> QPainterPath:
    """``corners``: [N, 2]."""
    path = QPainterPath()
    path.moveTo(*map(float, corners[0]))
    for x, y in corners[1:]:
        path.lineTo(float(x), float(y))
    path.closeSubpath()
    return path

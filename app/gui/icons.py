"""The window's icons: strokes on a grid of 24, drawn in the colour of the theme."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

STROKES = {
    "face": "<circle cx='12' cy='12' r='8.5'/><path d='M9 10.4v.2M15 10.4v.2M8.8 14.6c1.8 2 4.6 2 6.4 0'/>",
    "camera": "<rect x='3' y='7' width='12' height='10' rx='2.5'/><path d='M15 11l5.5-3v8L15 13z'/>",
    "outputs": "<path d='M12 15V4M8 8l4-4 4 4M4.5 13v5.5a1.5 1.5 0 0 0 1.5 1.5h12a1.5 1.5 0 0 0 1.5-1.5V13'/>",
    "look": "<path d='M4 7h9M17 7h3M4 12h3M11 12h9M4 17h11M19 17h1'/><circle cx='15' cy='7' r='2'/><circle cx='9' cy='12' r='2'/>"
    "<circle cx='17' cy='17' r='2'/>",
    "presets": "<path d='M7 4h10a1.5 1.5 0 0 1 1.5 1.5V20L12 15.5 5.5 20V5.5A1.5 1.5 0 0 1 7 4z'/>",
    "program": "<circle cx='12' cy='12' r='3.2'/><path d='M12 3.5v3M12 17.5v3M3.5 12h3M17.5 12h3M6 6l2.1 2.1M15.9 15.9L18 18M18 6l-2.1 2.1"
    "M8.1 15.9L6 18'/>",
    "numbers": "<path d='M4 19.5h16M6.5 16v-4M11 16V6M15.5 16v-7M20 16V9.5'/>",
    "reset": "<path d='M5 12a7 7 0 1 0 2.3-5.2M5 4.5v3.8h3.8'/>",
    "snapshot": "<path d='M4 8.5A1.5 1.5 0 0 1 5.5 7H8l1.4-2h5.2L16 7h2.5A1.5 1.5 0 0 1 20 8.5v9a1.5 1.5 0 0 1-1.5 1.5h-13"
    "A1.5 1.5 0 0 1 4 17.5z'/>"
    "<circle cx='12' cy='12.8' r='3.4'/>",
    "undo": "<path d='M9 6L4.5 10.5 9 15M5 10.5h9.5a5 5 0 0 1 0 10H11'/>",
    "redo": "<path d='M15 6l4.5 4.5L15 15M19 10.5H9.5a5 5 0 0 0 0 10H13'/>",
    "full": "<path d='M4.5 9V4.5H9M15 4.5h4.5V9M19.5 15v4.5H15M9 19.5H4.5V15'/>",
    "eye": "<path d='M3 12c2.4-4 5.4-6 9-6s6.6 2 9 6c-2.4 4-5.4 6-9 6s-6.6-2-9-6z'/><circle cx='12' cy='12' r='2.8'/>",
    "plus": "<path d='M12 5v14M5 12h14'/>",
    "star": "<path d='M12 4l2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.8-5 2.8 1.1-5.5L4 9.7 9.6 9z'/>",
}


def icon(name: str, *colours: str, side: int = 24) -> QIcon:
    """``colours``: as #rrggbb; of what is off, and, where it is given, of what is on."""
    made = QIcon()
    for colour, state in zip(colours, (QIcon.State.Off, QIcon.State.On), strict=False):
        made.addPixmap(_pixmap(name, colour, side), QIcon.Mode.Normal, state)
    return made


def _pixmap(name: str, colour: str, side: int) -> QPixmap:
    text = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='{colour}' stroke-width='1.7' "
        f"stroke-linecap='round' stroke-linejoin='round'>{STROKES[name]}</svg>"
    )
    pixmap = QPixmap(2 * side, 2 * side)  # for screens of two pixels a point
    pixmap.setDevicePixelRatio(2)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(text.encode())).render(painter, QRectF(0, 0, side, side))
    painter.end()
    return pixmap

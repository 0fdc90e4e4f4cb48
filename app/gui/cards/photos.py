"""The photos of the face that is worn: each whole, with the face that was found outlined, and what would make a poor swap of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLabel, QMenu, QToolButton, QVBoxLayout

from app.gallery import Gallery, Identity, Photo
from app.gui.cards.card import Bench, row
from app.gui.flow import Flow
from app.gui.picture import fitted, outlined
from app.gui.words import tr
from app.photo_check import PhotoReport

SIDE_PX = 92
"""Of the square within which a photo is shown."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A photo as it is shown."""

    image: np.ndarray
    """uint8 [H, W, 3] BGR, upright, of twice ``SIDE_PX``: for screens of two pixels a point."""
    faces: tuple[np.ndarray, ...]
    """float32 [468, 3] each, pixels of ``image``; the largest first."""


class PhotoButton(QToolButton):
    """One photo. A press opens its menu."""

    menu_wished = Signal(object, QPoint)

    def __init__(self, photo: Photo, number: int, count: int) -> None:
        super().__init__()
        self.photo = photo
        self.setObjectName("face")
        self.setIconSize(QSize(SIDE_PX, SIDE_PX))
        hints = [tr(str(hint)) for hint in photo.hints]
        self.setAccessibleName(", ".join([tr("Photo {number} of {count}").format(number=number, count=count), photo.title, *hints]))
        self.setToolTip("\n".join([photo.title, *hints]))
        self.clicked.connect(lambda: self.menu_wished.emit(self.photo, self.mapToGlobal(self.rect().bottomLeft())))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(lambda at: self.menu_wished.emit(self.photo, self.mapToGlobal(at)))

    def show_seen(self, seen: Seen, colour: str) -> None:
        pixmap = outlined(seen.image, seen.faces, 2 * SIDE_PX, colour, width=4)
        pixmap.setDevicePixelRatio(2)
        self.setIcon(QIcon(pixmap))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Menu, Qt.Key.Key_Delete):
            self.click()
        else:
            super().keyPressEvent(event)


class PhotoStrip(QFrame):
    """Main thread. Photos are looked at behind, once each, and only where they can be seen."""

    remove_wished = Signal(object, object)
    """An ``Identity``, and the ``Photo`` of it."""
    add_wished = Signal(object)
    """Further photos of this ``Identity``."""
    menu_wished = Signal(object, QPoint)
    """What can be done with this ``Identity``, at a place of the screen."""

    def __init__(self, bench: Bench, gallery: Gallery) -> None:
        super().__init__()
        self._bench, self._gallery = bench, gallery
        self._identity: Identity | None = None
        self._seen: dict[Path, Seen] = {}
        self.buttons: list[PhotoButton] = []
        self._title = QLabel()
        self._title.setWordWrap(True)
        self.more = QToolButton()
        self.more.setObjectName("quiet")
        self.more.setText("⋯")
        self.more.clicked.connect(self._ask_for_more)
        self._row = Flow()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(8)
        column.addLayout(row(self._title, self.more))
        column.addLayout(self._row)
        self.hide()

    def show_identity(self, identity: Identity | None) -> None:
        """The one that is worn; None hides the strip."""
        if identity == self._identity:
            return
        self._identity = identity
        for button in self.buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        photos = () if identity is None else identity.usable
        self.buttons = [self._button(photo, number, len(photos)) for number, photo in enumerate(photos, 1)]
        name = "" if identity is None else identity.name
        self._title.setText(tr("Photos of {name}").format(name=name))
        self.more.setToolTip(tr("Rename, favourite, remove: {name}").format(name=name))
        self.more.setAccessibleName(self.more.toolTip())
        self.setVisible(bool(photos))
        self._look()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        self._look()

    def menu_of(self, photo: Photo) -> QMenu:
        """What can be done with it."""
        assert self._identity is not None
        identity, menu = self._identity, QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        add = menu.addAction(tr("Add photos…"), partial(self.add_wished.emit, identity))
        remove = menu.addAction(tr("Remove this photo"), partial(self.remove_wished.emit, identity, photo))
        add.setEnabled(not identity.built_in)
        remove.setEnabled(not identity.built_in and len(identity.photos) > 1)
        return menu

    def _ask_for_more(self) -> None:
        self.menu_wished.emit(self._identity, self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def _button(self, photo: Photo, number: int, count: int) -> PhotoButton:
        button = PhotoButton(photo, number, count)
        button.menu_wished.connect(lambda photo, at: self.menu_of(photo).popup(at))
        self._row.addWidget(button)
        return button

    def _look(self) -> None:
        if not self.isVisible():
            return
        for button in self.buttons:
            file = button.photo.file
            if file in self._seen:
                self._show(file)
            else:
                look = partial(_looked_at, self._gallery.look_at, file)
                self._bench.worker("photos").run(look, partial(self._take, file), lambda _: None)

    def _take(self, file: Path, seen: Seen) -> None:
        self._seen[file] = seen
        self._show(file)

    def _show(self, file: Path) -> None:
        for button in self.buttons:
            if button.photo.file == file and button.icon().isNull():
                button.show_seen(self._seen[file], self._bench.theme().accent)


def _looked_at(look_at: Callable[[Path], PhotoReport], file: Path) -> Seen:
    """Tenths of a second; not on the window's thread."""
    report = look_at(file)
    small = fitted(report.image, 2 * SIDE_PX, 2 * SIDE_PX)
    scale = np.float32(small.shape[1] / report.image.shape[1])
    return Seen(small, tuple(points * scale for points in report.faces))

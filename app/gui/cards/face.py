"""Face: the gallery. A press wears a face; photos come by drop, paste, dialogue, and go with undo."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QIcon, QKeyEvent, QPainter, QPixmap
from PySide6.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QInputDialog,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QWidget,
)

from app.errors import AppError
from app.gallery import Gallery, Identity, Photo, Removed
from app.gui.cards.card import Bench, Card, note, show_note
from app.gui.cards.photos import PhotoStrip
from app.gui.flow import Flow
from app.gui.icons import icon
from app.gui.live import Change, LiveState
from app.gui.people import FACES_MAX, OfferedFace
from app.gui.picture import rounded_pixmap
from app.gui.words import tr
from app.gui.worker import shown_error
from app.settings import Settings, SourceSettings

TILE_PX = 84
TILES_ACROSS = 3
HOTKEYS = 9

PHOTO_ENDINGS = "*.jpg *.jpeg *.png *.webp *.bmp *.heic *.avif *.tif *.tiff"


class Tile(QToolButton):
    """One face: its picture, its name, and which key wears it."""

    wished = Signal(object)
    """The ``Identity``."""
    menu_wished = Signal(object, QPoint)
    rename_wished = Signal(object)
    remove_wished = Signal(object)

    def __init__(self, identity: Identity, number: int, bench: Bench) -> None:
        super().__init__()
        self.identity = identity
        self.setObjectName("face")
        self.setCheckable(True)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        self.setIconSize(QSize(TILE_PX, TILE_PX))
        self.setFixedWidth(TILE_PX + 10)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(lambda at: self.menu_wished.emit(self.identity, self.mapToGlobal(at)))
        self.clicked.connect(lambda: self.wished.emit(self.identity))
        key = tr("Key {number}").format(number=number) if number <= HOTKEYS else ""
        star = tr("favourite") if identity.favourite else ""
        self.setAccessibleName(", ".join(part for part in (identity.name, star, key) if part))
        self.setToolTip("\n".join(part for part in (identity.name, key, identity.problem) if part))
        self._key = str(number) if number <= HOTKEYS else ""
        self._retext()

    def show_picture(self, file: Path) -> None:
        side = round(TILE_PX * self.devicePixelRatioF())
        pixmap = QPixmap(str(file)).scaled(
            side, side, Qt.AspectRatioMode.KeepAspectRatioByExpanding, Qt.TransformationMode.SmoothTransformation
        )
        self.setIcon(QIcon(_with_key(rounded_pixmap(pixmap), self._key, self.devicePixelRatioF())))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's names
        """The menu by keyboard, F2 and Delete as everywhere, and Return as a press."""
        own = not self.identity.built_in
        if event.key() == Qt.Key.Key_Menu:
            self.menu_wished.emit(self.identity, self.mapToGlobal(self.rect().center()))
        elif event.key() == Qt.Key.Key_F2 and own:
            self.rename_wished.emit(self.identity)
        elif event.key() == Qt.Key.Key_Delete and own:
            self.remove_wished.emit(self.identity)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def _retext(self) -> None:
        self.ensurePolished()  # letters are as large as the style sheet says
        name = ("★ " if self.identity.favourite else "") + self.identity.name.replace("&", "&&")
        self.setText(self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, TILE_PX - 4))


class FaceCard(Card):
    """Everything that reads photos is done behind; the newest answer counts."""

    offered = Signal(str, str, object)
    """A message, the words of what can be done about it, and what does it."""

    def __init__(self, bench: Bench, gallery: Gallery | None = None) -> None:
        super().__init__(tr("Face"), bench)
        self.gallery = gallery or Gallery()
        self._source = SourceSettings()
        self._identities: tuple[Identity, ...] = ()
        self._is_live = False
        self._gone: Identity | None = None  # that was worn when it was removed
        self.tiles: list[Tile] = []
        self._grid = QGridLayout()
        self._grid.setSpacing(8)
        self._grid.setColumnStretch(TILES_ACROSS, 1)
        self._grid_holder = QWidget()
        self._grid_holder.setLayout(self._grid)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self.hint, self.busy, self.own = note("warn"), note(), note("warn")
        self.none = QPushButton(tr("No face"))
        self.none.setToolTip(tr("The picture passes as it is."))
        self.none.clicked.connect(lambda: self.changed.emit(_wearing(SourceSettings())))
        self.choose = QPushButton(tr("Add photos…"))
        self.choose.clicked.connect(self._ask_for_photos)
        help_text = QLabel(tr("Drop photos here, or paste them. Keys 1 to 9 change the face while live."))
        help_text.setObjectName("muted")
        help_text.setWordWrap(True)
        self.photos = PhotoStrip(bench, self.gallery)
        self.photos.add_wished.connect(self._ask_for_further)
        self.photos.menu_wished.connect(self._menu)
        self.photos.remove_wished.connect(self.remove_photo)
        for item in (help_text, self.own, self._grid_holder, self.busy):
            self.column.addWidget(item)
        self.column.addLayout(Flow(self.choose, self.none))
        for item in (self.photos, self.hint):
            self.column.addWidget(item)
        self.read()

    def read(self) -> None:
        """What the gallery holds now."""
        self.bench.worker("photos").run(self.gallery.identities, self._take, self._refuse)

    def wear(self, identity: Identity) -> None:
        try:
            source = identity.source
        except AppError as error:
            self._refuse(error)
            return
        self.changed.emit(_wearing(source))

    def wear_number(self, number: int) -> None:
        """By hotkey, from 1."""
        if number <= len(self._identities):
            self.wear(self._identities[number - 1])

    def add_photos(self, photos: Sequence[Path]) -> None:
        """Of one person; they are worn once they are in the gallery. Photos that a face has already add nothing: it is worn. Several may be
        of several people after all: that is offered."""
        given = tuple(photos)

        def offer(together: Identity) -> None:
            words = tr("{count} photos were taken for those of one person.").format(count=len(given))
            self.offered.emit(words, tr("One face each"), partial(self.take_apart, together, given))

        self._add(lambda: self.gallery.holder(given) or self.gallery.add(given), offer if len(given) > 1 else None)

    def take_apart(self, together: Identity, photos: Sequence[Path]) -> None:
        """A face of the gallery for each of ``photos`` in the place of one for all; everybody in the picture wears another one."""

        def add() -> tuple[Identity, ...]:
            apart = tuple(self.gallery.add([photo]) for photo in photos)
            self.gallery.remove(together.id)
            return apart

        def added(apart: tuple[Identity, ...]) -> None:
            sources = tuple(identity.source for identity in apart)
            self.changed.emit(_with_each(sources))
            self.read()

        self.bench.worker("photos").run(add, added, self._refuse)

    def add_made(self, make: Callable[[], Path]) -> None:
        """As ``add_photos``, of a photo that ``make`` writes, on the worker's thread, into a folder that is then deleted."""

        def add() -> Identity:
            photo = make()
            try:
                return self.gallery.add([photo])
            finally:
                shutil.rmtree(photo.parent, ignore_errors=True)

        self._add(add)

    def _add(self, work: Callable[[], Identity], then: Callable[[Identity], None] | None = None) -> None:
        show_note(self.busy, tr("Looking for the face…"))
        show_note(self.hint, "")

        def added(identity: Identity) -> None:
            self._added(identity)
            if then is not None:
                then(identity)

        self.bench.worker("photos").run(work, added, self._refuse)

    def show_settings(self, settings: Settings) -> None:
        self._source = settings.source
        worn = self.worn
        for tile in self.tiles:
            tile.setChecked(worn is not None and tile.identity.id == worn.id)
        self.photos.show_identity(worn)
        if worn is not None:
            show_note(self.hint, "\n".join(dict.fromkeys(tr(str(hint)) for photo in worn.photos for hint in photo.hints)))
        else:
            gone = self._worn_gone
            others = gone.name if gone is not None else ", ".join(path.name for path in settings.source.photos)
            show_note(self.hint, tr("Worn: {photos}").format(photos=others) if others else "")

    def show_own_face(self, has_one: bool) -> None:
        """``has_one``: the swapper that is chosen draws one person alone."""
        words = tr("The swapper that is chosen on the page Look draws one person alone: these faces are not worn.")
        show_note(self.own, words if has_one else "")

    def offered_faces(self) -> tuple[OfferedFace, ...]:
        """Those of the gallery whose photos are there, for others to wear."""
        found = []
        for tile in self.tiles:
            photos = tuple(photo.file for photo in tile.identity.usable)
            if photos:
                found.append(OfferedFace(tile.identity.name, SourceSettings(photos=photos), tile.icon()))
        return tuple(found)

    def show_state(self, state: LiveState) -> None:
        self._is_live = state is not LiveState.IDLE
        self._take_off_gone()

    @property
    def _worn_gone(self) -> Identity | None:
        """What was removed and is still worn."""
        photos = set() if self._gone is None else {photo.file for photo in self._gone.photos}
        return self._gone if photos and set(self._source.photos) <= photos and self._source.photos else None

    def _take_off_gone(self) -> None:
        """What was removed is worn to the end of the line: nobody is to be seen by surprise. After that its photos are not there."""
        if self._worn_gone is not None and not self._is_live:
            self.changed.emit(_wearing(SourceSettings()))

    @property
    def worn(self) -> Identity | None:
        """The face of the gallery whose photos the settings name."""
        photos = set(self._source.photos)
        return next((one for one in self._identities if photos and photos <= {photo.file for photo in one.photos}), None)

    # --- what comes back ---

    def _take(self, identities: tuple[Identity, ...]) -> None:
        self._identities = identities
        for tile in self.tiles:
            tile.deleteLater()
        self.tiles = [self._tile(identity, number) for number, identity in enumerate(identities, 1)]
        for number, tile in enumerate(self.tiles):
            self._grid.addWidget(tile, number // TILES_ACROSS, number % TILES_ACROSS, Qt.AlignmentFlag.AlignLeft)
        self.show_settings(Settings(source=self._source))

    def _tile(self, identity: Identity, number: int) -> Tile:
        tile = Tile(identity, number, self.bench)
        tile.setIcon(icon("face", self.bench.theme().muted, side=TILE_PX))
        tile.wished.connect(self.wear)
        tile.wished.connect(lambda _: self.show_settings(Settings(source=self._source)))  # a press alone checks nothing
        tile.menu_wished.connect(self._menu)
        tile.rename_wished.connect(self._rename)
        tile.remove_wished.connect(self.remove)

        def show(file: Path) -> None:
            if tile in self.tiles:
                tile.show_picture(file)

        self.bench.worker("photos").run(partial(self.gallery.thumbnail, identity), show, lambda _: None)
        return tile

    def _added(self, identity: Identity) -> None:
        show_note(self.busy, "")
        self.wear(identity)
        self.read()

    def _refuse(self, error: BaseException) -> None:
        show_note(self.busy, "")
        self.offered.emit(shown_error(error), "", None)

    # --- one face ---

    def _menu(self, identity: Identity, at: QPoint) -> None:
        menu = QMenu(self)
        for text, act in (
            (tr("Wear"), partial(self.wear, identity)),
            (tr("Add photos…"), partial(self._ask_for_further, identity)),
            (tr("Rename…"), partial(self._rename, identity)),
            (tr("No favourite") if identity.favourite else tr("Favourite"), partial(self.set_favourite, identity)),
            (tr("Remove"), partial(self.remove, identity)),
        ):
            action = QAction(text, menu)
            action.setEnabled(not identity.built_in or text == tr("Wear"))
            action.triggered.connect(lambda _checked=False, act=act: act())
            menu.addAction(action)
        menu.popup(at)

    def rename(self, identity: Identity, name: str) -> None:
        self._then_read(partial(self.gallery.rename, identity.id, name))

    def set_favourite(self, identity: Identity) -> None:
        self._then_read(partial(self.gallery.set_favourite, identity.id, not identity.favourite))

    def remove(self, identity: Identity) -> None:
        """With a way back for as long as the window is open."""

        def removed(what: Removed) -> None:
            self.offered.emit(tr("{name} was removed.").format(name=what.name), tr("Undo"), partial(self._restore, what, was_worn))
            self.read()
            if was_worn:
                self._gone = identity
                self._take_off_gone()

        was_worn = self.worn is not None and self.worn.id == identity.id
        self.bench.worker("photos").run(partial(self.gallery.remove, identity.id), removed, self._refuse)

    def remove_photo(self, identity: Identity, photo: Photo) -> None:
        """One of several, with a way back for as long as the window is open."""

        def remove() -> tuple[Removed, Identity]:
            what = self.gallery.remove_photo(identity.id, photo.file)
            return what, self.gallery.find(identity.id)

        def removed(done: tuple[Removed, Identity]) -> None:
            what, left = done
            self.offered.emit(tr("A photo of {name} was removed.").format(name=left.name), tr("Undo"), partial(self._restore, what))
            self._changed_photos(left)

        self.bench.worker("photos").run(remove, removed, self._refuse)

    def add_to(self, identity: Identity, photos: Sequence[Path]) -> None:
        """Further photos of one who is there."""
        self.bench.worker("photos").run(partial(self.gallery.add_photos, identity.id, tuple(photos)), self._changed_photos, self._refuse)

    def _restore(self, removed: Removed, was_worn: bool = False) -> None:
        def restored(identity: Identity) -> None:
            self._gone = None
            if was_worn and not self._source.photos:
                self.wear(identity)
            self._changed_photos(identity)

        self.bench.worker("photos").run(partial(self.gallery.restore, removed), restored, self._refuse)

    def _changed_photos(self, identity: Identity) -> None:
        """Who wears it wears what it is now made of."""
        if self.worn is not None and self.worn.id == identity.id:
            self.wear(identity)
        self.read()

    def _then_read(self, work: partial[Identity]) -> None:
        self.bench.worker("photos").run(work, lambda _: self.read(), self._refuse)

    def _rename(self, identity: Identity) -> None:
        name, given = QInputDialog.getText(self, tr("Rename"), tr("Name"), text=identity.name)
        if given:
            self.rename(identity, name)

    def _ask_for_photos(self) -> None:
        photos = self._asked_files()
        if photos:
            self.add_photos(photos)

    def _ask_for_further(self, identity: Identity) -> None:
        photos = self._asked_files()
        if photos:
            self.add_to(identity, photos)

    def _asked_files(self) -> list[Path]:
        names, _ = QFileDialog.getOpenFileNames(self, tr("Choose photos of one person"), "", f"{tr('Photos')} ({PHOTO_ENDINGS});;* (*)")
        return [Path(name) for name in names]


def _with_key(picture: QPixmap, key: str, ratio: float) -> QPixmap:
    """``picture`` with the key that wears it in a corner."""
    if key:
        side = round(20 * ratio)
        plate = QRect(picture.width() - side - round(4 * ratio), picture.height() - side - round(4 * ratio), side, side)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(0, 0, 0, 150))
        painter.drawRoundedRect(plate, side / 4, side / 4)
        font = painter.font()
        font.setPixelSize(round(13 * ratio))
        painter.setFont(font)
        painter.setPen(QColor("#ffffff"))
        painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, key)
        painter.end()
    return picture


def _wearing(source: SourceSettings) -> Change:
    return lambda settings: settings.wearing(source)


def _with_each(sources: tuple[SourceSettings, ...]) -> Change:
    """One of ``sources`` for each person, and as many people looked for; the first is worn where people are alike again."""

    def change(settings: Settings) -> Settings:
        wanted = min(len(sources), FACES_MAX)
        look = settings.look.model_copy(update={"max_faces": max(settings.look.max_faces, wanted)})
        people = settings.people.model_copy(update={"each": sources})
        return settings.model_copy(update={"source": sources[0], "people": people, "look": look})

    return change

"""The people seen now: a chip for each, whose menu says what that person wears, or that the face is left or hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QIcon, QKeyEvent, QPainter, QPixmap, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QScrollArea, QToolButton, QWidget

from app.gui.live import Change
from app.gui.picture import rounded_pixmap, to_image
from app.gui.words import tr
from app.offers import Part
from app.settings import PeopleSettings, PersonSettings, Settings, SourceSettings
from rt.compose.lost import Treatment
from rt.frame import FaceState, TrackedFace
from rt.options import Wear
from rt.track.people import Person

CHIP_PX = 44
"""Side of a thumbnail, in points."""

GAP_PX = 8
"""Between a thumbnail and its words."""

FACES_MAX = 8
"""As many as can be followed at once (``LookSettings.max_faces``)."""

FURTHER = 4
"""How many faces are looked for once somebody asks for more than one."""


@dataclass(frozen=True, slots=True)
class OfferedFace:
    """A face of the gallery that somebody could wear."""

    name: str
    source: SourceSettings
    picture: QIcon


Offer = Callable[[], Sequence[OfferedFace]]


class Chip(QToolButton):
    """One person: thumbnail, number, and what they get. A press opens the menu."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.setObjectName("person")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QSize(CHIP_PX + GAP_PX, CHIP_PX))
        self._shown: np.ndarray | None = None

    def show_person(self, person: Person, words: str, worn: bool) -> None:
        """``words``: what they get; ``worn``: whether the face is swapped."""
        if person.thumbnail is not self._shown:
            self._shown = person.thumbnail
            self.setIcon(QIcon(_picture(person.thumbnail, self.devicePixelRatioF(), self.layoutDirection())))
        text = f"{tr('Person {number}').format(number=self.number)}\n{words}"
        if (text, worn, person.in_sight) != (self.text(), self.property("worn"), self.property("there")):
            self.setText(text)
            self.setProperty("worn", worn)
            self.setProperty("there", person.in_sight)
            self.style().polish(self)
            there = tr("in the picture") if person.in_sight else tr("out of the picture")
            self.setAccessibleName(", ".join([*text.split("\n"), there]))
            self.setToolTip(tr("Choose what this person wears"))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Menu, Qt.Key.Key_Down):
            self.click()
        else:
            super().keyPressEvent(event)


def _picture(thumbnail: np.ndarray, ratio: float, direction: Qt.LayoutDirection) -> QPixmap:
    """With round corners, and room between it and the words beside."""
    side, gap = round(CHIP_PX * ratio), round(GAP_PX * ratio)
    image = to_image(thumbnail).scaled(side, side, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation)
    made = QPixmap(side + gap, side)
    made.fill(Qt.GlobalColor.transparent)
    painter = QPainter(made)
    painter.drawPixmap(gap if direction is Qt.LayoutDirection.RightToLeft else 0, 0, rounded_pixmap(QPixmap.fromImage(image), side / 4))
    painter.end()
    made.setDevicePixelRatio(ratio)
    return made


class _Sideways(QScrollArea):
    """A row in one line whatever its length; the wheel moves it, and who is reached by the keyboard is scrolled to."""

    def __init__(self, row: QHBoxLayout) -> None:
        super().__init__()
        holder = QWidget()
        holder.setLayout(row)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(holder)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        moved = event.angleDelta()
        bar = self.horizontalScrollBar()
        bar.setValue(bar.value() - (moved.x() or moved.y()))


class PeopleStrip(QFrame):
    """Main thread. Holds no settings: ``changed`` says what a person wishes."""

    changed = Signal(object)
    """A ``Change``."""
    told = Signal(int, object)
    """The number of a person, and the number of the one who that is, or None for nobody else."""

    def __init__(self, offer: Offer) -> None:
        """``offer``: the faces of the gallery, asked for whenever a menu opens."""
        super().__init__()
        self.setAccessibleName(tr("People in the picture"))
        self._offer = offer
        self._settings = Settings()
        self._people: tuple[Person, ...] = ()
        self._hidden: frozenset[int] = frozenset()
        self._recognisers: tuple[Part, ...] = ()
        self._has_own_face = False
        self.after: QWidget | None = None
        """What the keyboard leaves for the people."""
        self.chips: dict[int, Chip] = {}
        self.all = QToolButton()
        self.all.setObjectName("quiet")
        self.all.setText(tr("Everybody…"))
        self.all.setToolTip(tr("What everybody gets who is not chosen by name"))
        self.all.clicked.connect(lambda: self.menu_of_all().popup(self._below(self.all)))
        self.more = QToolButton()
        self.more.setObjectName("quiet")
        self.more.setText(tr("Look for others"))
        self.more.setToolTip(tr("One face is followed now. Looks for up to {count}.").format(count=FURTHER))
        self.more.clicked.connect(lambda: self.changed.emit(_looking_for(FURTHER)))
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addStretch(1)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(_Sideways(self._row), 1)
        for button in (self.more, self.all):
            line.addWidget(button)
        self.setFixedHeight(CHIP_PX + 22)  # of a chip and the bar below it, so that nothing moves when people come and go
        self.hide()

    def offer_recognisers(self, parts: Sequence[Part]) -> None:
        """Identity models, those that could be fetched too."""
        self._recognisers = tuple(parts)

    def show_settings(self, settings: Settings, *, has_own_face: bool = False) -> None:
        """``has_own_face``: the swapper is made for one person, and is worn whatever was chosen."""
        self._settings = settings
        self._has_own_face = has_own_face
        self.more.setVisible(settings.look.max_faces == 1)
        self._refresh()

    def show_people(self, people: Sequence[Person], faces: Sequence[TrackedFace] = ()) -> None:
        """Who was seen; those out of the picture are shown only if they were chosen by name. ``faces``: of the picture that is shown."""
        self._hidden = frozenset(face.person for face in faces if face.state is FaceState.SEEN and face.treatment == Treatment.BLUR)
        named = {person.number for person in self._settings.people.named}
        there = [person for person in people if person.in_sight]
        away = [person for person in people if not person.in_sight and person.number in named]
        self._people = tuple(sorted([*there, *away][:FACES_MAX], key=lambda person: person.number))
        self._refresh()

    def clear(self) -> None:
        self._people = ()
        self._refresh()
        self.hide()

    def worn(self) -> frozenset[int] | None:
        """Numbers of those whose faces are swapped; None where all are alike."""
        if not self._settings.people.named and self._settings.people.others is Wear.SWAP:
            return None
        return frozenset(person.number for person in self._people if self._is_worn(person))

    def open_menu(self, number: int, at: QPoint) -> QMenu | None:
        """Of one person, at a place of the screen; None of somebody who is not here."""
        if number not in {person.number for person in self._people}:
            return None
        menu = self.menu_of(number)
        menu.popup(at)
        return menu

    def take_focus(self) -> None:
        """The first of them, for the keyboard."""
        first = next(iter(self.chips.values()), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # --- chips ---

    def _refresh(self) -> None:
        numbers = [person.number for person in self._people]
        if list(self.chips) != numbers:
            self._make_chips(numbers)
        for person in self._people:
            self.chips[person.number].show_person(person, self._words(person), self._is_worn(person))

    def _make_chips(self, numbers: Sequence[int]) -> None:
        """In the order of the numbers; one that stays keeps its focus."""
        for number in set(self.chips) - set(numbers):
            self.chips[number].hide()
            self.chips.pop(number).deleteLater()
        for chip in self.chips.values():
            self._row.removeWidget(chip)
        kept, self.chips = self.chips, {}
        for number in numbers:
            self.chips[number] = kept.get(number) or self._chip(number)
            self._row.insertWidget(self._row.count() - 1, self.chips[number])
        first = [] if self.after is None or self.after.isWindow() else [self.after]  # full screen it is another window
        for before, after in pairwise([*first, *self.chips.values(), self.more, self.all]):
            self.setTabOrder(before, after)

    def _chip(self, number: int) -> Chip:
        chip = Chip(number)
        chip.clicked.connect(lambda: self.open_menu(number, self._below(chip)))
        return chip

    @staticmethod
    def _below(button: QToolButton) -> QPoint:
        return button.mapToGlobal(button.rect().bottomLeft())

    def _is_worn(self, person: Person) -> bool:
        return self._settings.people.person(person.number).wear is Wear.SWAP and self._has_face(person.number)

    def _has_face(self, number: int) -> bool:
        people = self._settings.people
        return self._has_own_face or bool(people.person(number).source or people.each or self._settings.source.photos)

    def _words(self, person: Person) -> str:
        people = self._settings.people
        chosen = people.person(person.number)
        if chosen.wear is Wear.HIDE:
            return tr("Hidden")
        if chosen.wear is Wear.LEAVE:
            doubts = doubts_of(person, people)
            return tr("Hidden: person {number}?").format(number=doubts[0]) if doubts else tr("As filmed")
        if not self._has_face(person.number):
            return tr("No face is chosen")
        if person.number in self._hidden:  # though they were to be swapped: the budget has stepped down
            return tr("Hidden, to keep up")
        return self._name_of(chosen.source) if chosen.source is not None else tr("Swapped")

    def _name_of(self, source: SourceSettings) -> str:
        known = next((face.name for face in self._offer() if face.source == source), None)
        name = known or ", ".join(photo.stem for photo in source.photos)
        return self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, 3 * CHIP_PX)

    # --- menus ---

    def menu_of(self, number: int) -> QMenu:
        """What one person may get; what they get now is marked."""
        menu = self._menu(tr("Person {number}").format(number=number))
        people = self._settings.people
        chosen = people.person(number)
        self._add_doubts(menu, number)
        group = QActionGroup(menu)
        plain = chosen.wear is Wear.SWAP and chosen.source is None
        self._choice(menu, group, tr("Wears the chosen face"), plain, _giving(number, Wear.SWAP))
        menu.addMenu(self._menu_of_faces(menu, group, chosen))
        self._choice(menu, group, tr("Left as filmed"), chosen.wear is Wear.LEAVE, _giving(number, Wear.LEAVE))
        self._choice(menu, group, tr("Hidden"), chosen.wear is Wear.HIDE, _giving(number, Wear.HIDE))
        menu.addSeparator()
        self._act(menu, tr("Swap only this person"), lambda people: people.only(number))
        for action in (*group.actions(), menu.actions()[-1]):
            action.triggered.connect(lambda: self.told.emit(number, None))  # who is chosen is not in doubt
        return menu

    def _add_doubts(self, menu: QMenu, number: int) -> None:
        """Who it may be."""
        person = next((person for person in self._people if person.number == number), None)
        doubts = [] if person is None else doubts_of(person, self._settings.people)
        for who in doubts:
            action = menu.addAction(tr("This is person {number}").format(number=who))
            action.triggered.connect(partial(self.told.emit, number, who))
        if doubts:
            menu.addAction(tr("This is somebody else")).triggered.connect(partial(self.told.emit, number, None))
            menu.addSeparator()

    def _menu_of_faces(self, menu: QMenu, group: QActionGroup, chosen: PersonSettings) -> QMenu:
        own = chosen.source if chosen.wear is Wear.SWAP else None
        words = tr("Wears another face")
        faces = QMenu(words if own is None else f"{words}: {_plain(self._name_of(own))}", menu)
        for face in self._offer():
            action = self._choice(faces, group, _plain(face.name), own == face.source, _giving(chosen.number, Wear.SWAP, face.source))
            action.setIcon(face.picture)
            font = action.font()
            font.setBold(own == face.source)  # beside a picture no mark is drawn
            action.setFont(font)
        faces.setEnabled(bool(faces.actions()))
        return faces

    def menu_of_all(self) -> QMenu:
        """What those get who are not chosen by name, and the ways back."""
        menu = self._menu(tr("Everybody"))
        people = self._settings.people
        group = QActionGroup(menu)
        for wear, words in (
            (Wear.SWAP, tr("The others are swapped")),
            (Wear.LEAVE, tr("The others are left as filmed")),
            (Wear.HIDE, tr("The others are hidden")),
        ):
            self._choice(menu, group, words, people.others is wear, partial(_with, others=wear))
        menu.addSeparator()
        faces = tuple(face.source for face in self._offer())[:FACES_MAX]
        each = self._act(menu, tr("One face each, from the gallery"), partial(_with, each=() if people.each else faces))
        each.setCheckable(True)
        each.setChecked(bool(people.each))
        each.setEnabled(bool(people.each or faces))
        menu.addMenu(self._menu_of_recognisers(menu))
        self._act(menu, tr("All alike again"), lambda people: PeopleSettings(recogniser=people.recogniser))
        return menu

    def _menu_of_recognisers(self, menu: QMenu) -> QMenu:
        """How people are told apart. A model that is not here is named with what fetches it."""
        models = QMenu(tr("Known again by"), menu)
        models.setToolTipsVisible(True)
        group = QActionGroup(models)
        chosen = self._settings.people.recogniser
        self._choice(models, group, tr("Where the face was (built in)"), chosen is None, partial(_with, recogniser=None))
        for part in self._recognisers:
            action = self._choice(models, group, _plain(part.name), chosen == part.name, partial(_with, recogniser=part.name))
            action.setEnabled(not part.missing)
            action.setToolTip(tr("Not on this computer yet.") if part.missing else "")
        return models

    def _menu(self, title: str) -> QMenu:
        menu = QMenu(self)
        menu.setAccessibleName(title)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        heading = QAction(title, menu)
        heading.setEnabled(False)
        menu.addAction(heading)
        menu.addSeparator()
        return menu

    def _choice(self, menu: QMenu, group: QActionGroup, words: str, on: bool, revise: Revision) -> QAction:
        action = self._act(menu, words, revise)
        action.setCheckable(True)
        action.setChecked(on)
        group.addAction(action)
        return action

    def _act(self, menu: QMenu, words: str, revise: Revision) -> QAction:
        action = QAction(words, menu)
        action.triggered.connect(lambda: self.changed.emit(_of_people(revise)))
        menu.addAction(action)
        return action


Revision = Callable[[PeopleSettings], PeopleSettings]


def doubts_of(person: Person, people: PeopleSettings) -> list[int]:
    """Whom, of those whose face is not to be seen, this may be."""
    return sorted(other for other in person.perhaps if _is_covered(other, people))


def _is_covered(number: int, people: PeopleSettings) -> bool:
    return any(named.number == number and named.wear is not Wear.LEAVE for named in people.named)


def _giving(number: int, wear: Wear, source: SourceSettings | None = None) -> Revision:
    return lambda people: people.with_person(PersonSettings(number=number, wear=wear, source=source))


def _with(people: PeopleSettings, **fields: object) -> PeopleSettings:
    return people.model_copy(update=fields)


def _of_people(revise: Revision) -> Change:
    return lambda settings: settings.model_copy(update={"people": revise(settings.people)})


def _looking_for(count: int) -> Change:
    return lambda settings: settings.model_copy(update={"look": settings.look.model_copy(update={"max_faces": count})})


def _plain(name: str) -> str:
    """A name in which no letter is a shortcut."""
    return name.replace("&", "&&")

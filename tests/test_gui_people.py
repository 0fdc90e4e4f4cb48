"""The people in the picture: a chip for each, a menu for each, by mouse and keyboard, live and undone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import cv2
from conftest import ASTRONAUT, HOPPER
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QIcon
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from app.gui import theme
from app.gui.live import LiveState
from app.gui.people import Chip, OfferedFace, PeopleStrip, doubtful
from app.gui.window import Window
from app.offers import Part
from app.settings import InputSettings, LookSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from rt.options import Wear
from rt.track.people import THUMBNAIL_PX, Person

PATIENCE_MS = 60_000
THUMBNAIL = np.full((THUMBNAIL_PX, THUMBNAIL_PX, 3), 90, np.uint8)


@pytest.fixture(autouse=True)
def kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))


# --- the strip alone ---


def person(number: int, *, in_sight: bool = True, perhaps: frozenset[int] = frozenset()) -> Person:
    return Person(number, THUMBNAIL, in_sight, perhaps)


FACES = (
    OfferedFace("Hopper & Co", SourceSettings(photos=(HOPPER,)), QIcon()),
    OfferedFace("Astronaut", SourceSettings(photos=(ASTRONAUT,)), QIcon()),
)
SWAPPING = Settings(source=SourceSettings(photos=(HOPPER,)), look=LookSettings(max_faces=4))


class Desk:
    """A strip whose wishes are carried out at once."""

    def __init__(self, settings: Settings = SWAPPING) -> None:
        self.settings = settings
        self.strip = PeopleStrip(lambda: FACES)
        self.strip.changed.connect(self._take)
        self.strip.show_settings(settings)

    def _take(self, change: Any) -> None:
        self.settings = change(self.settings)
        self.strip.show_settings(self.settings)

    def words(self) -> list[str]:
        return [chip.text().split("\n")[1] for chip in self.strip.chips.values()]


@pytest.fixture
def desk(qtbot: Any, qapp: Any) -> Desk:
    theme.apply(qapp, theme.LIGHT)
    made = Desk()
    qtbot.addWidget(made.strip)
    made.strip.show()
    return made


def actions(menu: QMenu) -> dict[str, QAction]:
    found = {action.text(): action for action in menu.actions() if action.text()}
    for action in menu.actions():
        if action.menu() is not None:
            found |= actions(action.menu())  # type: ignore[arg-type]
    return found


def choose(menu: QMenu, words: str) -> None:
    action = actions(menu)[words]
    assert action.isEnabled()
    action.trigger()


def test_a_chip_for_each_in_the_picture_and_for_who_was_chosen_and_is_away(desk: Desk) -> None:
    desk.strip.show_people([person(1), person(2, in_sight=False), person(3)])
    assert list(desk.strip.chips) == [1, 3]
    choose(desk.strip.menu_of(3), "Hidden")
    desk.strip.show_people([person(1), person(2, in_sight=False), person(3, in_sight=False)])
    assert list(desk.strip.chips) == [1, 3]
    assert desk.strip.chips[3].accessibleName() == "Person 3, Hidden, out of the picture"
    assert desk.strip.chips[1].accessibleName() == "Person 1, Swapped, in the picture"


def test_each_choice_of_a_menu_is_made_and_marked(desk: Desk) -> None:
    desk.strip.show_people([person(1), person(2)])
    wanted = {
        "Left as filmed": PersonSettings(number=2, wear=Wear.LEAVE),
        "Hidden": PersonSettings(number=2, wear=Wear.HIDE),
        "Hopper && Co": PersonSettings(number=2, source=FACES[0].source),
        "Wears the chosen face": PersonSettings(number=2),
    }
    for words, expected in wanted.items():
        choose(desk.strip.menu_of(2), words)
        assert desk.settings.people.named == (expected,)
        marked = [action.text() for action in actions(desk.strip.menu_of(2)).values() if action.isChecked()]
        assert marked == [words]
    assert desk.words() == ["Swapped", "Swapped"]


def test_only_one_and_all_alike_again(desk: Desk) -> None:
    desk.strip.show_people([person(1), person(2)])
    assert desk.strip.worn() is None
    choose(desk.strip.menu_of(1), "Astronaut")
    choose(desk.strip.menu_of(1), "Swap only this person")
    assert desk.settings.people.person(1).source == FACES[1].source  # the face of their own is kept
    assert desk.words() == ["Astronaut", "As filmed"]
    assert desk.strip.worn() == frozenset({1})
    choose(desk.strip.menu_of_all(), "All alike again")
    assert desk.settings.people == PeopleSettings()


def test_others_and_one_face_each(desk: Desk) -> None:
    desk.strip.show_people([person(1), person(2)])
    choose(desk.strip.menu_of_all(), "The others are hidden")
    assert desk.words() == ["Hidden", "Hidden"]
    choose(desk.strip.menu_of_all(), "The others are swapped")
    choose(desk.strip.menu_of_all(), "One face each, from the gallery")
    assert desk.settings.people.each == (FACES[0].source, FACES[1].source)
    choose(desk.strip.menu_of_all(), "One face each, from the gallery")
    assert desk.settings.people.each == ()


def test_what_knows_people_again_is_chosen_and_what_is_not_here_says_so(desk: Desk) -> None:
    desk.strip.offer_recognisers([Part("mine"), Part("arcface_w600k_r50", "ffrt models pull arcface_w600k_r50")])
    choose(desk.strip.menu_of_all(), "mine")
    assert desk.settings.people.recogniser == "mine"
    missing = actions(desk.strip.menu_of_all())["arcface_w600k_r50"]
    assert not missing.isEnabled()
    assert "models pull" in missing.toolTip()
    choose(desk.strip.menu_of_all(), "The others are hidden")
    choose(desk.strip.menu_of_all(), "All alike again")
    assert desk.settings.people == PeopleSettings(recogniser="mine")  # it is no choice of who wears what
    choose(desk.strip.menu_of_all(), "Where the face was (built in)")
    assert desk.settings.people.recogniser is None


def test_who_may_be_somebody_else_is_said_to_be_hidden(desk: Desk) -> None:
    desk.strip.show_people([person(1)])
    choose(desk.strip.menu_of(1), "Swap only this person")
    newcomer = person(2, perhaps=frozenset({1}))
    desk.strip.show_people([person(1, in_sight=False), newcomer])
    assert desk.words() == ["Swapped", "Hidden: person 1?"]
    choose(desk.strip.menu_of(2), "Left as filmed")
    assert desk.words() == ["Swapped", "As filmed"]
    assert doubtful(newcomer, PeopleSettings()) is None


def test_no_face_is_said(qtbot: Any) -> None:
    desk = Desk(Settings())
    qtbot.addWidget(desk.strip)
    desk.strip.show_people([person(1)])
    assert desk.words() == ["No face is chosen"]
    assert desk.strip.worn() is None


def test_one_who_asks_for_others_gets_them_looked_for(qtbot: Any) -> None:
    desk = Desk(Settings())
    qtbot.addWidget(desk.strip)
    desk.strip.show()
    assert desk.strip.more.isVisible()
    desk.strip.more.click()
    assert desk.settings.look.max_faces == 4
    assert not desk.strip.more.isVisible()


def test_the_keyboard_reaches_everybody_and_opens_the_menu(desk: Desk, qtbot: Any) -> None:
    desk.strip.show_people([person(1), person(2)])
    desk.strip.activateWindow()
    qtbot.waitUntil(lambda: desk.strip.isActiveWindow() and desk.strip.chips[1].isVisible())
    desk.strip.take_focus()
    reached = []
    for _ in range(3):
        reached.append(QApplication.focusWidget())
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert reached == [desk.strip.chips[1], desk.strip.chips[2], desk.strip.all]
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Menu):
        QTest.keyClick(desk.strip.chips[2], key)
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        assert menu.accessibleName() == "Person 2"
        QTest.keyClick(menu, Qt.Key.Key_End)
        QTest.keyClick(menu, Qt.Key.Key_Escape)
        qtbot.waitUntil(lambda: QApplication.activePopupWidget() is None)


def test_a_chip_that_stays_keeps_its_place_and_its_focus(desk: Desk, qtbot: Any) -> None:
    desk.strip.show_people([person(1), person(2)])
    desk.strip.activateWindow()
    qtbot.waitUntil(lambda: desk.strip.isActiveWindow() and desk.strip.chips[2].isVisible())
    kept: Chip = desk.strip.chips[2]
    kept.setFocus()
    desk.strip.show_people([person(2), person(3)])
    assert desk.strip.chips[2] is kept
    assert kept.hasFocus()
    desk.strip.clear()
    assert not desk.strip.isVisible()
    assert desk.strip.chips == {}


# --- in the window, on the synthetic camera ---


@pytest.fixture(scope="module")
def two_people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both portraits in one, near each other."""
    picture = np.full((540, 960, 3), 110, np.uint8)
    astronaut, hopper = cv2.imread(str(ASTRONAUT)), cv2.imread(str(HOPPER))
    assert astronaut is not None
    assert hopper is not None
    hopper = cv2.resize(hopper[:, 100:430], None, fx=0.6, fy=0.6)
    picture[60:480, 200:460] = astronaut[:420, 100:360]
    picture[60 : 60 + hopper.shape[0], 480 : 480 + hopper.shape[1]] = hopper
    path = tmp_path_factory.mktemp("portrait") / "two.png"
    cv2.imwrite(str(path), picture)
    return path


@pytest.fixture
def window(qtbot: Any, qapp: Any, two_people: Path) -> Iterator[Window]:
    theme.apply(qapp, theme.LIGHT)
    camera = InputSettings(spec=f"synthetic:size=960x540,fps=15,face=150,portrait={two_people}")
    made = Window(SWAPPING.model_copy(update={"input": camera}), theme.LIGHT)
    made.resize(1280, 820)
    made.show()
    made.toggle_live()
    qtbot.waitUntil(lambda: len(made.people.chips) == 2, timeout=PATIENCE_MS)
    yield made
    made.close()


def settled(window: Window, qtbot: Any) -> None:
    qtbot.waitUntil(lambda: not window.control.busy and window.control.studio.settings == window.settings, timeout=PATIENCE_MS)


def changed_faces(window: Window, qtbot: Any) -> dict[int, bool]:
    """Person → whether the middle of the face differs from what was filmed, in a picture to come."""
    window.preview.set_split(0.5)
    with qtbot.waitSignal(
        window.preview.shown, timeout=PATIENCE_MS, check_params_cb=lambda picture: picture.before is not None and len(picture.faces) == 2
    ) as shown:
        pass
    picture = shown.args[0]
    scale = picture.pixels.shape[1] / picture.size[0]
    found = {}
    for face in picture.faces:
        x, y = (face.points[:, :2].mean(0) * scale).astype(int)
        parts = [pixels[y - 6 : y + 6, x - 6 : x + 6, :3].astype(int) for pixels in (picture.pixels, picture.before)]
        found[face.person] = bool(np.abs(parts[0] - parts[1]).mean() > 3)
    return found


def test_what_is_chosen_for_a_person_is_seen_and_undone_on_the_same_line(window: Window, qtbot: Any) -> None:
    session = window.control.studio.session
    first, second = window.people.chips
    assert changed_faces(window, qtbot) == {first: True, second: True}
    choose(window.people.menu_of(second), "Swap only this person")
    settled(window, qtbot)
    qtbot.waitUntil(lambda: changed_faces(window, qtbot) == {first: False, second: True}, timeout=PATIENCE_MS)
    assert window.preview.scene.chosen == frozenset({second})
    window.undo()
    settled(window, qtbot)
    qtbot.waitUntil(lambda: changed_faces(window, qtbot) == {first: True, second: True}, timeout=PATIENCE_MS)
    window.redo()
    settled(window, qtbot)
    assert window.settings.people.others is Wear.LEAVE
    assert window.control.studio.session is session
    assert not window.message.isVisible(), window.message.text()


def test_a_click_on_a_face_opens_the_menu_of_that_person(window: Window, qtbot: Any) -> None:
    face = max(window.preview.scene.picture.faces, key=lambda face: face.person)  # type: ignore[union-attr]
    at = window.preview.scene.place(window.preview.area()).map(*map(int, face.points[:, :2].mean(0)))
    QTest.mouseClick(window.preview, Qt.MouseButton.LeftButton, pos=QPoint(*map(int, at)))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert menu.accessibleName() == f"Person {face.person}"
    choose(menu, "Hidden")
    menu.close()
    assert window.settings.people.named == (PersonSettings(number=face.person, wear=Wear.HIDE),)


def test_photos_of_several_people_can_be_taken_apart(window: Window, qtbot: Any) -> None:
    window.face.add_photos([HOPPER, ASTRONAUT])
    qtbot.waitUntil(lambda: window.message.action.isVisible(), timeout=PATIENCE_MS)
    window.message.action.click()
    qtbot.waitUntil(lambda: len(window.settings.people.each) == 2, timeout=PATIENCE_MS)
    settled(window, qtbot)
    qtbot.waitUntil(lambda: [len(tile.identity.photos) for tile in window.face.tiles] == [1] * 4, timeout=PATIENCE_MS)
    assert len(window.control.studio.session.line.economy.look().seats) == 2  # type: ignore[union-attr]


def test_the_strip_goes_with_the_line(window: Window, qtbot: Any) -> None:
    assert window.people.isVisible()
    window.toggle_live()
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert not window.people.isVisible()

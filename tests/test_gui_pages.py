"""The pages: what a person sets reaches the Settings, can be undone, and nothing that was set elsewhere is lost."""

from __future__ import annotations

import json
import os
import sys
import threading
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
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDragLeaveEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from app.gui import theme
from app.gui.cards.card import changed
from app.gui.consent import Consent
from app.gui.live import LiveState
from app.gui.memory import restored
from app.gui.trouble import Trouble, TroublePage
from app.gui.window import Window
from app.gui.words import CONTEXT, Words
from app.presets import Preset, Presets
from app.settings import InputSettings, LookSettings, OutputSettings, RunSettings, Settings, SourceSettings
from app.state import StateFile
from rt.capture.camera import CameraInfo, CameraMode

SMALL = InputSettings(spec="synthetic:size=640x360,fps=30")
PATIENCE_MS = 60_000


@pytest.fixture(autouse=True)
def kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))


@pytest.fixture
def opened(qtbot: Any, qapp: Any) -> Iterator[Any]:
    """Opens windows, and closes them after the test."""
    theme.apply(qapp, theme.LIGHT)
    windows: list[Window] = []

    def open_one(settings: Settings | None = None, colours: theme.Theme = theme.LIGHT, **more: Any) -> Window:
        window = Window(settings or Settings(input=SMALL), colours, **more)
        windows.append(window)
        window.show()
        return window

    yield open_one
    for window in windows:
        window.close()


def go_live(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.toggle_live()
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)


def settled(window: Window, qtbot: Any) -> None:
    qtbot.waitUntil(lambda: not window.control.busy and window.control.studio.settings == window.settings, timeout=PATIENCE_MS)


def mime(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


# --- one Settings value ---


def test_all_that_the_command_line_set_is_kept(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    given = Settings(
        source=SourceSettings(photos=(HOPPER, HOPPER), face=1),
        input=SMALL.model_copy(update={"loop": True, "timecode": True}),
        look=LookSettings(opacity=0.5, runtime="ort", hold_frames=7),
        output=OutputSettings(
            streams=("udp://127.0.0.1:9", "udp://127.0.0.1:19"), virtual_camera="/dev/video9", null=True, bitrate_bps=10**6
        ),
        run=RunSettings(seconds=900, report=tmp_path / "report.json"),
    )
    window = opened(given)
    QTest.qWait(200)
    assert window.settings == given
    window.apply(changed("look", opacity=0.7))
    settled(window, qtbot)
    assert window.control.studio.settings == given.model_copy(update={"look": given.look.model_copy(update={"opacity": 0.7})})
    assert len(window.streams._rows) == 2


def test_seconds_and_report_are_kept_by_the_window(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    """Seconds of being live: loading the models takes longer than these and does not count."""
    report = tmp_path / "report.json"
    window = opened(Settings(input=SMALL, run=RunSettings(seconds=0.3, report=report)))
    window.toggle_live()
    qtbot.waitUntil(lambda: report.exists() and window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert json.loads(report.read_text())["seconds"] >= 0.3


def test_a_change_of_one_output_leaves_the_others_alone(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    window = opened(Settings(input=SMALL, output=OutputSettings(null=True)))
    window.outputs._folder = lambda: tmp_path
    go_live(window, qtbot)
    session = window.control.studio.session
    window.outputs.record.switch.click()
    qtbot.waitUntil(lambda: "●" in window.outputs.record.light.text() and bool(window.outputs.file.text()), timeout=PATIENCE_MS)
    settled(window, qtbot)
    window.outputs.record.switch.click()
    settled(window, qtbot)
    assert window.control.studio.session is session
    assert window.settings.output == OutputSettings(null=True)


def test_an_output_that_cannot_be_is_said_and_taken_back(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    window = opened()
    go_live(window, qtbot)
    before = window.settings
    window.outputs._record_to(tmp_path / "none" / "film.mp4")
    qtbot.waitUntil(lambda: "no folder" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.settings == before, timeout=PATIENCE_MS)
    assert not window.outputs.record.switch.isChecked()
    assert window.state is LiveState.LIVE


def test_a_virtual_camera_that_is_missing_says_how_to_mend_it(opened: Any, qtbot: Any) -> None:
    window = opened()
    go_live(window, qtbot)
    window.outputs.virtual_camera.switch.click()
    settled(window, qtbot)
    light = window.outputs.virtual_camera
    qtbot.waitUntil(lambda: light.light.accessibleName() != f"{light.title}: Off", timeout=PATIENCE_MS)
    if "On" not in light.light.accessibleName() and sys.platform == "linux":
        qtbot.waitUntil(lambda: "v4l2loopback" in light.words.text() or "pyvirtualcam" in light.words.text(), timeout=PATIENCE_MS)
    assert window.state is LiveState.LIVE


def test_what_another_program_changes_is_shown(opened: Any, qtbot: Any) -> None:
    window = opened()
    window.control.studio.revise(changed("look", opacity=0.25))
    qtbot.waitUntil(lambda: window.settings.look.opacity == 0.25, timeout=PATIENCE_MS)
    window.control.studio.start()
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    window.control.studio.stop()
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)


# --- look ---


def field(window: Window, name: str) -> Any:
    return next(card.fields[name] for card in window.cards if name in getattr(card, "fields", {}))


def test_a_slider_is_one_step_back_and_a_reset_another(opened: Any, qtbot: Any) -> None:
    window = opened()
    opacity = field(window, "opacity")
    opacity.slider.setSliderDown(True)
    for position in (90, 60, 30):
        opacity.slider.setSliderPosition(position)
    opacity.slider.setSliderDown(False)
    assert window.settings.look.opacity == 0.3
    window.undo()
    assert window.settings.look.opacity == 1.0
    window.redo()
    assert window.settings.look.opacity == 0.3
    assert not opacity.reset.isHidden()
    opacity.reset.click()
    assert window.settings.look == LookSettings()
    assert opacity.reset.isHidden()
    settled(window, qtbot)


@pytest.mark.parametrize("name", [name for name in LookSettings.model_fields if name not in ("landmarks", "identity")])
def test_every_setting_of_the_look_has_a_row(opened: Any, name: str) -> None:
    assert field(opened(), name) is not None


def test_a_look_changes_on_the_same_line(opened: Any, qtbot: Any) -> None:
    window = opened(Settings(input=SMALL, source=SourceSettings(photos=(HOPPER,))))
    go_live(window, qtbot)
    session = window.control.studio.session
    window.apply(changed("look", opacity=0.0, on_lost="show", masks=()))
    settled(window, qtbot)
    assert window.control.studio.session is session
    look = session.line.economy.look()
    assert look.opacity == 0.0
    assert look.masks == ()


def test_what_is_not_installed_is_grey_and_says_why(opened: Any, qtbot: Any) -> None:
    window = opened()
    swapper = field(window, "swapper")
    qtbot.waitUntil(lambda: swapper.box.findText("inswapper_128") >= 0, timeout=PATIENCE_MS)
    at = swapper.box.findText("inswapper_128")
    assert not swapper.box.model().item(at).isEnabled()
    assert swapper.box.itemData(at, Qt.ItemDataRole.ToolTipRole) == "Not on this computer yet."


# --- faces ---


def test_faces_are_added_renamed_removed_and_brought_back(opened: Any, qtbot: Any) -> None:
    window = opened()
    window.face.add_photos([HOPPER, ASTRONAUT])
    qtbot.waitUntil(lambda: window.face.worn is not None, timeout=PATIENCE_MS)
    assert len(window.settings.source.photos) == 2
    mine = window.face.worn
    window.face.rename(mine, "Grace")
    qtbot.waitUntil(lambda: window.face.worn.name == "Grace", timeout=PATIENCE_MS)
    window.face.set_favourite(window.face.worn)
    qtbot.waitUntil(lambda: window.face.worn.favourite, timeout=PATIENCE_MS)
    window.face.remove(window.face.worn)
    qtbot.waitUntil(lambda: window.face.worn is None, timeout=PATIENCE_MS)
    assert "Grace" in window.message.text()
    window.message.action.click()
    qtbot.waitUntil(lambda: window.face.worn is not None, timeout=PATIENCE_MS)
    assert window.face.worn.name == "Grace"


def test_a_picture_from_the_clipboard_is_worn(opened: Any, qtbot: Any) -> None:
    window = opened()
    data = QMimeData()
    data.setImageData(QImage(str(HOPPER)))
    window.intake.take(data)
    qtbot.waitUntil(lambda: window.photo is not None, timeout=PATIENCE_MS)
    assert window.face.worn is None or window.face.worn.name == "Pasted"


def test_a_face_is_changed_within_two_frames(opened: Any, qtbot: Any) -> None:
    """Counted on the line: from the moment the prepared look is handed over, at most two frames still wear the one before."""
    window = opened(Settings(input=SMALL, source=SourceSettings(photos=(HOPPER,))))
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
    go_live(window, qtbot)
    line = window.control.studio.session.line
    taken: list[tuple[int, int]] = []
    update, current = line.update, line.economy.look
    looks: list[Any] = []

    def noted_update(*given: Any) -> Any:
        taken.append((len(looks), id(given[0])))
        return update(*given)

    def noted_look(lane: int | None = None) -> Any:
        look = current(lane or 0)
        if lane is not None:  # a lane begins a frame
            looks.append(id(look))
        return look

    line.update, line.economy.look = noted_update, noted_look
    window.face.wear_number(2)
    qtbot.waitUntil(lambda: bool(taken), timeout=PATIENCE_MS)
    (at, look) = taken[0]
    qtbot.waitUntil(lambda: look in looks, timeout=PATIENCE_MS)
    assert looks.index(look) - at <= 2
    assert window.photo == ASTRONAUT


# --- bad input ---


def test_a_folder_is_answered(opened: Any, tmp_path: Path) -> None:
    window = opened()
    (tmp_path / "holiday").mkdir()
    window.intake.take(mime(tmp_path / "holiday"))
    assert "holiday is a folder" in window.message.text()
    assert window.settings == Settings(input=SMALL)


def test_a_video_is_offered_as_the_camera(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    window = opened()
    film = tmp_path / "film.mp4"
    film.write_bytes(b"")
    window.intake.take(mime(film))
    assert "is a video" in window.message.text()
    assert window.settings.input == SMALL
    window.message.action.click()
    assert window.settings.input.spec == str(film)
    go = window.control
    go.go(True)
    qtbot.waitUntil(lambda: "film.mp4" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)


def test_text_and_addresses_are_answered(opened: Any) -> None:
    window = opened()
    for text, answer in (("hello", "That is text"), ("rtsp://camera/live", "That is an address")):
        data = QMimeData()
        data.setText(text)
        window.intake.take(data)
        assert answer in window.message.text()
    assert window.settings == Settings(input=SMALL)


@pytest.mark.parametrize("kind", ["no face", "no picture", "huge"])
def test_a_photo_that_cannot_be_worn_is_answered_and_nothing_is_lost(opened: Any, qtbot: Any, tmp_path: Path, kind: str) -> None:
    window = opened(Settings(input=SMALL, source=SourceSettings(photos=(HOPPER,))))
    photo = tmp_path / "photo.png"
    if kind == "no face":
        cv2.imwrite(str(photo), np.full((300, 300, 3), 90, np.uint8))
    elif kind == "no picture":
        photo.write_bytes(b"this is no picture")
    else:
        cv2.imwrite(str(photo), np.zeros((14_200, 14_200), np.uint8))  # 200 megapixels
    go_live(window, qtbot)
    window.intake.take(mime(photo))
    qtbot.waitUntil(lambda: bool(window.message.text()), timeout=PATIENCE_MS)
    assert "photo" in window.message.text()
    assert window.photo == HOPPER
    assert window.state is LiveState.LIVE
    assert window.face.busy.isHidden()


# --- presets and memory ---


def test_a_preset_is_kept_and_worn(opened: Any, qtbot: Any) -> None:
    window = opened()
    window.apply(changed("look", opacity=0.4))
    window.presets.name.setText("Evening & more")
    window.presets.save.click()
    qtbot.waitUntil(lambda: "Evening & more" in window.presets.lines, timeout=PATIENCE_MS)
    window.apply(changed("look", opacity=0.9))
    window.presets.lines["Evening & more"].click()
    qtbot.waitUntil(lambda: window.settings.look.opacity == 0.4, timeout=PATIENCE_MS)
    window.undo()
    assert window.settings.look.opacity == 0.9


@pytest.mark.parametrize(("text", "answer"), [("look = [", "not valid TOML"), ("ffrt_preset = 99\n", "newer ffrt"), ("a = 1\n", "no line")])
def test_a_preset_that_is_broken_or_of_the_future_is_answered(opened: Any, qtbot: Any, tmp_path: Path, text: str, answer: str) -> None:
    window = opened()
    file = tmp_path / "given.toml"
    file.write_text(text)
    window.presets.import_file(file)
    qtbot.waitUntil(lambda: answer in window.message.text(), timeout=PATIENCE_MS)
    assert file.read_text() == text
    assert Presets().names() == []


def test_a_preset_goes_out_and_comes_in(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    Presets().save("Soft", Preset(look=LookSettings(opacity=0.3)))
    window = opened()
    qtbot.waitUntil(lambda: "Soft" in window.presets.lines, timeout=PATIENCE_MS)
    window.presets.export("Soft", tmp_path / "Hard.toml")
    qtbot.waitUntil((tmp_path / "Hard.toml").exists, timeout=PATIENCE_MS)
    window.presets.import_file(tmp_path / "Hard.toml")
    qtbot.waitUntil(lambda: "Hard" in window.presets.lines, timeout=PATIENCE_MS)


def test_what_was_set_is_there_at_the_next_start(opened: Any, qtbot: Any) -> None:
    file = StateFile()
    window = opened(memory=(file, file.load()))
    window.apply(changed("look", opacity=0.6))
    window.apply(changed("output", record=Path("film.mp4"), streams=("rtmp://host/app/secret",)))
    window.pages.open_named("look")
    window.close()
    assert "secret" not in file.file.read_text()
    then = restored(Settings(), file.load())
    assert then.look.opacity == 0.6
    assert then.input == SMALL
    assert not then.output.streams
    assert then.output.record is None
    again = opened(then, memory=(file, file.load()))
    assert again.pages.current == "look"
    assert "geometry" in file.load().window


# --- cameras ---

CAMERAS = [
    CameraInfo(0, "Desk camera", "/dev/video0", (CameraMode(1280, 720, 30.0, "MJPG"), CameraMode(640, 480, 30.0, "YUYV"))),
    CameraInfo(2, "Other", "/dev/video2", ()),
]


def test_the_first_camera_is_chosen_where_nobody_asked_for_another(opened: Any) -> None:
    for choose, spec in ((True, "/dev/video0"), (False, "synthetic:")):
        window = opened(Settings(), choose_camera=choose)
        window.camera._offer(CAMERAS)
        assert window.settings.input.spec == spec


def test_modes_come_from_the_driver(opened: Any, qtbot: Any) -> None:
    window = opened(Settings(input=InputSettings(spec="camera:desk camera")))
    window.camera._offer(CAMERAS)
    assert window.camera.camera.currentText() == "Desk camera"
    at = window.camera.mode.findText("640×480, 30 fps, YUYV")
    window.camera.mode.setCurrentIndex(at)
    window.camera.mode.activated.emit(at)
    assert window.settings.input == InputSettings(spec="camera:desk camera", width=640, height=480, fps=30, fourcc="YUYV")


def test_a_camera_that_is_not_there_is_said(opened: Any, qtbot: Any) -> None:
    window = opened(Settings(input=InputSettings(spec="/dev/video63")))
    window.camera._offer(CAMERAS)
    assert "not plugged in" in window.camera.camera.currentText()
    window.toggle_live()
    qtbot.waitUntil(lambda: "/dev/video63" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)


# --- buttons for what has a key ---


def test_what_has_a_key_has_a_button(opened: Any, qtbot: Any) -> None:
    window = opened()
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
    able = lambda: {name for name, button in window.tools.items() if button.isEnabled()}  # noqa: E731
    assert able() == set()
    window.face.wear_number(1)
    assert able() == {"undo"}
    window.tools["undo"].click()
    assert window.photo is None
    assert able() == {"redo"}
    window.tools["redo"].click()
    assert window.photo is not None
    go_live(window, qtbot)
    assert able() == {"undo", "snapshot", "full"}
    window.tools["full"].click()
    assert window.preview.isFullScreen()
    QTest.keyClick(window.preview, Qt.Key.Key_Escape)
    assert not window.preview.isFullScreen()


def test_a_place_to_drop_at_lights_up_while_something_is_held_there(opened: Any) -> None:
    window = opened()
    held = mime(HOPPER)  # Qt's event holds no reference
    enter = QDragEnterEvent(QPoint(600, 300), Qt.DropAction.CopyAction, held, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, enter)
    assert window.preview.scene.inviting
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert not window.preview.scene.inviting


# --- trouble ---


def test_what_nobody_expected_opens_a_page_and_the_line_goes_on(opened: Any, qtbot: Any) -> None:
    """A card that breaks in a slot of Qt, and a thread that breaks: real parts that raise."""
    window = opened(Settings(input=SMALL, source=SourceSettings(photos=(HOPPER,))))
    go_live(window, qtbot)
    hooks = sys.excepthook, threading.excepthook
    trouble = Trouble()
    trouble.happened.connect(window.tell_trouble)
    try:
        sys.excepthook(ZeroDivisionError, ZeroDivisionError(f"of {HOPPER} at rtmp://stage.example/app/key"), None)
        thread = threading.Thread(target=lambda: [].pop())
        thread.start()
        thread.join()
        qtbot.waitUntil(lambda: window._trouble is not None and "2" in window._trouble.words.text(), timeout=PATIENCE_MS)
    finally:
        trouble.close()
    assert (sys.excepthook, threading.excepthook) == hooks
    page = window._trouble
    page.copy.click()
    text = QApplication.clipboard().text()
    assert "ZeroDivisionError" in text
    assert str(HOPPER.parent) not in text
    assert "stage.example" not in text
    assert "live and goes on" in page.words.text()
    assert window.state is LiveState.LIVE
    page.accept()


# --- for everybody ---

CONTROLS = (QAbstractButton, QAbstractSlider, QComboBox, QLineEdit, QPlainTextEdit)


def test_every_control_has_a_name_for_a_screen_reader(opened: Any, qtbot: Any) -> None:
    window = opened()
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
    nameless = [
        f"{type(widget).__name__} {widget.objectName()} in {type(widget.parent()).__name__}"
        for widget in window.findChildren(QWidget)
        if isinstance(widget, CONTROLS) and not belongs_to_qt(widget) and not (widget.accessibleName() or text_of(widget))
    ]
    assert nameless == []


def test_the_keyboard_reaches_every_control_of_every_page(opened: Any, qtbot: Any) -> None:
    window = opened()
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
    for page in range(window.pages.count):
        window.pages.open(page)
        wanted = {
            widget
            for widget in window.findChildren(QWidget)
            if isinstance(widget, CONTROLS) and widget.isVisible() and widget.isEnabled() and not belongs_to_qt(widget)
            if widget.objectName() != "rail"  # one of them has the focus, and the arrow keys go from it to the others
        }
        reached, widget = set(), window.nextInFocusChain()
        while widget is not window:
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                reached.add(widget)
            widget = widget.nextInFocusChain()
        assert {f"{type(w).__name__} {w.accessibleName() or text_of(w)}" for w in wanted - reached} == set()


RIGHT_TO_LEFT = "\u200f"
"""A mark without width: a line that begins with it is one of a language that is written so."""


class Long(Words):
    """Every sentence half as long again, between marks: a language that nobody speaks."""

    def __init__(self, direction: Qt.LayoutDirection = Qt.LayoutDirection.LeftToRight) -> None:
        super().__init__("en")
        self._mark = RIGHT_TO_LEFT if direction is Qt.LayoutDirection.RightToLeft else ""

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str | None:
        return f"{self._mark}⟦{source}{' ~~~' * (1 + len(source) // 8)}⟧" if context == CONTEXT else None

    def isEmpty(self) -> bool:  # noqa: N802
        return False


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_long_words_are_not_cut_off(opened: Any, qtbot: Any, qapp: Any, direction: Qt.LayoutDirection) -> None:
    words = Long(direction)
    qapp.installTranslator(words)
    qapp.setLayoutDirection(direction)
    try:
        window = opened()
        window.resize(1100, 700)
        qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
        for page in range(window.pages.count):
            window.pages.open(page)
            QTest.qWait(50)
            keep(window, f"long_{direction.name}_{window.pages.current}")
            assert cut_off(window) == []
    finally:
        qapp.removeTranslator(words)
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


@pytest.mark.parametrize("language", ["en", "de", "zh", "long"])
def test_no_word_of_the_other_windows_is_cut_off(opened: Any, qtbot: Any, qapp: Any, language: str) -> None:
    """What is asked first, and what is said when something has broken."""
    words = Long() if language == "long" else Words(language)
    qapp.installTranslator(words)
    try:
        first, page = Consent(), TroublePage(opened(), lambda error: "report")
        page.tell(ZeroDivisionError(), live=True)
        for number, dialogue in enumerate((first, page)):
            dialogue.show()
            qtbot.waitUntil(dialogue.isVisible, timeout=PATIENCE_MS)
            QApplication.processEvents()
            keep(dialogue, f"dialogue_{language}_{number}")
            assert cut_off(dialogue) == []
            dialogue.close()
    finally:
        qapp.removeTranslator(words)


# ruff: noqa: SIM102
def cut_off(window: Any) -> list[str]:
    """Labels and buttons whose words need more room than they have, and cards that are wider than their page."""
    found = []
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or widget.objectName() == "face":
            continue
        if isinstance(widget, QLabel) and widget.text() and widget.wordWrap():
            if widget.heightForWidth(widget.width()) > widget.height() + 2:
                found.append(widget.text())
        elif isinstance(widget, QLabel | QPushButton) and text_of(widget) and widget.sizePolicy().horizontalPolicy().name != "Ignored":
            if widget.minimumSizeHint().width() > widget.width() + 1:
                found.append(text_of(widget))
    for card in getattr(window, "cards", ()):
        page = card.parentWidget()
        if card.isVisible() and page is not None and page.parentWidget() is not None and page.width() > page.parentWidget().width():
            found.append(f"{card.accessibleName()}: {page.width()} of {page.parentWidget().width()}")
    return found


def text_of(widget: QWidget) -> str:
    text = getattr(widget, "text", None)
    return str(text()) if callable(text) else ""


def belongs_to_qt(widget: QWidget) -> bool:
    """Scroll bars, and the list inside of a combo box."""
    return type(widget).__name__ in ("QScrollBar",) or widget.objectName().startswith("qt_") or isinstance(widget.parent(), QComboBox)


def keep(window: QWidget, name: str) -> None:
    folder = os.environ.get("FFRT_SCREENSHOTS")
    if folder:
        window.grab().save(str(Path(folder) / f"{name}.png"))


@pytest.mark.parametrize("size", [(1100, 700), (1600, 1000)])
@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_every_page_in_every_language_and_colour(
    opened: Any, qtbot: Any, qapp: Any, language: str, colours: theme.Theme, size: tuple[int, int]
) -> None:
    words = Words(language)
    qapp.installTranslator(words)
    theme.apply(qapp, colours)
    try:
        window = opened(colours=colours)
        window.resize(*size)
        qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=PATIENCE_MS)
        qtbot.waitUntil(lambda: not any(worker.is_busy for worker in window.bench._workers.values()), timeout=PATIENCE_MS)
        for page in range(window.pages.count):
            window.pages.open(page)
            QTest.qWait(20)
            keep(window, f"{language}_{'light' if colours is theme.LIGHT else 'dark'}_{size[0]}_{window.pages.current}")
            assert cut_off(window) == []
        assert window.grab().toImage().pixelColor(4, 4) == QColor(colours.page)
        assert (window.width(), window.height()) == size
    finally:
        qapp.removeTranslator(words)


def test_what_stands_in_the_place_of_the_picture_knows_whether_a_face_is_chosen(opened: Any) -> None:
    window = opened()
    assert "Choose a face" in window.preview.scene.message
    window.apply(changed("source", photos=(HOPPER,)))
    assert window.preview.scene.message == "Go live to see the picture here."
    window.apply(changed("source", photos=()))
    assert "Choose a face" in window.preview.scene.message

"""The camera's page: what is wished there is in the Settings, in the pixels while live, and what was granted is said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt
from test_capture_media import numbered, write_clip

from app.gui import theme
from app.gui.cards.camera import asked_text, typed
from app.gui.cards.card import changed
from app.gui.cards.framing import FIXED_MS, ExposureField
from app.gui.fields import ChoiceField, SidesField, SwitchField
from app.gui.live import LiveState, Pulse
from app.gui.outage import OutageTeller, gone_text
from app.gui.window import Window
from app.settings import InputSettings, Settings
from app.state import StateFile
from rt.capture.camera import CameraInfo
from rt.capture.exposure import APERTURE_PRIORITY, MANUAL, Exposure
from rt.options import CropFit, OnLost

STILL = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30,motion=0"))
PATIENCE_MS = 60_000


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    made = Window(STILL, theme.LIGHT)
    made.resize(1280, 820)
    made.pages.open_named("camera")
    made.show()
    yield made
    made.close()


def field(window: Window, name: str, kind: type[Any]) -> Any:
    found = window.framing.fields[name]
    assert isinstance(found, kind)
    return found


def picture_after(window: Window, qtbot: Any) -> np.ndarray:
    """Of the third frame after the wish: two may have been under way."""
    qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
    return [window.control.studio.snapshot() for _ in range(3)][-1]


def test_mirror_turn_and_crop_are_seen_while_live(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    qtbot.waitUntil(lambda: window.control.studio.session is not None, timeout=PATIENCE_MS)
    plain = window.control.studio.snapshot()
    field(window, "mirror", SwitchField).box.click()
    assert np.array_equal(picture_after(window, qtbot), plain[:, ::-1])
    field(window, "mirror", SwitchField).reset.click()
    field(window, "rotate", ChoiceField).wished.emit(180)
    assert np.array_equal(picture_after(window, qtbot), plain[::-1, ::-1])
    field(window, "rotate", ChoiceField).reset.click()
    sides = field(window, "crop", SidesField).sides
    sides[0].setFocus()
    sides[0].setValue(50)
    zoomed = picture_after(window, qtbot)
    assert window.settings.input.crop == (0.5, 0, 0, 0)
    assert zoomed.shape == plain.shape
    assert np.abs(zoomed[::2, ::2].astype(int) - plain[45:135, 160:]).mean() < 6
    qtbot.waitUntil(lambda: "320x180" in window.framing.granted.text(), timeout=PATIENCE_MS)


def test_the_fit_is_offered_where_something_is_cut(window: Window) -> None:
    fit = window.framing.fields["crop_fit"]
    assert not fit.isVisible()
    field(window, "crop", SidesField).sides[3].setValue(10)
    assert fit.isVisible()
    fit.wished.emit(CropFit.PART)
    assert window.settings.input.crop_fit is CropFit.PART
    field(window, "crop", SidesField).reset.click()
    assert not any(window.settings.input.crop)
    assert field(window, "crop", SidesField).sides[3].value() == 0


def test_a_crop_of_all_is_refused_in_words_and_the_field_shows_what_is(window: Window, qtbot: Any) -> None:
    sides = field(window, "crop", SidesField).sides
    sides[0].setValue(90)
    sides[2].setValue(30)
    assert window.settings.input.crop == (0.9, 0, 0, 0)
    assert sides[2].value() == 0
    assert "no more" in window.message.text()


def test_a_held_arrow_is_typed_in_and_counts(window: Window, qtbot: Any) -> None:
    top = field(window, "crop", SidesField).sides[1]
    top.setFocus()
    top.selectAll()
    qtbot.keyClicks(top, "15")
    assert window.settings.input.crop[1] == 0  # it is being typed
    qtbot.keyClick(top, Qt.Key.Key_Return)
    assert window.settings.input.crop[1] == 0.15
    qtbot.keyClick(top, Qt.Key.Key_Up)
    assert window.settings.input.crop[1] == 0.16


def test_exposure_is_offered_as_the_camera_has_it(window: Window) -> None:
    exposure = window.framing.exposure
    assert isinstance(exposure, ExposureField)
    exposure.offer(Exposure((), 0, 0))
    model = exposure.mode.box.model()
    assert [bool(model.index(at, 0).flags() & Qt.ItemFlag.ItemIsEnabled) for at in range(3)] == [True, False, False]
    exposure.offer(Exposure((MANUAL, APERTURE_PRIORITY), 0.3, 204.7))
    model = exposure.mode.box.model()
    assert all(model.index(at, 0).flags() & Qt.ItemFlag.ItemIsEnabled for at in range(3))
    exposure.mode.wished.emit(float(FIXED_MS))
    assert window.settings.input.exposure_ms == FIXED_MS
    exposure.time.wished.emit(8)
    assert window.settings.input.exposure_ms == 8
    assert exposure.mode.box.currentData() == FIXED_MS
    exposure.mode.reset.click()
    assert window.settings.input.exposure_ms is None


def test_a_camera_that_is_none_has_no_exposure(window: Window, qtbot: Any) -> None:
    qtbot.waitUntil(lambda: window.framing.exposure.isHidden(), timeout=PATIENCE_MS)


def test_what_was_asked_is_said() -> None:
    assert asked_text({"width": 640, "height": 480, "fps": 30.0, "fourcc": "MJPG"}) == "640×480, 30 fps, MJPG"
    assert asked_text({"fps": 29.97}) == "29.97 fps"
    assert asked_text({}) == ""


# --- unplugged and plugged in again while live ---

LOOSE = "synthetic:size=320x180,fps=30,motion=0,unplug=0.5"


def test_a_camera_that_was_unplugged_is_told_and_goes_on(window: Window, qtbot: Any) -> None:
    window.apply(lambda settings: settings.model_copy(update={"input": InputSettings(spec=f"{LOOSE},replug=2.5")}))
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    qtbot.waitUntil(lambda: "gives no more pictures" in window.message.text(), timeout=PATIENCE_MS)
    assert "Nobody is seen meanwhile" in window.message.text()
    assert "next try in" in window.camera.warning.text()
    assert not any(person.in_sight for person in window.control.studio.session.people())
    window.message.dismiss.click()  # what was closed stays closed until something else happens
    pulses: list[Pulse] = []
    window.control.pulsed.connect(pulses.append)
    qtbot.waitUntil(lambda: len(pulses) > 1, timeout=PATIENCE_MS)
    assert "lost" not in pulses[-1].source or window.message.text() == ""
    qtbot.waitUntil(lambda: "The camera is back" in window.message.text(), timeout=PATIENCE_MS)
    assert window.camera.warning.isHidden()
    assert window.state is LiveState.LIVE
    assert "lost" not in window.control.studio.session.source()
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        pass


def test_another_camera_may_be_chosen_while_it_is_away(window: Window, qtbot: Any) -> None:
    window.apply(lambda settings: settings.model_copy(update={"input": InputSettings(spec=LOOSE)}))
    window.pages.open_named("face")
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    qtbot.waitUntil(lambda: "gives no more pictures" in window.message.text(), timeout=PATIENCE_MS)
    window.message.action.click()
    assert window.pages.current == "camera"
    assert window.message.text() == ""
    window.camera.take(STILL.input.spec)
    qtbot.waitUntil(lambda: not window.control.busy and window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    session = window.control.studio.session
    assert session is not None
    assert "outages" not in session.source()
    assert window.message.text() == ""


def test_black_pictures_are_said_until_they_are_over(window: Window, qtbot: Any) -> None:
    """The camera that gives them is in tests/test_camera_unplugged.py."""
    pulses: list[Pulse] = []
    window.control.pulsed.connect(pulses.append)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    qtbot.waitUntil(lambda: bool(pulses), timeout=PATIENCE_MS)
    window.message.say("")
    warning = "camera 0 gives black pictures; open its shutter, or close the program that holds it"
    dark = replace(pulses[-1], source={**pulses[-1].source, "warning": warning})
    teller = OutageTeller(window.message, lambda: None, lambda: None)
    teller.show_pulse(dark, OnLost.HOLD)
    assert window.message.text() == warning
    window.message.dismiss.click()
    teller.show_pulse(dark, OnLost.HOLD)
    assert window.message.text() == ""  # closed is closed
    teller.show_pulse(pulses[-1], OnLost.HOLD)
    teller.show_pulse(dark, OnLost.HOLD)
    assert window.message.text() == warning
    teller.show_pulse(pulses[-1], OnLost.HOLD)
    assert window.message.text() == ""


def test_who_freezes_is_told_what_is_seen() -> None:
    assert "The last good picture" in gone_text(OnLost.FREEZE)


# --- every camera as it was set last ---


def test_a_camera_is_set_as_it_was_when_it_was_used_last(qtbot: Any, qapp: Any, tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state.json")
    window = Window(STILL, theme.LIGHT, memory=(file, file.load()))
    other = "synthetic:size=320x180,fps=25,motion=0"
    window.apply(changed("input", mirror=True, fps=24))
    window.memory.write()
    window.camera.take(other)
    window.apply(changed("input", mirror=False))
    window.memory.write()
    window.camera.take(STILL.input.spec)
    assert (window.settings.input.spec, window.settings.input.mirror, window.settings.input.fps) == (STILL.input.spec, True, 24)
    window.camera.take(other)
    assert (window.settings.input.spec, window.settings.input.mirror, window.settings.input.fps) == (other, False, None)
    window.close()


def test_a_camera_is_named_by_what_lasts(window: Window) -> None:
    link = "/dev/v4l/by-id/usb-Maker_Desk"
    window.camera._cameras = ()
    window.camera._offer([CameraInfo(4, "Desk camera", "/dev/video4", (), link)])
    window.camera.camera.setCurrentIndex(window.camera.camera.findText("Desk camera"))
    window.camera.camera.activated.emit(window.camera.camera.currentIndex())
    assert window.settings.input.spec == link
    for spec in ("/dev/video4", "4", "camera:desk camera", link):
        window.apply(changed("input", spec=spec))
        assert window.camera.camera.currentText() == "Desk camera"
    window.camera._offer([])
    assert window.camera.camera.currentText() == "usb-Maker_Desk (not plugged in)"


# --- a file or an address as the camera ---


def enter(window: Window, text: str) -> None:
    at = window.camera.camera.findText("File or address")
    window.camera.camera.setCurrentIndex(at)
    window.camera.camera.activated.emit(at)
    window.camera.place.setText(text)
    window.camera.place.editingFinished.emit()


@pytest.mark.parametrize("form", ["{path}", " {path} ", '"{path}"', "'{path}'", "{uri}"])
def test_a_file_is_typed_or_pasted_as_the_camera(form: str, window: Window, qtbot: Any, tmp_path: Path) -> None:
    film = write_clip(tmp_path / "my film.mkv", numbered(50, 320, 180), [40 * k for k in range(50)])
    enter(window, form.format(path=film, uri=film.as_uri()))
    window.camera.loop.click()
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    qtbot.waitUntil(lambda: "320x180" in window.camera.granted.text(), timeout=PATIENCE_MS)


def test_the_home_folder_is_understood() -> None:
    assert typed("~/a.mp4") == str(Path.home() / "a.mp4")
    assert typed(" 'x y.mp4' ") == "x y.mp4"
    assert typed('"') == '"'
    assert typed("rtsp://camera/live") == "rtsp://camera/live"


def test_a_hidden_part_is_not_taken_for_what_it_hides(window: Window) -> None:
    enter(window, "rtsp://me:secret@camera/live")
    assert window.settings.input.spec == "rtsp://me:secret@camera/live"
    assert window.camera.place.text() == "rtsp://camera/***"
    enter(window, "rtsp://camera2/***")
    assert window.settings.input.spec == "rtsp://me:secret@camera/live"
    assert "type the whole address" in window.message.text()


def test_a_file_that_is_not_there_is_said_and_nothing_is_lost(window: Window, qtbot: Any, tmp_path: Path) -> None:
    enter(window, str(tmp_path / "none.mp4"))
    window.live_button.click()
    qtbot.waitUntil(lambda: "none.mp4 does not exist" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert window.camera.place.text() == str(tmp_path / "none.mp4")

"""The outputs' page: the virtual camera's driver and its mend on every platform, bitrate, lights in words, a file from its start again."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtGui import QGuiApplication

from app import doctor
from app.doctor import Finding, State
from app.errors import UsageError
from app.gui import theme
from app.gui.cards.card import Bench
from app.gui.cards.outputs import BITRATES, OutputsCard, light_text
from app.gui.live import Light
from app.gui.window import Window
from app.places import check_places
from app.settings import InputSettings, OutputSettings, Settings
from rt.sinks.runner import SinkState
from rt.sinks.virtual_camera import DRIVERS
from rt.sinks.virtual_devices import VirtualDevice, virtual_devices

PATIENCE_MS = 60_000


@pytest.fixture
def card(qtbot: Any, qapp: Any) -> Iterator[OutputsCard]:
    theme.apply(qapp, theme.LIGHT)
    bench = Bench(lambda: theme.LIGHT)
    made = OutputsCard(bench)
    qtbot.addWidget(made)
    qtbot.waitUntil(lambda: bool(made.driver.text()), timeout=PATIENCE_MS)  # this machine's
    yield made
    bench.close()


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    made = Window(Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30")), theme.LIGHT)
    made.show()
    yield made
    made.close()


def test_a_driver_that_is_there_is_named_and_nothing_more(card: OutputsCard) -> None:
    card.show_driver(Finding("virtual camera", State.OK, "/dev/video10"))
    assert card.driver.text() == "Driver: /dev/video10"
    assert card.mending.isHidden()


def test_a_driver_that_is_missing_comes_with_its_mend_and_the_command_to_copy(card: OutputsCard) -> None:
    card.show_driver(Finding("virtual camera", State.MISSING, "v4l2loopback is not loaded", DRIVERS["Linux"]))
    assert card.mend.text() == DRIVERS["Linux"]
    assert not card.again.isHidden()
    card.copy.click()
    assert QGuiApplication.clipboard().text() == (
        "sudo apt install v4l2loopback-dkms && sudo modprobe v4l2loopback exclusive_caps=1 card_label=ffrt"
    )


def test_where_nothing_is_to_be_typed_nothing_is_copied(card: OutputsCard) -> None:
    card.show_driver(Finding("virtual camera", State.OK, "pyvirtualcam 0.15", DRIVERS["Windows"]))
    assert card.mend.text() == DRIVERS["Windows"]
    assert card.copy.isHidden()
    assert card.again.isHidden()


@pytest.mark.parametrize("system", ["Windows", "Darwin"])
def test_every_platform_has_its_mend(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyvirtualcam")
    monkeypatch.setattr(platform, "system", lambda: system)
    assert doctor.virtual_camera().mend == DRIVERS[system]


def test_linux_is_asked_for_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyvirtualcam")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(doctor, "VIRTUAL_DEVICES", tmp_path / "devices")
    monkeypatch.setattr(doctor, "EXCLUSIVE_CAPS", tmp_path / "caps")
    assert doctor.virtual_camera().state is State.MISSING
    (tmp_path / "devices" / "video10").mkdir(parents=True)
    assert (doctor.virtual_camera().state, doctor.virtual_camera().what) == (State.OK, "/dev/video10")
    (tmp_path / "caps").write_text("N,N\n")
    assert doctor.virtual_camera().state is State.WARNING
    (tmp_path / "caps").write_text("Y,Y\n")
    assert doctor.virtual_camera().state is State.OK


# --- several devices ---

TWO = (VirtualDevice("/dev/video10", "ffrt (/dev/video10)"), VirtualDevice("/dev/video11", "OBS (/dev/video11)"))


def choose(card: OutputsCard, text: str) -> None:
    card.device.setCurrentIndex(card.device.findText(text))
    card.device.activated.emit(card.device.currentIndex())


def test_of_several_devices_one_is_chosen(window: Window) -> None:
    card = window.outputs
    card.show_driver(Finding("virtual camera", State.OK, "/dev/video10"), TWO[:1])
    assert card.device.isHidden()  # nothing to choose
    card.show_driver(Finding("virtual camera", State.OK, "/dev/video10, /dev/video11"), TWO)
    assert not card.device.isHidden()
    assert card.device.currentText() == "The first one free"
    choose(card, "OBS (/dev/video11)")
    assert window.settings.output.virtual_camera is None  # it is what the switch means from now on
    card.virtual_camera.switch.click()
    assert window.settings.output.virtual_camera == "/dev/video11"
    choose(card, "ffrt (/dev/video10)")  # switched over at once
    assert window.settings.output.virtual_camera == "/dev/video10"
    card.virtual_camera.switch.click()
    assert window.settings.output.virtual_camera is None
    card.virtual_camera.switch.click()
    assert window.settings.output.virtual_camera == "/dev/video10"
    card.show_driver(Finding("virtual camera", State.OK, "/dev/video11"), TWO[1:])
    assert card.device.currentText() == "/dev/video10 (not there)"
    choose(card, "The first one free")
    assert window.settings.output.virtual_camera == ""


def test_the_devices_are_those_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    for number, name in ((10, "ffrt\n"), (2, "OBS Virtual Camera\n"), (11, None)):
        (tmp_path / f"video{number}").mkdir()
        if name is not None:
            (tmp_path / f"video{number}" / "name").write_text(name)
    (tmp_path / "v4l-subdev0").mkdir()
    assert [device.place for device in virtual_devices(tmp_path)] == ["/dev/video2", "/dev/video10", "/dev/video11"]
    assert [device.title for device in virtual_devices(tmp_path)][:2] == ["OBS Virtual Camera (/dev/video2)", "ffrt (/dev/video10)"]
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    assert "OBS Virtual Camera" in [device.place for device in virtual_devices(tmp_path)]


@pytest.mark.parametrize("spec", ["10", "camera:10", "/dev/video10", "camera:/dev/video10"])
def test_a_virtual_camera_that_would_film_itself_is_refused(spec: str) -> None:
    settings = Settings(input=InputSettings(spec=spec), output=OutputSettings(virtual_camera="/dev/video10"))
    with pytest.raises(UsageError, match="it would film itself"):
        check_places(settings)
    check_places(settings.model_copy(update={"output": OutputSettings(virtual_camera="/dev/video11")}))


def test_lights_say_how_an_output_fares(qapp: Any) -> None:
    assert light_text(Light(SinkState.ON, "", None)) == "On"
    assert light_text(Light(SinkState.RETRYING, "nobody answers", 7)) == "Reconnecting in 7 s: nobody answers"
    assert light_text(Light(SinkState.FAILED, "the disk is full", None)) == "Stopped: the disk is full"


def test_the_bitrate_is_chosen_and_set_back(window: Window) -> None:
    field = window.streams.bitrate
    field.box.setCurrentIndex(field.box.findData(BITRATES[2]))
    field.box.activated.emit(field.box.currentIndex())
    assert window.settings.output.bitrate_bps == BITRATES[2]
    field.reset.click()
    assert window.settings.output == OutputSettings()


def test_a_file_may_start_again(window: Window, tmp_path: Path) -> None:
    assert window.camera.loop.isHidden()
    window.camera.take(str(tmp_path / "talk.mp4"))
    assert not window.camera.loop.isHidden()
    window.camera.loop.click()
    assert window.settings.input.loop

"""Devices, their memory and the encoder in the window: chosen where there is a GPU, and said why not where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt

from app.gui import theme
from app.gui.cards.devices import ENCODERS, Gpus
from app.gui.fields import ChoiceField
from app.gui.live import LiveState
from app.gui.memory import restored
from app.gui.window import Window
from app.settings import InputSettings, RunSettings, Settings
from app.state import State, StateFile
from engines.device.cuda_probe import find_gpus

STILL = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30,motion=0"))
PATIENCE_MS = 60_000

without_a_gpu = pytest.mark.skipif(find_gpus()[0] > 0, reason="a GPU is here")


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    made = Window(STILL, theme.LIGHT)
    made.resize(1280, 820)
    made.pages.open_named("program")
    made.show()
    qtbot.waitUntil(lambda: bool(made.devices.why.text()) or made.devices.devices.isVisible(), timeout=PATIENCE_MS)
    yield made
    made.close()


def wished(window: Window) -> tuple[str, ...]:
    return window.settings.run.devices


@without_a_gpu
def test_without_a_gpu_it_is_said_why_and_nothing_is_offered(window: Window) -> None:
    assert window.devices.why.isVisible()
    assert window.devices.why.text().startswith("Only the processor: ")
    assert "install" in window.devices.why.text()
    assert not any(field.isVisible() for field in window.devices.fields.values())


def test_devices_are_chosen_by_click_and_one_stays(window: Window, qtbot: Any) -> None:
    window.devices.show_gpus(Gpus(2))
    boxes = window.devices.devices.boxes
    assert list(boxes) == ["host", "cuda:0", "cuda:1"]
    assert [box.isChecked() for box in boxes.values()] == [True, False, False]
    boxes["cuda:1"].click()
    assert wished(window) == ("host", "cuda:1")
    boxes["host"].click()
    assert wished(window) == ("cuda:1",)
    boxes["cuda:0"].click()
    assert window.devices.devices.composes.isEnabled()
    window.devices.devices.composes.click()
    assert wished(window) == ("cuda-kernels:0", "cuda-kernels:1")
    assert boxes["cuda:0"].isChecked()
    window.devices.devices.reset.click()
    assert wished(window) == ("host",)
    assert not window.devices.devices.composes.isEnabled()
    boxes["host"].click()
    assert wished(window) == ("host",), "one works always"
    assert boxes["host"].isChecked()


def test_memory_is_chosen_by_size(window: Window) -> None:
    window.devices.show_gpus(Gpus(1))
    field = window.devices.fields["gpu_memory_mb"]
    assert isinstance(field, ChoiceField)
    assert field.isVisible()
    at = field.box.findData(4_000)
    assert field.box.itemText(at) == "4 GB"
    field.box.activated.emit(at)
    assert window.settings.run.gpu_memory_mb == 4_000
    field.reset.click()
    assert window.settings.run.gpu_memory_mb == 0


def test_a_device_that_is_not_here_can_be_set_back(window: Window) -> None:
    window.devices.show_gpus(Gpus(0, "no NVIDIA GPU with a driver was found (x); install NVIDIA's driver"))
    assert not window.devices.devices.isVisible()
    window.apply(lambda settings: settings.model_copy(update={"run": RunSettings(devices=("cuda:3",))}))
    assert window.devices.devices.isVisible()
    assert window.devices.devices.boxes["cuda:3"].isChecked()
    window.devices.devices.reset.click()
    assert wished(window) == ("host",)
    assert not window.devices.devices.isVisible()


@without_a_gpu
def test_a_gpu_that_is_not_here_ends_no_run_and_says_what_is_missing(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    window.devices.show_gpus(Gpus(1))
    window.devices.devices.boxes["cuda:0"].click()
    qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: "cuda:0" in window.message.text(), timeout=PATIENCE_MS)
    assert window.control.studio.settings.run.devices == ("host",)
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)


def test_another_device_while_live_is_another_run_with_the_same_face(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    before = window.control.studio.session
    window.apply(lambda settings: settings.model_copy(update={"run": RunSettings(devices=("host", "host"))}))
    qtbot.waitUntil(lambda: window.control.studio.session not in (None, before) and not window.control.busy, timeout=PATIENCE_MS)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        pass


@without_a_gpu
def test_the_encoder_is_chosen_and_what_does_not_open_is_grey_and_says_why(window: Window, qtbot: Any) -> None:
    window.pages.open_named("outputs")
    field = window.encoder.fields["encoder"]
    assert isinstance(field, ChoiceField)
    qtbot.waitUntil(lambda: bool(window.encoder.why.text()), timeout=PATIENCE_MS)
    assert window.encoder.why.text() == "Not all can be chosen: the machine refuses its GPU; is NVIDIA's driver installed?"
    enabled = {field.box.itemData(at): field.box.model().item(at).isEnabled() for at in range(field.box.count())}
    assert enabled == {name: not name.endswith("nvenc") for name in ENCODERS}
    nvenc = field.box.findData("h264_nvenc")
    assert "driver" in field.box.itemData(nvenc, Qt.ItemDataRole.ToolTipRole)
    field.box.activated.emit(field.box.findData("libx265"))
    assert window.settings.output.encoder == "libx265"
    window.encoder.show_state(LiveState.LIVE)
    assert not field.isEnabled()


def test_it_is_as_it_was_left(tmp_path: Path) -> None:
    state = State(devices=("host", "host"), gpu_memory_mb=4_000).used("cam", _preset())
    file = StateFile(tmp_path / "state.json")
    file.change(lambda _: state)
    then = restored(Settings(), file.load())
    assert (then.run.devices, then.run.gpu_memory_mb) == (("host", "host"), 4_000)
    assert then.output.encoder == "libx265"


@without_a_gpu
@pytest.mark.parametrize("left", [("cuda:0",), ("cuda:0", "cuda-kernels:1"), ("abacus",), ()])
def test_a_card_that_was_taken_out_is_not_asked_for_again(left: tuple[str, ...]) -> None:
    assert restored(Settings(), State(devices=left).used("cam", _preset())).run.devices == ("host",)


def _preset() -> Any:
    from app.presets import Preset
    from app.settings import OutputSettings

    return Preset.of(Settings(output=OutputSettings(encoder="libx265")), source=True, people=True, input=True, output=True)

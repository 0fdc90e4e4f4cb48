"""Presets in the window: switched while live without a new line, and two of them on one picture."""

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

from conftest import HOPPER

from app.addresses import AddressBook
from app.gui import theme
from app.gui.live import LiveState
from app.gui.memory import restored
from app.gui.window import Window
from app.presets import Preset, Presets
from app.settings import InputSettings, LookSettings, OutputSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from app.state import StateFile
from rt.options import Wear

PATIENCE_MS = 60_000


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    """Live, with two presets: in one the person filmed is seen, in the other the face that is worn."""
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    Presets().save("own face", Preset(look=LookSettings(opacity=0.0)))
    Presets().save("worn & badged", Preset(look=LookSettings(badge="AI face")))
    theme.apply(qapp, theme.LIGHT)
    settings = Settings(source=SourceSettings(photos=(HOPPER,)), input=InputSettings(spec="synthetic:size=320x180,fps=30,motion=0"))
    made = Window(settings, theme.LIGHT)
    made.resize(1280, 820)
    made.pages.open_named("presets")
    made.show()
    qtbot.waitUntil(lambda: len(made.presets.lines) == 2, timeout=PATIENCE_MS)
    with qtbot.waitSignal(made.preview.shown, timeout=PATIENCE_MS):
        made.live_button.click()
    qtbot.waitUntil(lambda: made.state is LiveState.LIVE, timeout=PATIENCE_MS)
    yield made
    made.close()


def differs(left: np.ndarray, right: np.ndarray) -> int:
    return int((np.abs(left[..., :3].astype(int) - right[..., :3]).max(-1) > 24).sum())


def test_a_preset_is_switched_on_the_same_line_and_takes_the_third_frame_at_the_latest(window: Window, qtbot: Any) -> None:
    studio = window.control.studio
    session, filmed = studio.session, studio.snapshot(filmed=True)
    for name, is_own in (("own face", True), ("worn & badged", False), ("own face", True)):
        wanted = Presets().load(name).look
        window.presets.lines[name].click()
        qtbot.waitUntil(lambda wanted=wanted: studio.settings.look == wanted, timeout=PATIENCE_MS)
        third = [studio.snapshot() for _ in range(3)][-1]
        assert (differs(third, filmed) == 0) is is_own
    assert studio.session is session


def compare(window: Window, qtbot: Any, left: str | None, right: str | None) -> None:
    for box, name in zip(window.presets.sides, (left, right), strict=True):
        box.setCurrentIndex(box.findData(name))
    window.presets.compare.click()
    qtbot.waitUntil(lambda: window.preview.holds, timeout=PATIENCE_MS)


def test_two_presets_on_one_picture_left_and_right(window: Window, qtbot: Any) -> None:
    filmed, frames = window.control.studio.snapshot(filmed=True), window.control.studio.session.metrics().frames_out  # type: ignore[union-attr]
    compare(window, qtbot, "own face", "worn & badged")
    picture = window.preview.scene.picture
    assert picture is not None
    assert picture.before is not None
    assert differs(picture.before, filmed) == 0
    assert differs(picture.pixels, filmed) > 500
    assert window.preview.split == 0.5
    assert window.preview.scene.names == ("own face", "worn & badged")
    assert window.control.studio.session.metrics().frames_out > frames + 5, "the line went on"  # type: ignore[union-attr]
    folder = os.environ.get("FFRT_SCREENSHOTS")
    if folder:
        window.grab().save(str(Path(folder) / "compare.png"))


def test_what_was_compared_is_worn_by_a_button_and_the_live_picture_comes_back(window: Window, qtbot: Any) -> None:
    compare(window, qtbot, None, "worn & badged")
    assert window.comparing.buttons[1].isVisible()
    window.comparing.buttons[1].click()
    assert window.settings.look.badge == "AI face"
    assert not window.preview.holds
    assert not window.comparing.bar.isVisible()
    assert window.preview.split is None
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        pass
    window.undo()
    assert window.settings.look.badge == ""


def test_stopping_ends_a_comparison(window: Window, qtbot: Any) -> None:
    compare(window, qtbot, "own face", "worn & badged")
    window.live_button.click()
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    assert not window.preview.holds
    assert not window.comparing.bar.isVisible()
    window.presets.compare.click()
    qtbot.waitUntil(lambda: "not live" in window.message.text(), timeout=PATIENCE_MS)
    assert not window.comparing.bar.isVisible()


def test_who_wears_what_is_kept_and_worn_again(window: Window, qtbot: Any) -> None:
    hidden = PeopleSettings(named=(PersonSettings(number=1, wear=Wear.HIDE),))
    window.apply(lambda settings: settings.model_copy(update={"people": hidden}))
    window.presets.with_people.click()
    window.presets.name.setText("hidden")
    window.presets.save.click()
    qtbot.waitUntil(lambda: "hidden" in window.presets.lines, timeout=PATIENCE_MS)
    window.apply(lambda settings: settings.model_copy(update={"people": PeopleSettings()}))
    window.presets.lines["worn & badged"].click()
    qtbot.waitUntil(lambda: window.settings.look.badge == "AI face", timeout=PATIENCE_MS)
    assert window.settings.people == PeopleSettings()
    window.presets.lines["hidden"].click()
    qtbot.waitUntil(lambda: window.settings.people == hidden, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
    assert window.control.studio.settings.people == hidden


def test_what_was_said_of_one_person_is_not_said_of_whoever_comes_first_next_time(tmp_path: Path, qtbot: Any, qapp: Any) -> None:
    each = (SourceSettings(photos=(HOPPER,)),)
    for others, then in ((Wear.LEAVE, Wear.SWAP), (Wear.HIDE, Wear.HIDE), (Wear.SWAP, Wear.SWAP)):
        file = StateFile(tmp_path / f"{others}.json")
        named = (PersonSettings(number=1, wear=Wear.LEAVE), PersonSettings(number=2, source=each[0]))
        window = Window(Settings(people=PeopleSettings(others=others, each=each, named=named)), theme.LIGHT, memory=(file, file.load()))
        window.close()
        assert restored(Settings(), file.load()).people == PeopleSettings(others=then, each=each)


def test_a_stream_without_a_name_is_said_not_to_be_kept(window: Window, qtbot: Any, tmp_path: Path) -> None:
    book = AddressBook(tmp_path / "addresses.json")
    book.put("local", "udp://127.0.0.1:9")
    window.presets._book = book
    streams = ("udp://127.0.0.1:9", "rtmp://127.0.0.1:9/live/SECRET")
    window.presets.show_settings(Settings(output=OutputSettings(streams=streams)))
    window.presets.with_outputs.click()
    window.presets.save_as("out")
    qtbot.waitUntil(lambda: "Saved without rtmp://127.0.0.1:9/live/***" in window.message.text(), timeout=PATIENCE_MS)
    kept = Presets().load("out").output
    assert kept is not None
    assert kept.addresses == ("local",)
    assert "SECRET" not in Presets().path("out").read_text()

"""The look's page: every setting has a control, a reset and an undo; what needs a model says so; pixels follow while live."""

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
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox
from standins.swappers import dfm

from app.gui import theme
from app.gui.cards.card import changed
from app.gui.cards.look import BadgeCard, EdgeCard, LookCard
from app.gui.fields import SliderField, TextField
from app.gui.live import LiveState
from app.gui.window import Window
from app.models import Models
from app.offers import Part
from app.settings import InputSettings, LookSettings, Settings, SourceSettings
from engines.face_regions import Region
from rt.options import Blending, Corner, OnLost

PATIENCE_MS = 60_000

OTHERS: dict[str, Any] = {
    "swapper": "inswapper_128",
    "opacity": 0.5,
    "pixel_boost": 2,
    "masks": ("mouth",),
    "regions": (Region.FACE, Region.HAIR),
    "blending": Blending.SEAMLESS,
    "seam_width": 0.5,
    "colour_match": 0.25,
    "colour_transfer": 0.75,
    "sharpness": 0.75,
    "enhancer": "gfpgan_1.4",
    "enhancer_opacity": 0.3,
    "enhancer_weight": 0.9,
    "smoothing": 0.1,
    "max_faces": 3,
    "on_lost": OnLost.FREEZE,
    "hold_frames": 9,
    "badge": "AI face",
    "badge_corner": Corner.TOP_RIGHT,
    "detector": "blazeface-short",
    "detect_every": 30,
    "runtime": "ort",
}

NO_CONTROL = {"landmarks", "identity"}
"""Of the command line alone: they are for those who compare models."""


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    theme.apply(qapp, theme.LIGHT)
    settings = Settings(source=SourceSettings(photos=(HOPPER,)), input=InputSettings(spec="synthetic:size=640x360,fps=30,motion=0"))
    made = Window(settings, theme.LIGHT)
    made.resize(1280, 820)
    made.pages.open_named("look")
    made.show()
    yield made
    made.close()


def cards(window: Window) -> list[LookCard]:
    return [card for card in window.cards if isinstance(card, LookCard)]


@pytest.mark.parametrize("imported", [True, False], ids=["of the shelf", "a file"])
def test_a_swapper_of_one_person_needs_no_photo(imported: bool, window: Window, qtbot: Any, tmp_path: Path) -> None:
    """Nobody is told to choose a face, and the gallery says that its faces are not worn."""
    file = dfm(tmp_path / "person.dfm")
    if imported:
        Models().import_file(file)
    window.apply(changed("source", photos=()))
    assert "Choose a face" in window.preview.scene.message
    window.apply(changed("look", swapper="person" if imported else str(file)))
    qtbot.waitUntil(lambda: window.has_face, timeout=PATIENCE_MS)
    assert window.preview.scene.message == "Go live to see the picture here."
    assert "one person alone" in window.face.own.text()
    window.toggle_live()
    with qtbot.waitSignal(window.control.pulsed, timeout=PATIENCE_MS):
        qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: bool(window.people.chips), timeout=PATIENCE_MS)
    assert window.message.text() == ""
    assert "Swapped" in window.people.chips[1].text()
    window.apply(changed("look", swapper="mesh"))
    assert not window.has_face
    assert "No face is chosen" in window.people.chips[1].text()
    assert window.face.own.isHidden()


def test_a_swapper_that_is_not_here_brings_no_face(window: Window, qtbot: Any) -> None:
    window.apply(changed("source", photos=()))
    window.apply(changed("look", swapper="nobody"))
    qtbot.waitUntil(lambda: not any(worker.is_busy for worker in window.bench._workers.values()), timeout=PATIENCE_MS)
    assert not window.has_face


def test_rows_that_do_nothing_are_not_in_the_way(window: Window) -> None:
    def shown(name: str) -> bool:
        return next(not card.fields[name].isHidden() for card in cards(window) if name in card.fields)

    assert not any(map(shown, ("pixel_boost", "enhancer_opacity", "enhancer_weight", "badge_corner")))
    assert shown("hold_frames")
    window.apply(changed("look", enhancer="gfpgan_1.4", swapper="inswapper_128", badge="AI", on_lost=OnLost.BLUR))
    assert all(map(shown, ("pixel_boost", "enhancer_opacity", "enhancer_weight", "badge_corner")))
    assert not shown("hold_frames")
    window.apply(changed("look", enhancer_weight=0.9, hold_frames=9, enhancer=None))
    assert shown("enhancer_weight"), "it can be set back"
    assert shown("hold_frames")
    assert not shown("enhancer_opacity")


def test_numbers_are_written_as_what_they_are(window: Window) -> None:
    window.apply(changed("look", opacity=0.3, seam_width=0.5, max_faces=3))
    texts = {name: field.number.text() for card in cards(window) for name, field in card.fields.items() if isinstance(field, SliderField)}
    assert (texts["opacity"], texts["seam_width"], texts["max_faces"]) == ("30 %", "× 0.50", "3")


def test_a_list_holds_what_is_offered_and_nothing_else(window: Window, qtbot: Any) -> None:
    """An entry called None stood in lists that were filled before they knew what is chosen."""
    qtbot.waitUntil(lambda: not any(worker.is_busy for worker in window.bench._workers.values()), timeout=PATIENCE_MS)
    entries = [box.itemText(at) for box in window.findChildren(QComboBox) for at in range(box.count()) if box.itemData(at) is None]
    assert entries.count("None") == 1, "no enhancer"


def card(window: Window, kind: type[Any]) -> Any:
    (found,) = (card for card in window.cards if isinstance(card, kind))
    return found


def test_every_setting_has_a_control() -> None:
    assert set(OTHERS) == set(LookSettings.model_fields) - NO_CONTROL


def test_each_is_set_undone_redone_and_reset(window: Window) -> None:
    for name, other in OTHERS.items():
        (field,) = (card.fields[name] for card in cards(window) if name in card.fields)
        before = getattr(window.settings.look, name)
        steps: list[tuple[Any, Any, bool]] = [
            (lambda field=field, other=other: (field.wished.emit(other), field.settled.emit()), other, False),
            (window.undo, before, True),
            (window.redo, other, False),
            (field.reset.click, before, True),
            (window.undo, other, False),
            (window.redo, before, True),
        ]
        for step, expected, is_default in steps:
            step()
            assert getattr(window.settings.look, name) == expected, (name, step)
            assert field.reset.isHidden() is is_default, (name, step)


def test_regions_wait_for_a_mask_that_knows_them(window: Window) -> None:
    edges = card(window, EdgeCard)
    edges.learn((Part("hands"), Part("parser", family="bisenet"), Part("seg", family="xseg")))
    assert not edges.regions.boxes[Region.HAIR].isEnabled()
    assert "BiSeNet" in edges.needs.text()
    for masks, possible in ((("seg",), False), (("hands", "parser"), True), (("/tmp/x.onnx",), True), ((), False)):
        edges.fields["masks"].wished.emit(masks)
        assert edges.regions.boxes[Region.HAIR].isEnabled() is possible
        assert bool(edges.needs.text()) is not possible


def test_a_badge_is_typed_in_and_seen_while_live(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    badge = card(window, BadgeCard)
    line = badge.fields["badge"]
    assert isinstance(line, TextField)
    assert badge.fields["badge_corner"].isHidden()
    qtbot.waitUntil(lambda: window.control.studio.session is not None, timeout=PATIENCE_MS)
    plain = window.control.studio.snapshot().astype(int)
    line.line.setFocus()
    qtbot.keyClicks(line.line, "AI face ")
    qtbot.keyClick(line.line, Qt.Key.Key_Return)
    assert window.settings.look.badge == "AI face"
    assert not badge.fields["badge_corner"].isHidden()
    qtbot.waitUntil(lambda: not window.control.busy, timeout=PATIENCE_MS)
    badged = [window.control.studio.snapshot() for _ in range(3)][-1].astype(int)
    changed = np.abs(badged - plain).max(-1) > 40
    assert changed[320:, :120].mean() > 0.1
    assert not changed[320:, 320:].any()


def test_letters_without_a_font_are_refused_in_words_and_the_line_goes_on(window: Window, qtbot: Any) -> None:
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        window.live_button.click()
    card(window, BadgeCard).fields["badge"].wished.emit("\U000e0100\u0e5b\U00012345")
    qtbot.waitUntil(lambda: "no font" in window.message.text(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: window.settings.look.badge == "", timeout=PATIENCE_MS)
    with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
        pass

"""Another language or other colours while the window is open: all of it follows at once, and nothing that runs is disturbed."""

from __future__ import annotations

import gc
import os
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import shiboken6
from conftest import HOPPER
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QColor
from PySide6.QtWidgets import QComboBox, QWidget

from app.gui import theme
from app.gui.appearance import Appearance
from app.gui.live import LiveState
from app.gui.tray import Tray
from app.gui.window import Window
from app.gui.words import LANGUAGES, read_words
from app.presets import Preset, Presets
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings

PATIENCE_MS = 60_000
SMALL = InputSettings(spec="synthetic:size=640x360,fps=30")


@pytest.fixture
def speaking(qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Opens a window whose application starts in a language."""
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    Presets().save("Evening", Preset(look=LookSettings(opacity=0.5)))
    made: list[tuple[Window, Appearance]] = []

    def open_one(language: str, settings: Settings) -> tuple[Window, Appearance]:
        appearance = Appearance(qapp, language, "light")
        window = Window(settings, appearance.theme)
        window.remembered.connect(lambda kept: appearance.become(kept.language or language, kept.theme or "light"))
        appearance.changed.connect(window.furnish_anew, Qt.ConnectionType.QueuedConnection)
        made.append((window, appearance))
        window.show()
        return made[-1]

    yield open_one
    for window, appearance in made:
        window.close()
        appearance.end()
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def filled(window: Window, qtbot: Any) -> None:
    """What is looked for behind has come."""
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2 and "Evening" in window.presets.lines, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: not any(worker.is_busy for worker in window.bench._workers.values()), timeout=PATIENCE_MS)


def choose(box: QComboBox, value: object) -> None:
    """As a person does."""
    box.setCurrentIndex(next(at for at in range(box.count()) if box.itemData(at) == value))
    box.activated.emit(box.currentIndex())


def said(window: Window) -> set[str]:
    """Every line that stands on a widget, is told to a screen reader, or stands in a list or a menu."""
    found: list[str] = []
    for widget in (window, *window.findChildren(QWidget)):
        for name in ("text", "toolTip", "accessibleName", "accessibleDescription", "placeholderText", "title", "windowTitle", "suffix"):
            ask = getattr(widget, name, None)
            if callable(ask):
                found.append(str(ask()))
        if isinstance(widget, QComboBox):
            for at in range(widget.count()):
                found += [widget.itemText(at), str(widget.itemData(at, Qt.ItemDataRole.ToolTipRole) or "")]
    found += [text for action in window.findChildren(QAction) for text in (action.text(), action.toolTip())]
    found.append(window.preview.scene.message)
    lines = (line for text in found for line in re.split(r"\n| · |  ·  ", text))
    return {line.strip() for line in lines if line.strip()}


def sentences_of(language: str) -> set[str]:
    """All that may be said in ``language``; English ones are the keys of another."""
    return set(read_words("de")) if language == "en" else set(read_words(language).values())


def in_the_words_of(old: str, new: str, lines: set[str]) -> list[str]:
    """Those of ``lines`` that are sentences of ``old`` and not of ``new``."""
    patterns = [re.compile(pattern_of(sentence)) for sentence in sentences_of(old) - sentences_of(new) if says_much(sentence)]
    new_patterns = [re.compile(pattern_of(sentence)) for sentence in sentences_of(new)]

    def is_of(line: str, among: list[re.Pattern[str]]) -> bool:
        return any(pattern.fullmatch(line) for pattern in among)

    return sorted(line for line in lines if is_of(line, patterns) and not is_of(line, new_patterns))


def says_much(sentence: str) -> bool:
    """Beside what is filled in: ``{name}: {state}`` is like sentences of everybody's."""
    own = re.sub(r"\{\w*\}|\W", "", sentence)
    return len(own) > 5 or "{" not in sentence


def pattern_of(sentence: str) -> str:
    return "".join(".+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w*\})", sentence))


@pytest.mark.parametrize(("old", "new"), [("en", "de"), ("de", "zh"), ("zh", "en"), ("de", "en")])
def test_every_word_follows_the_language_at_once(speaking: Any, qtbot: Any, old: str, new: str) -> None:
    window, _ = speaking(old, Settings(input=SMALL, output=OutputSettings(streams=("udp://127.0.0.1:9",))))
    filled(window, qtbot)
    window.toggle_live()  # without a face: that is said, and pulses come
    with qtbot.waitSignal(window.control.pulsed, timeout=PATIENCE_MS):
        qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    window.pages.open_named("program")
    before, session = window.contents, window.control.studio.session
    spoken = said(window)
    assert len(in_the_words_of(old, new, spoken)) > 90, "the test knows a sentence when it sees one"
    choose(window.program.language, new)
    qtbot.waitUntil(lambda: window.contents is not before, timeout=PATIENCE_MS)
    assert window.pages.current == "program"
    assert window.state is LiveState.LIVE
    assert window.control.studio.session is session, "the line goes on"
    filled(window, qtbot)
    for page in range(window.pages.count):
        window.pages.open(page)
        with qtbot.waitSignal(window.control.pulsed, timeout=PATIENCE_MS):
            pass
    left = in_the_words_of(old, new, said(window))
    assert left == [], left
    assert len(said(window)) > 0.9 * len(spoken)


def test_every_language_says_live_in_its_own_way(speaking: Any, qtbot: Any) -> None:
    window, appearance = speaking("en", Settings(input=SMALL))
    seen = set()
    for language in LANGUAGES:
        appearance.become(language, "light")
        wanted = read_words(language).get("Go live", "Go live")
        qtbot.waitUntil(lambda wanted=wanted: window.live_button.text() == wanted, timeout=PATIENCE_MS)
        seen.add(window.live_button.text())
        assert window.message.isHidden(), "nothing has happened that is to be said"
    assert len(seen) == len(LANGUAGES)


def test_colours_follow_at_once_and_what_was_done_can_be_undone(speaking: Any, qtbot: Any) -> None:
    window, _ = speaking("en", Settings(input=SMALL))
    filled(window, qtbot)
    window.face.wear_number(1)
    window.preview.set_option("mirrored", True)
    before = window.contents
    choose(window.program.theme, "dark")
    qtbot.waitUntil(lambda: window.contents is not before, timeout=PATIENCE_MS)
    filled(window, qtbot)
    assert window.grab().toImage().pixelColor(4, 4) == QColor(theme.DARK.page)
    assert window.face.tiles[0].isChecked()
    assert window.view["mirrored"].isChecked()
    window.undo()
    assert not window.settings.source.photos


def test_what_is_under_way_is_not_lost(speaking: Any, qtbot: Any) -> None:
    """A photo is being looked at while the language changes."""
    window, appearance = speaking("en", Settings(input=SMALL))
    filled(window, qtbot)
    window.choose_photo(HOPPER)
    appearance.become("de", "light")
    qtbot.waitUntil(lambda: window.settings.source == SourceSettings(photos=(HOPPER,)), timeout=PATIENCE_MS)
    filled(window, qtbot)
    assert window.face.tiles[0].isChecked()


def test_the_keyboard_stays_where_it_was(speaking: Any, qtbot: Any, qapp: Any) -> None:
    if qapp.platformName() == "offscreen":
        pytest.skip("windows without a screen are not active")
    window, _ = speaking("en", Settings(input=SMALL))
    filled(window, qtbot)
    window.activateWindow()
    window.pages.open_named("program")
    window.program.language.setFocus()
    qtbot.waitUntil(window.program.language.hasFocus, timeout=PATIENCE_MS)
    before = window.contents
    choose(window.program.language, "de")
    qtbot.waitUntil(lambda: window.contents is not before, timeout=PATIENCE_MS)
    qtbot.waitUntil(window.program.language.hasFocus, timeout=PATIENCE_MS)


def test_a_change_ends_the_full_screen_and_nothing_else(speaking: Any, qtbot: Any) -> None:
    """The system may become dark meanwhile."""
    window, appearance = speaking("en", Settings(input=SMALL))
    filled(window, qtbot)
    window.preview.toggle_full_screen()
    before = window.contents
    appearance.become("en", "dark")
    qtbot.waitUntil(lambda: window.contents is not before, timeout=PATIENCE_MS)
    assert not window.preview.isWindow()
    assert window.preview.isVisibleTo(window)


def test_the_trays_menu_follows(qapp: Any) -> None:
    appearance = Appearance(qapp, "en", "light")
    tray = Tray(lambda: appearance.theme, lambda: None, lambda: None, lambda: None)
    appearance.changed.connect(tray.retell)
    try:
        appearance.become("de", "light")
        words = read_words("de")
        assert {action.text() for action in tray.menu.actions()} == {words["Show the window"], words["Go live"], words["Quit"]}
    finally:
        tray.close()
        appearance.end()


def test_nothing_is_left_of_what_was_there_before(speaking: Any, qtbot: Any) -> None:
    window, appearance = speaking("en", Settings(input=SMALL))
    filled(window, qtbot)
    count, gone = None, []
    for language in ("de", "en", "de", "en", "de"):
        gone += [weakref.ref(widget) for widget in (window.contents, window.face, window.people, *window.cards)]
        before = window.contents
        appearance.become(language, "light")
        qtbot.waitUntil(lambda before=before: window.contents is not before, timeout=PATIENCE_MS)
        filled(window, qtbot)
        qtbot.waitUntil(lambda before=before: not shiboken6.isValid(before), timeout=PATIENCE_MS)
        if language == "de":
            widgets = len(window.findChildren(QWidget))
            count = count or widgets
            assert widgets == count
    del before
    gc.collect()
    assert [ref() for ref in gone if ref() is not None] == []


def test_where_nobody_chose_colours_the_systems_are_followed(qapp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no desktop here that becomes dark: what Qt is told by one stands in."""
    said = ["light"]
    monkeypatch.setattr(theme, "choose", lambda name: {"light": theme.LIGHT, "dark": theme.DARK}.get(name) or theme.choose(said[0]))
    appearance = Appearance(qapp, "en")
    seen: list[theme.Theme] = []
    appearance.changed.connect(seen.append)
    try:
        said[0] = "dark"
        qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
        assert seen == [theme.DARK]
        appearance.become("en", "light")
        qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
        assert seen == [theme.DARK, theme.LIGHT], "chosen is chosen"
    finally:
        appearance.end()

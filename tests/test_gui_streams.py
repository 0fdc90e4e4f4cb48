"""The page of outputs and its streams: addresses by name, keys that nobody sees, a light each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
pytest.importorskip("keyring")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import keyring
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget
from test_addresses import KEY, URL, ClearText, MemoryKeyring, memory

from app.addresses import AddressBook
from app.gui import theme
from app.gui.cards.card import Bench
from app.gui.cards.outputs import StreamsCard
from app.gui.live import Light, LiveState
from app.gui.window import Window
from app.settings import InputSettings, OutputSettings, Settings
from rt.sinks.runner import SinkState

PATIENCE_MS = 60_000
SMALL = InputSettings(spec="synthetic:size=320x180,fps=30,motion=0")

__all__ = ["memory"]


class Desk:
    """A card that is given what it asks for, as the window does it."""

    def __init__(self, file: Path, qtbot: Any) -> None:
        self.settings = Settings()
        self.bench = Bench(lambda: theme.LIGHT)
        self.card = StreamsCard(self.bench, AddressBook(file))
        qtbot.addWidget(self.card)
        self.card.changed.connect(self._apply)
        self._qtbot = qtbot

    def _apply(self, change: Any) -> None:
        self.settings = change(self.settings)
        self.card.show_settings(self.settings)

    def add(self, url: str, name: str) -> None:
        self.card.url.setText(url)
        self.card.name.setText(name)
        self.card.add.click()

    def until(self, holds: Any) -> None:
        self._qtbot.waitUntil(holds, timeout=PATIENCE_MS)

    def texts(self) -> str:
        """All that can be read, by eye or by a screen reader."""
        widgets = [self.card, *self.card.findChildren(QWidget)]
        seen = [text for widget in widgets for text in (widget.toolTip(), widget.accessibleName())]
        seen += [label.text() for label in self.card.findChildren(QLabel)]
        return " ".join([*seen, *(field.displayText() for field in self.card.findChildren(QLineEdit))])


@pytest.fixture
def desk(qtbot: Any, qapp: Any, tmp_path: Path, memory: MemoryKeyring) -> Iterator[Desk]:
    theme.apply(qapp, theme.LIGHT)
    made = Desk(tmp_path / "addresses.json", qtbot)
    yield made
    made.bench.close()


def test_an_address_is_kept_by_name_and_its_key_is_seen_nowhere(desk: Desk, qtbot: Any, tmp_path: Path, memory: MemoryKeyring) -> None:
    desk.card.url.setText(URL)
    assert KEY not in desk.texts()  # while it is typed
    desk.card.reveal.click()
    assert KEY in desk.texts()
    desk.add(URL, "twitch")
    desk.until(lambda: desk.settings.output.streams == (URL,))
    desk.until(lambda: [row.title for row in desk.card._rows] == ["twitch"])
    assert desk.card.url.text() == ""
    assert desk.card.url.echoMode() is QLineEdit.EchoMode.Password
    assert KEY not in desk.texts()
    assert KEY not in (tmp_path / "addresses.json").read_text()
    assert list(memory.kept.values()) == [URL]
    desk.card._rows[0].switch.click()
    assert desk.settings.output.streams == ()
    again = Desk(tmp_path / "addresses.json", qtbot)  # the next start
    again.until(lambda: len(again.card._rows) == 1)
    again.card._rows[0].switch.click()
    again.until(lambda: again.settings.output.streams == (URL,))
    assert KEY not in again.texts()
    again.bench.close()


def test_without_a_safe_keyring_that_is_said_and_what_was_typed_stays(desk: Desk) -> None:
    keyring.set_keyring(ClearText())
    desk.add(URL, "twitch")
    desk.until(lambda: "no keyring that keeps a key safely" in desk.card.hint.text())
    assert desk.card.url.text() == URL
    assert desk.settings.output.streams == ()
    desk.card.name.clear()  # without a name it is streamed to and not kept
    desk.card.add.click()
    assert desk.settings.output.streams == (URL,)
    assert KEY not in desk.texts()


def test_a_name_without_an_address_and_an_address_of_nothing_are_answered(desk: Desk) -> None:
    desk.add("", "twitch")
    assert desk.settings.output.streams == ()
    desk.add("ftp://server/x", "twitch")
    desk.until(lambda: "no address to stream to" in desk.card.hint.text())
    assert desk.settings.output.streams == ()


def test_an_address_is_forgotten_with_its_key(desk: Desk, memory: MemoryKeyring) -> None:
    desk.add(URL, "twitch")
    desk.until(lambda: [row.title for row in desk.card._rows] == ["twitch"])
    desk.card._forget(0)
    desk.until(lambda: desk.card._rows == [])
    assert desk.settings.output.streams == ()
    assert memory.kept == {}


def test_each_stream_has_its_light(desk: Desk) -> None:
    desk.add(URL, "twitch")
    desk.until(lambda: [row.title for row in desk.card._rows] == ["twitch"])
    (row,) = desk.card._rows
    for state, error, retry_in_s, said in (
        (SinkState.OPENING, "", None, "Opening…"),
        (SinkState.RETRYING, "nobody answers", 4, "Reconnecting in 4 s: nobody answers"),
        (SinkState.FAILED, "refused", None, "Stopped: refused"),
    ):
        row.show_light(Light(state, error, retry_in_s))
        assert row.words.text() == said
        assert row.light.accessibleName() == f"twitch: {said}"
    row.show_light(Light(SinkState.ON, "", None))
    assert row.words.isHidden()
    assert row.light.accessibleName() == "twitch: On"


def test_a_stream_that_nobody_takes_is_tried_again_and_said_so_and_the_others_go_on(
    qtbot: Any, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    film = tmp_path / "film.mkv"
    window = Window(
        Settings(input=SMALL, output=OutputSettings(streams=(f"rtmp://127.0.0.1:9/live/{KEY}",), record=film)), theme.LIGHT
    )
    window.show()
    window.live_button.click()
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    (row,) = window.streams._rows
    qtbot.waitUntil(lambda: "Reconnecting in" in row.words.text(), timeout=PATIENCE_MS)
    assert "nothing listens there" in row.words.text()
    assert KEY not in row.words.text()
    qtbot.waitUntil(lambda: "On" in window.outputs.record.light.accessibleName(), timeout=PATIENCE_MS)
    assert film.exists()
    window.close()

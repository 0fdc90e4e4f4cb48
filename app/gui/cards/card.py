"""What every card is: it shows a part of the Settings, and says how a person wants them changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QLayout, QSizePolicy, QVBoxLayout, QWidget

from app.gui.live import Change, LiveState, Pulse
from app.gui.theme import Theme
from app.gui.worker import Worker
from app.jobs import Jobs
from app.settings import Settings


class Bench(QObject):
    """What the window lends its cards, and what outlives them. Main thread."""

    fetched = Signal()
    """A model has come. Emitted on any thread."""

    def __init__(self, theme: Callable[[], Theme], jobs: Jobs | None = None) -> None:
        """``jobs``: where work that takes long is listed."""
        super().__init__()
        self.theme = theme
        self.jobs = jobs or Jobs()
        self._workers: dict[str, Worker] = {}

    def worker(self, name: str) -> Worker:
        """The thread for one kind of work: what waits for a keyring keeps no photo waiting. Started when first asked for."""
        if name not in self._workers:
            self._workers[name] = Worker(name)
        return self._workers[name]

    def when_idle(self, then: Callable[[], None]) -> None:
        """Calls ``then`` once nothing is under way that somebody waits for: at once, or later."""
        busy = next((worker for worker in self._workers.values() if worker.is_busy), None)
        if busy is None:
            then()
        else:  # behind all that this one has to do
            busy.run(lambda: None, lambda _: self.when_idle(then), lambda _: None)

    def close(self) -> None:
        """What is under way is finished, and handed to nobody."""
        for worker in self._workers.values():
            worker.close()


class Card(QFrame):
    """Main thread. A card holds no settings: ``show_settings`` is where it learns them, ``changed`` where it says another wish."""

    changed = Signal(object)
    """A ``Change``: from any Settings to those with the wish in them."""
    said = Signal(str)
    """Something that the window is to tell."""

    def __init__(self, heading: str, bench: Bench) -> None:
        super().__init__()
        self.setObjectName("card")
        self.setAccessibleName(heading)
        self.bench = bench
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(18, 16, 18, 16)
        self.column.setSpacing(10)
        label = QLabel(heading)
        label.setObjectName("heading")
        self.column.addWidget(label)

    def show_settings(self, settings: Settings) -> None:
        """They have become these."""

    def show_state(self, state: LiveState) -> None:
        """The line has got to ``state``."""

    def show_pulse(self, pulse: Pulse) -> None:
        """While live, twice a second."""

    def shut(self) -> None:
        """The window is being closed."""


def changed(part: str, **fields: Any) -> Change:
    """The change that gives ``fields`` of one part of the Settings (``look``, ``input``, …) other values. Bounds are checked."""

    def change(settings: Settings) -> Settings:
        before = getattr(settings, part)
        after = type(before).model_validate({**dict(before), **fields})
        return settings.model_copy(update={part: after})

    return change


def note(name: str = "muted") -> QLabel:
    """A line of small words that wraps, and takes no room while it has none."""
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    label.hide()
    return label


def show_note(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setAccessibleName(text)
    label.setVisible(bool(text))


def key_list(*keys: tuple[str, str]) -> QGridLayout:
    """Keys, and what each does."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(6)
    grid.setColumnStretch(1, 1)
    for line, (key, text) in enumerate(keys):
        name, words = QLabel(key), QLabel(text)
        name.setObjectName("value")
        words.setObjectName("muted")
        words.setWordWrap(True)
        grid.addWidget(name, line, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(words, line, 1)
    return grid


def row(*widgets: QWidget | QLayout | int) -> QHBoxLayout:
    """Side by side; a number stretches, and so does a label whose words wrap."""
    line = QHBoxLayout()
    line.setSpacing(8)
    for widget in widgets:
        if isinstance(widget, int):
            line.addStretch(widget)
        elif isinstance(widget, QWidget):
            line.addWidget(widget, int(isinstance(widget, QLabel) and widget.wordWrap()))
        else:
            line.addLayout(widget)
    return line

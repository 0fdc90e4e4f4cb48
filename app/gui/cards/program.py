"""Program: language, colours, how to start; and what to pass on when something is wrong."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton

from app.diagnostics import diagnostics
from app.gui.cards.card import Bench, Card, key_list, note, show_note
from app.gui.fields import Choice, Combo, fill
from app.gui.flow import Flow
from app.gui.words import LANGUAGES, tr
from app.settings import Settings
from app.state import State


class ProgramCard(Card):
    """What is not of the line: it goes into the State, not into the Settings."""

    state_wished = Signal(object)
    """A function State → State."""
    control_wished = Signal(bool)
    """Other programs may control ffrt, or may not any more."""

    def __init__(self, bench: Bench, state: State) -> None:
        super().__init__(tr("Program"), bench)
        self.language, self.theme = Combo(), Combo()
        languages = [Choice(None, tr("As the system")), *(Choice(code, name) for code, name in LANGUAGES.items())]
        themes = [Choice(None, tr("As the system")), Choice("light", tr("Light")), Choice("dark", tr("Dark"))]
        for title, box, choices, value, field in (
            (tr("Language"), self.language, languages, state.language, "language"),
            (tr("Colours"), self.theme, themes, state.theme, "theme"),
        ):
            label = QLabel(title)
            label.setBuddy(box)
            box.setAccessibleName(title)
            fill(box, choices, value)
            box.activated.connect(self._wish(field, box.currentData))
            self.column.addWidget(label)
            self.column.addWidget(box)
        self.minimised, self.live = QCheckBox(tr("Start minimised")), QCheckBox(tr("Go live at the start"))
        for check, on, field in ((self.minimised, state.start_minimised, "start_minimised"), (self.live, state.start_live, "start_live")):
            check.setChecked(on)
            check.clicked.connect(self._wish(field, check.isChecked))
            self.column.addWidget(check)
        self.control, self.address = QCheckBox(tr("Other programs may control ffrt")), note()
        self.control.setToolTip(tr("A Stream Deck or a script on this computer, with a token; `ffrt ctl` shows how."))
        self.control.setChecked(state.control)
        self.control.clicked.connect(self._wish("control", self.control.isChecked))
        self.control.clicked.connect(self.control_wished)
        self.address.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for item in (self.control, self.address):
            self.column.addWidget(item)

    def show_control(self, address: str, problem: str) -> None:
        """It listens there, or not."""
        self.control.setChecked(bool(address))
        show_note(self.address, tr("They reach it at {address}").format(address=address) if address else problem)

    def _wish(self, field: str, value: Callable[[], object]) -> Callable[[], None]:
        def wish() -> None:
            chosen = value()
            self.state_wished.emit(lambda state: state.model_copy(update={field: chosen}))

        return wish


class HelpCard(Card):
    """Keys, version, diagnostics."""

    def __init__(self, bench: Bench, pages: int) -> None:
        """``pages``: how many the keys open."""
        super().__init__(tr("Help"), bench)
        self._settings = Settings()
        keys = key_list(
            ("1 – 9", tr("wear a face")),
            ("Ctrl+L", tr("go live, or stop")),
            ("Ctrl+S", tr("take a snapshot")),
            ("Ctrl+Z", tr("undo")),
            ("Ctrl+Shift+Z", tr("redo")),
            ("Ctrl+P", tr("go to the people in the picture")),
            ("F11", tr("preview on the whole screen")),
            (f"Alt+1 – {pages}", tr("open a page")),
        )
        self.copy = QPushButton(tr("Copy diagnostics"))
        self.copy.setToolTip(tr("Versions, machine and settings, without names of files, addresses and devices."))
        self.copy.clicked.connect(self._copy)
        self.copied = note()
        about = QLabel(f"ffrt {importlib.metadata.version('ffrt')}")
        about.setObjectName("muted")
        self.column.addLayout(keys)
        self.column.addLayout(Flow(self.copy))
        self.column.addWidget(self.copied)
        self.column.addWidget(about)

    def show_settings(self, settings: Settings) -> None:
        self._settings = settings

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(diagnostics(self._settings))
        show_note(self.copied, tr("Copied: it names no person, no file and no address."))

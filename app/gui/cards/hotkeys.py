"""Hotkeys that work while another program has the keyboard: off until a person switches them on."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from app.gui.cards.card import Bench, Card, key_list, note, show_note
from app.gui.words import tr
from app.gui.worker import KNOWN, shown_error
from app.hotkeys import KEYS, Hotkeys, problem, shown_keys
from app.state import State


class HotkeysCard(Card):
    """Main thread."""

    state_wished = Signal(object)
    """A function State → State."""
    pressed = Signal(str)
    """A name of ``app.hotkeys.KEYS``."""

    def __init__(self, bench: Bench, state: State, why_not: Callable[[], str] = lambda: problem(os.environ)) -> None:
        super().__init__(tr("Keys everywhere"), bench)
        self._keys = Hotkeys()
        reason = why_not()
        self.switch = QCheckBox(tr("In other programs too"))
        self.switch.setEnabled(not reason)
        self.switch.clicked.connect(self._switch)
        faces = f"{shown_keys('face 1')} – 9"
        lines = ((shown_keys("live"), tr("go live, or stop")), (shown_keys("snapshot"), tr("take a snapshot")), (faces, tr("wear a face")))
        self.reason = note()
        show_note(self.reason, reason)
        self.column.addWidget(self.switch)
        self.column.addLayout(key_list(*lines))
        self.column.addWidget(self.reason)
        if state.hotkeys and not reason:
            self._listen(True)

    def shut(self) -> None:
        self._keys.stop()

    def _switch(self, on: bool) -> None:
        self._listen(on)
        kept = self.switch.isChecked()
        self.state_wished.emit(lambda state: state.model_copy(update={"hotkeys": kept}))

    def _listen(self, on: bool) -> None:
        """What is pressed comes on a thread of the keys' own; a signal takes it to this one."""
        try:
            self._keys.start({name: partial(self.pressed.emit, name) for name in KEYS}) if on else self._keys.stop()
        except KNOWN as error:
            on = False
            show_note(self.reason, shown_error(error))
        self.switch.setChecked(on)

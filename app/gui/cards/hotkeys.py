"""Hotkeys that work while another program has the keyboard: off until a person switches them on."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from app.gui.cards.card import Bench, Card, key_list, note, show_note
from app.gui.words import later, tr
from app.gui.worker import KNOWN, shown_error
from app.hotkeys import KEYS, NO_PYNPUT, NO_SCREEN, WAYLAND, Hotkeys, problem, shown_keys
from app.state import State

REASONS = {
    WAYLAND: later(
        "Wayland lets no program hear keys that are meant for another. In the settings of your desktop, bind keys to `ffrt ctl start`, "
        "`stop`, `snapshot` and `identity` instead; the switch for other programs above lets them in."
    ),
    NO_SCREEN: later("There is no X server to hear keys from: start ffrt in a desktop session."),
    NO_PYNPUT: later("They need pynput: run `pip install 'ffrt[hotkeys]'`."),
}
"""Why they cannot work, as a person reads it here."""


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
        show_note(self.reason, tr(REASONS.get(reason, reason)))
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

"""Two presets on one picture of the camera, left and right of the preview's split. Made behind, while the line goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.compare import worn_on
from app.gui.cards.presets import Side
from app.gui.preview import Preview
from app.gui.words import tr
from app.gui.worker import Worker, shown_error
from app.settings import Settings
from app.studio import Studio


class Comparing(QObject):
    """Main thread. ``bar`` stands below the preview while two looks are compared: wear one of them, or go back."""

    def __init__(self, preview: Preview, studio: Studio, worker: Callable[[], Worker], say: Callable[[str], None]) -> None:
        super().__init__()
        self._preview, self._studio, self._worker, self._say = preview, studio, worker, say
        self._split: float | None = None
        self._asked = 0
        self.wear: Callable[[Side], None] = lambda side: None
        """What takes over a look that was chosen."""
        self.bar = QWidget()
        self.bar.setVisible(False)
        self._state = QLabel()
        self._left, self._right, self.back = QPushButton(), QPushButton(), QPushButton(tr("Back to live"))
        self.back.clicked.connect(self.end)
        self.buttons = (self._left, self._right)
        self._sides: tuple[Side, ...] = ()
        for which, button in enumerate(self.buttons):
            button.clicked.connect(partial(self._choose, which))
        line = QHBoxLayout(self.bar)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(8)
        for widget in (self._state, self._left, self.back, self._right):
            line.addWidget(widget)
        line.insertStretch(2, 1)
        line.insertStretch(4, 1)

    def begin(self, left: Side, right: Side, settings: Settings) -> None:
        """``settings``: those of now, which both change."""
        self.end()
        self._asked += 1
        asked = self._asked
        looks = [side.change(settings) for side in (left, right)]

        def make() -> list[np.ndarray]:
            filmed = self._studio.snapshot(filmed=True)
            return [worn_on(filmed, look) for look in looks]

        def show(pictures: list[np.ndarray]) -> None:
            if asked == self._asked:  # nobody has gone back, or asked for others, meanwhile
                self._show(left, right, pictures)

        def fail(error: BaseException) -> None:
            self.end()
            self._say(shown_error(error))

        self._state.setText(tr("Making both pictures…"))
        self._show_bar(making=True)
        self._worker().run(make, show, fail)

    def end(self) -> None:
        """The live picture again, with the split as it was."""
        self._asked += 1
        self.bar.setVisible(False)
        if self._preview.holds:
            self._preview.let_go()
            self._preview.set_split(self._split)

    def _show(self, left: Side, right: Side, pictures: list[np.ndarray]) -> None:
        self._split = self._preview.split
        self._preview.hold(pictures[0], pictures[1], (left.name, right.name))
        self._preview.set_split(0.5)
        for button, side in zip(self.buttons, (left, right), strict=True):
            button.setText(tr("Wear {name}").format(name=_short(side.name)).replace("&", "&&"))
            button.setToolTip(side.name)
        self._sides = (left, right)
        self._show_bar(making=False)

    def _choose(self, which: int, _checked: bool = False) -> None:
        self.end()
        self.wear(self._sides[which])

    def _show_bar(self, *, making: bool) -> None:
        self._state.setVisible(making)
        for button in self.buttons:
            button.setVisible(not making)
        self.back.setText(tr("Cancel") if making else tr("Back to live"))
        self.bar.setVisible(True)


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"

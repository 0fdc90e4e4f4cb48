"""One message above the picture, with what can be done about it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton

from app.gui.told import told
from app.gui.words import tr


class Notice(QFrame):
    """Hidden while there is nothing to say. Main thread."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("notice")
        self._label = QLabel()
        self._label.setWordWrap(True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._act: Callable[[], None] | None = None
        self.action = QPushButton()
        self.action.clicked.connect(self._do)
        self.dismiss = QToolButton()
        self.dismiss.setObjectName("quiet")
        self.dismiss.setText("✕")
        self.dismiss.clicked.connect(lambda: self.say(""))
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 8, 8)
        row.addWidget(self._label, 1)
        row.addWidget(self.action)
        row.addWidget(self.dismiss, 0, Qt.AlignmentFlag.AlignTop)
        self.retell()
        self.say("")

    def retell(self) -> None:
        """In the language of now; what was said stays said."""
        self.dismiss.setAccessibleName(tr("Close this message"))
        self.dismiss.setToolTip(tr("Close this message"))
        if self.action.isHidden():
            self.action.setText(tr("Undo"))

    def say(self, text: str, offer: str = "", act: Callable[[], None] | None = None) -> None:
        """``text``: also as parts below the window say it. ``offer``: the words of a button that does ``act`` and takes the message
        away."""
        text = told(text)
        self._label.setText(text)
        self._label.setAccessibleName(text)
        self._act = act
        self.action.setText(offer or tr("Undo"))  # a button is never without words
        self.action.setVisible(bool(offer))
        self.setVisible(bool(text))

    def text(self) -> str:
        return self._label.text()

    def _do(self) -> None:
        act = self._act
        self.say("")
        if act is not None:
            act()

"""An exception that nobody expected: a page with a text to pass on. The line keeps running, and the program never ends silently."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.gui.words import tr

log = logging.getLogger(__name__)


class Trouble(QObject):
    """Hears of every exception that nobody caught: on the window's thread (slots of Qt among them) and on any other."""

    happened = Signal(object)
    """The exception; on the window's thread."""

    def __init__(self) -> None:
        super().__init__()
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._main
        threading.excepthook = self._thread

    def close(self) -> None:
        """The hooks are again what they were."""
        sys.excepthook, threading.excepthook = self._before

    def _main(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            self._before[0](kind, error, trace)
            return
        self._note(error.with_traceback(trace))

    def _thread(self, facts: threading.ExceptHookArgs) -> None:
        if facts.exc_value is not None:
            self._note(facts.exc_value.with_traceback(facts.exc_traceback))

    def _note(self, error: BaseException) -> None:
        log.error("unexpected", exc_info=error)
        self.happened.emit(error)


class TroublePage(QDialog):
    """One for all: what happens while it is open is counted."""

    def __init__(self, parent: QWidget, describe: Callable[[BaseException], str]) -> None:
        """``describe``: the text for whoever mends it, without anything personal."""
        super().__init__(parent)
        self.setObjectName("page")
        self.setWindowTitle(tr("Something went wrong"))
        self.setMinimumSize(620, 420)
        self._describe = describe
        self._count = 0
        title = QLabel(tr("Something went wrong"))
        title.setObjectName("title")
        title.setWordWrap(True)
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(tr("Report"))
        self.copy = QPushButton(tr("Copy the report"))
        self.copy.clicked.connect(self._copy)
        on = QPushButton(tr("Go on"))
        on.setObjectName("primary")
        on.setDefault(True)
        on.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addWidget(self.copy)
        row.addStretch(1)
        row.addWidget(on)
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 24, 28, 24)
        column.setSpacing(14)
        for item in (title, self.words, self.text):
            column.addWidget(item)
        column.addLayout(row)
        self.finished.connect(self._forget)

    def tell(self, error: BaseException, live: bool) -> None:
        """Opens the page, or counts one more on it."""
        self._count += 1
        if self._count == 1:
            self.text.setPlainText(self._describe(error))
        state = tr("The line is live and goes on.") if live else tr("The line is not live.")
        several = "" if self._count == 1 else tr("It happened {count} times.").format(count=self._count)
        ask = tr("The report below names no person, no file and no address. Please pass it on to whoever looks after ffrt.")
        self.words.setText(" ".join(part for part in (state, several, ask) if part))
        self.setWindowModality(Qt.WindowModality.NonModal)
        self.show()
        self.raise_()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.copy.setText(tr("Copied"))

    def _forget(self) -> None:
        self._count = 0
        self.copy.setText(tr("Copy the report"))

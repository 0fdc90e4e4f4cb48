"""An exception that nobody expected: a page with a text to pass on. The line keeps running, and the program never ends silently."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.gui.words import tr

log = logging.getLogger(__name__)


OURS = ("app", "rt", "engines")
"""Packages whose logs are listened to: what others log may be what a stranger sent them."""


class Trouble(QObject):
    """Hears of every exception that nobody expected, on any thread: those that nobody caught (in slots of Qt, in threads), and those that
    were caught so that the rest goes on (a sink, the line, a job, the control interface), which whoever caught them logs."""

    happened = Signal(object)
    """The exception; on the window's thread."""

    def __init__(self) -> None:
        super().__init__()
        self._before = sys.excepthook, threading.excepthook
        self._last = (0, 0)
        self._log = _Listener(self._tell)
        logging.getLogger().addHandler(self._log)
        sys.excepthook = self._main
        threading.excepthook = self._thread

    def close(self) -> None:
        """The hooks are again what they were."""
        logging.getLogger().removeHandler(self._log)
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

    def _tell(self, error: BaseException) -> None:
        """Once, however many log it on its way."""
        which = id(error), id(error.__traceback__)  # the error itself would keep all that its frames hold
        if which != self._last:
            self._last = which
            self.happened.emit(error)


class _Listener(logging.Handler):
    """Of errors with an exception."""

    def __init__(self, tell: Callable[[BaseException], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None and record.name.partition(".")[0] in OURS:
            self._tell(record.exc_info[1])


class TroublePage(QDialog):
    """One for all: what happens while it is open is counted."""

    def __init__(self, parent: QWidget | None, describe: Callable[[BaseException], str]) -> None:
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
        self.on = QPushButton(tr("Go on"))
        self.on.setObjectName("primary")
        self.on.setDefault(True)
        self.on.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addWidget(self.copy)
        row.addStretch(1)
        row.addWidget(self.on)
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
            self.text.setPlainText(self._described(error))
        self.show_state(live)
        self.setWindowModality(Qt.WindowModality.NonModal)
        self.show()
        self.raise_()

    def tell_end(self, error: BaseException) -> None:
        """Opens the page and waits until it is closed: the program ends then."""
        self.text.setPlainText(self._described(error))
        self.words.setText(f"{tr('ffrt could not be started.')} {_ask()}")
        self.on.setText(tr("Close"))
        self.exec()

    def show_state(self, live: bool) -> None:
        """Whether the line goes on, now."""
        state = tr("The line is live and goes on.") if live else tr("The line is not live.")
        several = "" if self._count == 1 else tr("It happened {count} times.").format(count=self._count)
        self.words.setText(" ".join(part for part in (state, several, _ask()) if part))

    def _described(self, error: BaseException) -> str:
        try:
            return self._describe(error)
        except Exception as problem:  # logged it would come here again
            return f"{type(error).__name__}; the report broke too: {type(problem).__name__}"

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.copy.setText(tr("Copied"))

    def _forget(self) -> None:
        self._count = 0
        self.copy.setText(tr("Copy the report"))


def _ask() -> str:
    return tr("The report below names no person, no file and no address. Please pass it on to whoever looks after ffrt.")


@contextmanager
def told(describe: Callable[[BaseException], str]) -> Iterator[None]:
    """Around what the program cannot do without: who started it from a desktop sees no traceback, and is shown the page before it ends."""
    try:
        yield
    except Exception as error:
        TroublePage(None, describe).tell_end(error)
        raise

"""The list of what takes long: a line each, with how far it is, how long it still takes, and a button that ends it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.gui.cards.card import note, row, show_note
from app.gui.words import later, tr
from app.jobs import OVER, Jobs, JobState, JobView

LINES_MAX = 3
"""So many are shown, those that began last; the rest are counted."""

REFRESH_MS = 100
"""From one look at the jobs to the next: a download reports a hundred times a second."""

GOES_MS = 4000
"""What ended well, or was called off, leaves the list after so long."""

STATES = {
    JobState.STOPPING: later("Stopping…"),
    JobState.DONE: later("Done"),
    JobState.CANCELLED: later("Cancelled; what has arrived is kept."),
}

STEPS = 1000
"""Of a bar: bytes do not fit into Qt's numbers."""


class JobLine(QWidget):
    """One job. Main thread."""

    def __init__(self, jobs: Jobs, number: int) -> None:
        super().__init__()
        self._jobs, self._number = jobs, number
        self.title, self.words, self.bar = QLabel(), note(), QProgressBar()
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.bar.setTextVisible(False)
        self.end = QToolButton()
        self.end.setObjectName("quiet")
        self.end.setText("✕")
        self.end.clicked.connect(self._end)
        self._over = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row(self.title, 1, self.end))
        column.addWidget(self.bar)
        column.addWidget(self.words)

    def show_job(self, view: JobView) -> None:
        self._over = view.state in OVER
        self.title.setText(self.title.fontMetrics().elidedText(view.title, Qt.TextElideMode.ElideMiddle, 250))
        self.title.setToolTip(view.title)
        self.end.setVisible(self._over or (self._jobs.can_cancel(self._number) and view.state is JobState.RUNNING))
        name = (tr("Take {name} off the list") if self._over else tr("Cancel {name}")).format(name=view.title)
        self.end.setAccessibleName(name)
        self.end.setToolTip(name)
        self.bar.setVisible(not self._over)
        self.bar.setRange(0, STEPS if view.total else 0)
        self.bar.setValue(round(STEPS * view.done / view.total) if view.total else 0)
        self.bar.setAccessibleName(view.title)
        self.words.setObjectName("warn" if view.state is JobState.FAILED else "muted")
        self.words.style().polish(self.words)
        show_note(self.words, words_of(view))

    def _end(self) -> None:
        self._jobs.forget(self._number) if self._over else self._jobs.cancel(self._number)


class JobsPanel(QFrame):
    """Hidden while there is nothing. Main thread; ``jobs`` is any thread's."""

    _told = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)  # as wide as the page above
        self.jobs = Jobs(self._told.emit)
        self.lines: dict[int, JobLine] = {}
        self._leaving: set[int] = set()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(14, 10, 14, 10)
        self._column.setSpacing(10)
        self._more = note()
        self._column.addWidget(self._more)
        self._soon = QTimer(self, singleShot=True, interval=REFRESH_MS)
        self._soon.timeout.connect(self._refresh)
        self._told.connect(self._refresh_soon, Qt.ConnectionType.QueuedConnection)
        self.retell()

    def retell(self) -> None:
        """In the language of now."""
        self.setAccessibleName(tr("What takes long"))
        self._refresh()

    def close_jobs(self) -> None:
        self._soon.stop()
        self.jobs.close()

    def _refresh_soon(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def _refresh(self) -> None:
        views = self.jobs.views()
        shown = {view.number: view for view in views[-LINES_MAX:]}
        for number in [number for number in self.lines if number not in shown]:
            self.lines.pop(number).deleteLater()
        for number, view in shown.items():
            if number not in self.lines:
                self.lines[number] = JobLine(self.jobs, number)
                self._column.insertWidget(self._column.count() - 1, self.lines[number])
            self.lines[number].show_job(view)
        for view in views:
            if view.state in (JobState.DONE, JobState.CANCELLED) and view.number not in self._leaving:
                self._leaving.add(view.number)
                self._forget_later(view.number)
        rest = len(views) - len(shown)
        show_note(self._more, tr("and {count} more").format(count=rest) if rest else "")
        self.setVisible(bool(views))

    def _forget_later(self, number: int) -> None:
        """By a timer of the panel's own: what a `singleShot` was given is kept for ever where its widget goes first."""
        timer = QTimer(self, singleShot=True)
        timer.timeout.connect(partial(self.jobs.forget, number))
        timer.timeout.connect(timer.deleteLater)
        timer.start(GOES_MS)


def words_of(view: JobView) -> str:
    """How a job is, in a line."""
    if view.state is JobState.FAILED:
        return view.error
    if view.state in STATES:
        return tr(STATES[view.state])
    return " · ".join(filter(None, (amount_of(view), left_text(view.left_s), view.what)))


def amount_of(view: JobView) -> str:
    """``3.1 of 554 MB``, ``2 of 4``, or an empty text."""
    write: Callable[[int], str] = (lambda count: f"{count / 1e6:.1f}") if view.unit == "B" else str
    unit = " MB" if view.unit == "B" else ""
    if view.total:
        return tr("{done} of {total}").format(done=write(view.done), total=write(view.total)) + unit
    return write(view.done) + unit if view.done else ""


def left_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return tr("{seconds} s left").format(seconds=max(1, round(seconds)))
    return tr("{minutes} min left").format(minutes=round(seconds / 60))

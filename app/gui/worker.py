"""Work that may take long, on threads of its own; results come back as Qt signals on the window's thread."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from app.errors import AppError
from engines.errors import EngineError
from rt.errors import RtError

log = logging.getLogger(__name__)

KNOWN = (AppError, RtError, EngineError)
"""Errors whose text is fit to be shown."""

Done = Callable[[Any], None]


def shown_error(error: BaseException) -> str:
    """One sentence for a person."""
    return str(error) if isinstance(error, KNOWN) else f"{type(error).__name__}: {error}"


class Worker(QObject):
    """One thread that does one thing after the other. ``run`` and ``close`` belong to the window's thread."""

    _finished = Signal(object, object)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Done, Done] | None] = queue.SimpleQueue()
        self._finished.connect(self._hand_back, Qt.ConnectionType.QueuedConnection)
        self._open = True
        self._under_way = 0  # the window's thread
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Any], done: Done, failed: Done) -> None:
        """``work`` on the thread; then ``done(result)`` or ``failed(error)`` on the window's."""
        self._under_way += 1
        self._work.put((work, done, failed))

    @property
    def is_busy(self) -> bool:
        """Whether anything is under way, or not yet handed back."""
        return self._under_way > 0

    def close(self, timeout_s: float = 10.0) -> None:
        """What is under way is finished; nothing is handed back any more."""
        self._open = False
        self._work.put(None)
        self._thread.join(timeout_s)

    def _loop(self) -> None:
        while self._do(self._work.get()):
            pass  # and nothing of what is done stays in a name of this frame while the thread waits: it would keep a widget

    def _do(self, item: tuple[Callable[[], Any], Done, Done] | None) -> bool:
        if item is None:
            return False
        work, done, failed = item
        try:
            result, then = work(), done
        except Exception as error:
            if not isinstance(error, KNOWN):
                log.exception("work for the window broke unexpectedly")
            result, then = error, failed
        self._finished.emit(then, result)
        return True

    def _hand_back(self, then: Done, result: Any) -> None:
        self._under_way -= 1
        if self._open:
            then(result)

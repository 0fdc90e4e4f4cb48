"""Opens what may take long to answer, and lets go of it when nobody wants it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

LOOK_EVERY_S = 0.05
"""How soon an end is noticed; opening itself is noticed at once."""


class Opening:
    """One call of ``opened`` on a thread of its own: FFmpeg, through PyAV, cannot be interrupted while it opens an address."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        """``opened``: returns what has a ``close``."""
        self._opened = opened
        self._lock = threading.Lock()
        self._value: Any = None  # guarded by _lock, as are the next two
        self._error: BaseException | None = None
        self._is_unwanted = False
        self._thread = threading.Thread(target=self._run, name="opening", daemon=True)

    def wait(self, stop: threading.Event) -> Any:
        """What was opened, or None soon after ``stop`` was set: then the thread closes what it opens, as soon as that answers.

        Raises what opening raised.
        """
        self._thread.start()
        while self._thread.is_alive():
            self._thread.join(LOOK_EVERY_S)
            if stop.is_set():
                with self._lock:
                    self._is_unwanted = True
                    value, self._value = self._value, None
                if value is not None:
                    value.close()
                return None
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            value = self._opened()
        except BaseException as error:  # the waiting thread's, which raises it
            self._error = error
            return
        with self._lock:
            if not self._is_unwanted:
                self._value = value
                return
        value.close()

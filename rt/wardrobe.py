"""Which look each lane wears, and when one that was replaced is in use no more: whoever made its parts may close them then."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rt.economy import Economy
from rt.options import Look


class Wardrobe:
    """Any thread."""

    def __init__(self, economy: Economy) -> None:
        self.economy = economy
        """Says what of the chosen look is worn."""
        self._lock = threading.Lock()
        self._number = 0  # guarded by _lock, as is all below: of the choice that is newest
        self._used: dict[int, int] = {}  # lane → number of the choice it works with at the moment
        self._replaced: list[tuple[int, threading.Event]] = []  # choices up to a number, and what is set when none of them is in use

    def choose(self, looks: Sequence[Look]) -> threading.Event:
        """Is worn from each lane's next frame on. What is returned is set once no lane works with anything chosen before."""
        released = threading.Event()
        with self._lock:
            self.economy.wear(looks)
            self._replaced.append((self._number, released))
            self._number += 1
            self._release()
        return released

    @contextmanager
    def worn(self, lane: int = 0) -> Iterator[Look]:
        """What ``lane`` is to wear for one frame, and that it does so meanwhile."""
        with self._lock:
            self._used[lane] = self._number
            look = self.economy.look(lane)
        try:
            yield look
        finally:
            with self._lock:
                del self._used[lane]
                self._release()

    def _release(self) -> None:
        oldest = min(self._used.values(), default=self._number)
        for number, released in self._replaced:
            if number < oldest:
                released.set()
        self._replaced = [(number, released) for number, released in self._replaced if number >= oldest]

"""Weights that leave a device for a while: what is given up for lack of memory is to make room, and comes back as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engines.errors import ModelError
from engines.session import RunsInPlace, Session


@runtime_checkable
class Parks(Protocol):
    """What a part offers beside its contract if it can free what it holds of a device. Both on the thread that uses it, with the part's
    device being current and nothing of it under way."""

    def park(self) -> None:
        """Frees weights and intermediate results; nothing may be asked of the part until ``unpark``. May be called twice."""
        ...

    def unpark(self) -> None:
        """Takes them back. Raises ``DeviceMemoryError`` where there is no room, and what opening a model raises; it stays parked then."""
        ...


class ParkedSession:
    """Keeps ``engines.session.Session`` and ``Parks``, and ``RunsInPlace`` for a session that does. As a session, one thread at a time."""

    def __init__(self, opened: Callable[[], Session]) -> None:
        """``opened``: opens the model, now and at each ``unpark``. Raises what that raises."""
        self._opened = opened
        self._session: Session | None = opened()
        self._closed = False
        self.inputs, self.outputs, self.runtime = self._session.inputs, self._session.outputs, self._session.runtime

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._here().run(feeds)

    def works_in(self, memory: str) -> bool:
        session = self._here()
        return isinstance(session, RunsInPlace) and session.works_in(memory)

    def run_into(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        session = self._here()
        assert isinstance(session, RunsInPlace), "ask works_in first"
        session.run_into(feeds, results)

    def warm_up(self) -> None:
        self._here().warm_up()

    @property
    def memory_bytes(self) -> int | None:
        session = self._session
        return 0 if session is None else session.memory_bytes

    def park(self) -> None:
        if self._session is not None and not self._closed:
            self._session.close()
            self._session = None

    def unpark(self) -> None:
        if self._session is None:
            self._session = self._opened()

    def close(self) -> None:
        self._closed = True
        if self._session is not None:
            self._session.close()

    def _here(self) -> Session:
        if self._session is None:
            raise ModelError("the model's weights were put aside to make room; they are to be taken back before it runs")
        return self._session

"""Which swappers bring a face of their own: then nobody has to choose one, and nobody is told to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.gui.worker import Worker
from app.parts import Parts
from app.settings import LookSettings
from engines.errors import EngineError


class OwnFaces(QObject):
    """Main thread; files are looked at by a worker."""

    learned = Signal()
    """``bring_one`` may answer otherwise now."""

    def __init__(self, worker: Callable[[], Worker]) -> None:
        super().__init__()
        self._worker = worker
        self._asked: LookSettings | None = None
        self._known: dict[str, bool] = {LookSettings().swapper: False}

    def bring_one(self, look: LookSettings) -> bool:
        """Whether the swapper of ``look`` is made for one person; False as long as that is not known, which is then found out."""
        name = look.swapper
        if name not in self._known and (self._asked is None or self._asked.swapper != name):
            self._asked = look
            self._worker().run(partial(_asks, look), partial(self._learn, name), lambda _: None)
        return self._known.get(name, False)

    def _learn(self, name: str, answer: bool | None) -> None:
        if answer is not None:
            self._known[name] = answer
            self.learned.emit()


def _asks(look: LookSettings) -> bool | None:
    """None where nobody knows: it is not here, or cannot be used, which is said by whoever wants to wear it."""
    parts = None
    try:
        parts = Parts(look)
        return parts.draws_one_person(look.swapper)
    except EngineError:
        return None
    finally:
        if parts is not None:
            parts.close()

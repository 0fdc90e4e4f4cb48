"""Better runtimes while live: what they lack (an engine, say) is made in the background, and the line switches over when it is proven."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engines.build.child import Progress
from engines.errors import BuildCancelled, EngineError
from engines.family import ModelFile
from engines.kit import OpenModel
from engines.registry import Registry
from engines.session import Runtime, Shapes, runtimes

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A runtime that stands before the one that runs a model now, works on this machine, and can make what it lacks."""

    model: ModelFile
    runtime: str
    shapes: Shapes = field(default_factory=dict, compare=False)
    """What it is to be made for, where the file leaves sizes open."""


class UpgradeState(StrEnum):
    """How far an upgrade is."""

    IDLE = "idle"
    """There is nothing to make."""
    PREPARING = "preparing"
    READY = "ready"
    """The line runs on what was made, of one model or more."""
    FAILED = "failed"
    """The line runs on what it had."""
    CANCELLED = "cancelled"


def wanted(models: Sequence[OpenModel], known: Registry[Runtime] = runtimes) -> tuple[Wanted, ...]:
    """The best for each model, where there is any."""
    found: dict[Path, Wanted] = {}
    for opened in models:
        for name, _ in opened.choice.rejected:
            if known[name].prepare is not None and not known[name].problem():
                found.setdefault(opened.model.path, Wanted(opened.model, name, opened.shapes))
    return tuple(found.values())


class Upgrade:
    """Runs once, on a thread of its own. ``start`` and ``close`` belong to one thread; ``to_dict`` is any thread's."""

    def __init__(self, wanted: Sequence[Wanted], switch: Callable[[], None], known: Registry[Runtime] = runtimes) -> None:
        """``switch``: has the line use what is there now; called on the thread of the upgrade; raises ``EngineError``."""
        self._wanted = tuple(wanted)
        self._switch = switch
        self._known = known
        self._cancelled = threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._state = UpgradeState.PREPARING if wanted else UpgradeState.IDLE  # guarded by _lock, as is _what
        self._what = _names(wanted) if wanted else "no runtime here is better and could be made ready"
        self._states = dict.fromkeys(self._wanted, UpgradeState.PREPARING)  # guarded by _lock
        self._failed: dict[Wanted, str] = {}  # of the upgrade's thread, written under _lock
        self._thread = threading.Thread(target=self._run, name="upgrade", daemon=True)

    def start(self) -> None:
        """Returns at once."""
        if self._wanted:
            self._thread.start()
        else:
            log.warning("no engine was built: %s", self._what)
            self._over.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """True once it has come to its end, well or not."""
        return self._over.wait(timeout_s)

    def close(self) -> None:
        """Calls off what is under way and waits for it: tenths of a second."""
        self._cancelled.set()
        if self._thread.is_alive():
            self._thread.join()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: ``state``, ``what`` (a sentence), ``models`` (each with ``model``, ``runtime``, ``state``, and ``why`` it failed)."""
        with self._lock:
            models = [
                {"model": item.model.name, "runtime": item.runtime, "state": str(self._states[item]), "why": self._failed.get(item)}
                for item in self._wanted
            ]
            return {"state": str(self._state), "what": self._what, "models": models}

    def _run(self) -> None:
        """What cannot be made keeps nobody from using the rest."""
        try:
            for item in self._wanted:
                self._prepare(item)
            made = [item for item in self._wanted if item not in self._failed]
            if made:
                self._switch()
            self._conclude(made)
        except BuildCancelled as error:
            self._end(UpgradeState.CANCELLED, str(error))
        except EngineError as error:
            self._fail(str(error))
        except Exception as error:  # whatever went wrong, the line is not to be touched by it
            log.exception("an upgrade broke unexpectedly")
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            self._over.set()

    def _prepare(self, item: Wanted) -> None:
        """Raises ``BuildCancelled``."""
        prepare = self._known[item.runtime].prepare
        assert prepare is not None
        try:
            prepare(item.model, item.shapes, self._report, self._cancelled.is_set)
        except BuildCancelled:
            raise
        except Exception as error:  # an EngineError, or a fault of the runtime's own: the other models are none the worse for it
            known = isinstance(error, EngineError)
            log.log(logging.DEBUG if known else logging.ERROR, "%s could not be made", item.model.name, exc_info=True)
            self._miss(item, str(error) if known else f"{type(error).__name__}: {error}")
        if self._cancelled.is_set():
            raise BuildCancelled("the build was called off")

    def _miss(self, item: Wanted, why: str) -> None:
        log.warning("%s stays on what it has: %s", item.model.name, why)
        with self._lock:
            self._failed[item], self._states[item] = why, UpgradeState.FAILED

    def _conclude(self, made: Sequence[Wanted]) -> None:
        failed = [f"not {item.model.name} for {item.runtime}: {why}" for item, why in self._failed.items()]
        ready = [f"runs on what was made: {_names(made)}"] if made else []
        with self._lock:
            self._states.update(dict.fromkeys(made, UpgradeState.READY))
        self._say(UpgradeState.READY if made else UpgradeState.FAILED, "; ".join([*ready, *failed]))

    def _fail(self, why: str) -> None:
        log.warning("the line stays on what it has: %s", why)
        self._end(UpgradeState.FAILED, why)

    def _end(self, state: UpgradeState, what: str) -> None:
        """Of all that are not at their end yet."""
        with self._lock:
            self._states.update({item: state for item in self._wanted if item not in self._failed})
        self._say(state, what)

    def _report(self, progress: Progress) -> None:
        share = f" ({progress.done} of {progress.total})" if progress.total else ""
        self._say(UpgradeState.PREPARING, f"{_names(self._wanted)}: {progress.what}{share}")

    def _say(self, state: UpgradeState, what: str) -> None:
        with self._lock:
            self._state, self._what = state, what


def _names(items: Sequence[Wanted]) -> str:
    return ", ".join(f"{item.model.name} for {item.runtime}" for item in items)

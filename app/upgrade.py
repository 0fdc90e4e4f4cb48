"""Better runtimes while live: what they lack (an engine, say) is made in the background, and the line switches over when it is proven."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from engines.build.child import Progress
from engines.errors import BuildCancelled, EngineError
from engines.kit import OpenModel
from engines.registry import Registry
from engines.session import Runtime, runtimes

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A runtime that stands before the one that runs a model now, works on this machine, and can make what it lacks."""

    model: str
    path: Path
    runtime: str


class UpgradeState(StrEnum):
    """How far an upgrade is."""

    IDLE = "idle"
    """There is nothing to make."""
    PREPARING = "preparing"
    READY = "ready"
    """The line runs on what was made."""
    FAILED = "failed"
    """The line runs on what it had."""
    CANCELLED = "cancelled"


def wanted(models: Sequence[OpenModel], known: Registry[Runtime] = runtimes) -> tuple[Wanted, ...]:
    """The best for each model, where there is any."""
    found: dict[Path, Wanted] = {}
    for model in models:
        for name, _ in model.choice.rejected:
            if known[name].prepare is not None and not known[name].problem():
                found.setdefault(model.path, Wanted(model.name, model.path, name))
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
        self._what = self._names if wanted else "no runtime here is better and could be made ready"
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
        """JSON-ready: ``state``, ``what`` (a sentence), ``models``."""
        with self._lock:
            models = [{"model": item.model, "runtime": item.runtime} for item in self._wanted]
            return {"state": str(self._state), "what": self._what, "models": models}

    @property
    def _names(self) -> str:
        return ", ".join(f"{item.model} for {item.runtime}" for item in self._wanted)

    def _run(self) -> None:
        try:
            for item in self._wanted:
                prepare = self._known[item.runtime].prepare
                assert prepare is not None
                prepare(item.path, self._report, self._cancelled.is_set)
            if self._cancelled.is_set():
                raise BuildCancelled("the build was called off")
            self._switch()
            self._say(UpgradeState.READY, f"runs on what was made: {self._names}")
        except BuildCancelled as error:
            self._say(UpgradeState.CANCELLED, str(error))
        except EngineError as error:
            self._fail(str(error))
        except Exception as error:  # whatever went wrong, the line is not to be touched by it
            log.debug("an upgrade broke unexpectedly", exc_info=True)
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            self._over.set()

    def _fail(self, why: str) -> None:
        log.warning("the line stays on what it has: %s", why)
        self._say(UpgradeState.FAILED, why)

    def _report(self, progress: Progress) -> None:
        share = f" ({progress.done} of {progress.total})" if progress.total else ""
        self._say(UpgradeState.PREPARING, f"{self._names}: {progress.what}{share}")

    def _say(self, state: UpgradeState, what: str) -> None:
        with self._lock:
            self._state, self._what = state, what

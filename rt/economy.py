"""What a line gives up of its look for a while: so that pictures stay young, or because a device has no memory left.

The order is written once, in ``STEPS``. What is given up is a change of the ``Look`` in force; the look that was chosen is kept, and so is
everything of it when it comes back.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engines.enhance.contract import Enhancer
from engines.swap.contract import ScalableSwapper
from rt.budget import STEPS, Budget, BudgetOptions
from rt.options import Look

log = logging.getLogger(__name__)

PATIENCE = 4
"""The detector looks for further faces so many times less often: for a newcomer at 30 fps every two seconds instead of two a second."""

MEMORY_STEPS = STEPS[1:]
"""What frees memory of a device; the detector's is the same however often it runs."""

CHANGES_KEPT = 200
"""For the report; a line that swings more often than that says enough with its last."""


def _detect_rarely(look: Look) -> Look:
    """With one face the detector runs only while that is missing: nothing to save."""
    return replace(look, patience=PATIENCE) if look.faces > 1 else look


def _no_enhancer(look: Look) -> Look:
    return replace(look, enhancer=None)


def _smaller_swap(look: Look) -> Look:
    smaller = look.swapper.smaller if isinstance(look.swapper, ScalableSwapper) else None
    return look if smaller is None else replace(look, swapper=smaller)


def _one_face(look: Look) -> Look:
    return replace(look, faces=1)


CHANGE: Mapping[str, Callable[[Look], Look]] = dict(zip(STEPS, (_detect_rarely, _no_enhancer, _smaller_swap, _one_face), strict=True))
"""Step → the look without it; the same look where it has nothing to give up there."""


def possible(look: Look) -> tuple[str, ...]:
    """The steps that change ``look``, in order. A look in which no face is worn has none."""
    if not look.swaps:
        return ()
    return tuple(step for step in STEPS if CHANGE[step](look) != look)


def without(look: Look, steps: Sequence[str]) -> Look:
    """``look`` with all of ``steps`` given up."""
    for step in STEPS:
        if step in steps:
            look = CHANGE[step](look)
    return look


@dataclass(frozen=True, slots=True)
class Change:
    """One step down or back."""

    at_ns: int
    step: str
    given_up: bool
    """False: it is back."""
    why: str
    age_ms: float | None = None
    """The 95th percentile that led to it, where it was the age."""

    def __str__(self) -> str:
        return f"{self.step}: {'given up' if self.given_up else 'back'} ({self.why})"


RETRY_NS, RETRY_MOST_NS = 30_000_000_000, 960_000_000_000
"""Until memory is tried again: at first, and at the most. A try that is in vain costs a frame."""


@dataclass(frozen=True, slots=True)
class _Retry:
    at_ns: int = 0
    pause_ns: int = RETRY_NS

    def later(self, now_ns: int) -> _Retry:
        return replace(self, at_ns=now_ns + self.pause_ns, pause_ns=min(2 * self.pause_ns, RETRY_MOST_NS))


class Economy:
    """The look in force on each lane. Any thread."""

    def __init__(self, looks: Sequence[Look], options: BudgetOptions | None = None, *, lanes: int = 1) -> None:
        """``looks``: one for each of so many ``lanes``, or one that all can use. ``options``: None never asks for the age."""
        self._lanes = range(lanes)
        self._lock = threading.Lock()
        self._chosen = tuple(looks)  # guarded by _lock, as is all below
        self._budget = None if options is None else Budget(options, possible(self._chosen[0]))
        self._spared: Counter[int] = Counter()
        self._retries: dict[int, _Retry] = {}
        self._in_force = tuple(map(self._choice, self._lanes))
        self._changes: deque[Change] = deque(maxlen=CHANGES_KEPT)

    def look(self, lane: int = 0) -> Look:
        """What ``lane``, counted from 0, is to show."""
        with self._lock:
            return self._in_force[lane]

    def wear(self, looks: Sequence[Look]) -> None:
        """Another choice. What was given up for the age stays so; memory is tried again."""
        with self._lock:
            self._chosen = tuple(looks)
            self._spared.clear()
            self._retries.clear()
            if self._budget is not None:
                self._budget.offer(possible(self._chosen[0]))
            self._apply()

    def notice_age(self, age_p95_ms: float, now_ns: int) -> Change | None:
        """The age of the last second or so; returns what changed."""
        with self._lock:
            step = None if self._budget is None else self._budget.update(age_p95_ms, now_ns)
            if step is None:
                return None
            return self._note(Change(now_ns, step.step, step.given_up, f"age p95 {step.age_ms:.0f} ms", step.age_ms))

    def spare_memory(self, why: str, now_ns: int, lane: int = 0) -> Change | None:
        """``lane`` had no memory left: gives up the next step there, until ``retry_memory`` takes it back or another look is chosen. None
        where none is left."""
        with self._lock:
            left = self._memory_steps(lane)[self._spared[lane] :]
            if not left:
                return None
            self._spared[lane] += 1
            self._retries[lane] = self._retries.get(lane, _Retry()).later(now_ns)
            return self._note(Change(now_ns, left[0], True, why))

    def retry_memory(self, now_ns: int, lane: int = 0) -> Change | None:
        """Takes back what ``lane`` gave up last, after 30 s, and after twice as long each time that it was in vain: others may have freed
        memory meanwhile, and nobody tells."""
        with self._lock:
            retry = self._retries.get(lane)
            if not self._spared[lane] or retry is None or now_ns < retry.at_ns:
                return None
            self._spared[lane] -= 1
            self._retries[lane] = replace(retry, at_ns=now_ns + retry.pause_ns)
            return self._note(Change(now_ns, self._memory_steps(lane)[self._spared[lane]], False, "memory is tried again"))

    def sets_aside(self, lane: int, enhancer: Enhancer) -> bool:
        """Whether ``enhancer``, of the look chosen for ``lane``, is not in force there and no other lane's."""
        with self._lock:
            is_own = len(self._chosen) == len(self._lanes) and self._choice(lane).enhancer is enhancer
            return is_own and self._in_force[lane].enhancer is None

    @property
    def given_up(self) -> tuple[str, ...]:
        """What is not shown now though it was chosen, on any lane, in the order of ``STEPS``."""
        with self._lock:
            steps = set(self._late_steps()).union(*(self._memory_steps(lane)[:count] for lane, count in self._spared.items()))
            return tuple(step for step in STEPS if step in steps)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The last of them, the oldest first."""
        with self._lock:
            return tuple(self._changes)

    def _note(self, change: Change) -> Change:
        self._apply()
        self._changes.append(change)
        log.warning("%s", change)
        return change

    def _apply(self) -> None:
        late = self._late_steps()
        self._in_force = tuple(
            without(self._choice(lane), (*late, *self._memory_steps(lane)[: self._spared[lane]])) for lane in self._lanes
        )

    def _choice(self, lane: int) -> Look:
        return self._chosen[lane % len(self._chosen)]

    def _late_steps(self) -> tuple[str, ...]:
        return () if self._budget is None else self._budget.given_up

    def _memory_steps(self, lane: int) -> tuple[str, ...]:
        return tuple(step for step in possible(self._choice(lane)) if step in MEMORY_STEPS)

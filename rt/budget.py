"""The budget that steps down: what a line gives up, in a written order, while its pictures are older than they may be.

Pure logic: whoever measures calls ``update``; nothing here knows what a step does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

STEPS = ("detect less often", "enhancer off", "smaller swap", "fewer faces")
"""What is given up first stands first: what a viewer misses least."""


REGRETS_MAX = 5
"""How often the way back of one step is made twice as long: 10 s become 5 minutes."""


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """Defaults suit 30 pictures a second."""

    budget_ms: float = 100.0
    """What the 95th percentile of age may be."""
    back_at: float = 0.7
    """A step is taken back only below so much of the budget."""
    hold_ns: int = 2_000_000_000
    """How long the age must have been too high, without a break, before a step is taken, and for how long each step is then watched."""
    back_hold_ns: int = 10_000_000_000
    """The same for the way back: longer, so that a line at its limit does not swing."""

    def __post_init__(self) -> None:
        if self.budget_ms <= 0:
            raise ValueError(f"a budget of {self.budget_ms:g} ms was given; give more than 0")
        if not 0 < self.back_at < 1:
            raise ValueError(f"back_at is {self.back_at:g}; give a share of the budget between 0 and 1")
        if self.hold_ns < 0 or self.back_hold_ns < 0:
            raise ValueError(f"hold_ns is {self.hold_ns} and back_hold_ns {self.back_hold_ns}; neither may be negative")


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """One step down or back."""

    at_ns: int
    step: str
    given_up: bool
    """False: it is back."""
    age_ms: float
    """The 95th percentile that led to it."""

    def __str__(self) -> str:
        return f"{self.step}: {'given up' if self.given_up else 'back'} at an age of {self.age_ms:.0f} ms (p95)"


class Budget:
    """One thread; times only rise."""

    def __init__(self, options: BudgetOptions, steps: Sequence[str] = STEPS) -> None:
        """``steps``: those that this line can take, in order; an enhancer that is off anyway is none."""
        self._options = options
        self._steps = tuple(steps)
        self._level = 0
        self._wish = 0
        self._since_ns = 0
        self._back_ns: dict[str, int] = {}  # step → when it was last taken back
        self._regrets: Counter[str] = Counter()  # step → how often in a row that was a mistake

    @property
    def given_up(self) -> tuple[str, ...]:
        """The steps that are in force."""
        return self._steps[: self._level]

    def offer(self, steps: Sequence[str]) -> None:
        """The line can take other steps from now on; what was given up stays so where it still can be, with all that stands before it."""
        given_up = self.given_up
        self._steps = tuple(steps)
        self._level = max((place for place, step in enumerate(self._steps, 1) if step in given_up), default=0)

    def update(self, age_p95_ms: float, now_ns: int) -> BudgetChange | None:
        """Takes the age of the last second or so; returns what changed, at most one step a call."""
        wish = self._wish_for(age_p95_ms)
        if wish != self._wish:
            self._wish, self._since_ns = wish, now_ns
        if wish == 0 or not 0 <= self._level + wish <= len(self._steps):
            return None
        step = self._steps[self._level if wish > 0 else self._level - 1]
        hold_ns = self._options.hold_ns if wish > 0 else self._back_hold_ns(step)
        if now_ns - self._since_ns < hold_ns:
            return None
        self._remember(step, wish, now_ns)
        self._level += wish
        self._since_ns = now_ns
        return BudgetChange(now_ns, step, wish > 0, age_p95_ms)

    def _back_hold_ns(self, step: str) -> int:
        """A step whose price is more than the line has to spare would come and go for ever: each time it has to wait twice as long."""
        return self._options.back_hold_ns << self._regrets[step]

    def _remember(self, step: str, wish: int, now_ns: int) -> None:
        if wish < 0:
            self._back_ns[step] = now_ns
        elif step in self._back_ns:
            is_soon = now_ns - self._back_ns[step] <= self._back_hold_ns(step)
            self._regrets[step] = min(self._regrets[step] + 1, REGRETS_MAX) if is_soon else 0

    def _wish_for(self, age_ms: float) -> int:
        if age_ms > self._options.budget_ms:
            return 1
        return -1 if age_ms < self._options.budget_ms * self._options.back_at else 0

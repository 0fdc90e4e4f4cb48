"""How a line fares at one moment: what a window shows beside what was counted since the start (``rt.metrics.Snapshot``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rt.economy import Change


@dataclass(frozen=True, slots=True)
class Vitals:
    """Of the last seconds."""

    age_p95_ms: float | None
    """The 95th percentile of the last second, as it is held against the budget; None before the first picture."""
    budget_ms: float
    """0: nothing is given up."""
    stages_ms: Mapping[str, Mapping[str, float]]
    """Stage name → p50, p95, max of the last 300 frames."""
    given_up: tuple[str, ...]
    """Steps of ``rt.budget.STEPS`` that are in force."""
    changes: tuple[Change, ...]
    """Steps down and back, the oldest first; times are of the line's clock."""
    resident_mb: float
    """Memory of the whole program."""

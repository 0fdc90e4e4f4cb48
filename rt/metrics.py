"""What the line counts of itself. The HUD, the report and the bench read the same numbers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np


class Samples:
    """The last ``capacity`` measurements of one quantity. Not thread-safe by itself: ``Metrics`` guards it."""

    def __init__(self, capacity: int = 1 << 16) -> None:
        self._values = np.empty(capacity, np.float32)
        self._count = 0
        self._max = 0.0

    def add(self, value: float) -> None:
        self._values[self._count % len(self._values)] = value
        self._count += 1
        self._max = max(self._max, value)

    def copy(self) -> Samples:
        """As they are now; holds what is there and has no room for more."""
        kept = Samples(0)
        kept._values, kept._count, kept._max = self._kept.copy(), self._count, self._max
        return kept

    def last(self, count: int) -> np.ndarray:
        """float32 [N], a copy of the last ``count``, in no order."""
        count = min(count, self._count, len(self._values))
        return self._values.take(np.arange(self._count - count, self._count), mode="wrap")

    @property
    def _kept(self) -> np.ndarray:
        return self._values[: min(self._count, len(self._values))]

    def summary(self, *percentiles: int) -> dict[str, float]:
        """See the function of that name; ``max`` is of all time."""
        return summary(self._kept, self._max, *percentiles)


def summary(values: np.ndarray, largest: float, *percentiles: int) -> dict[str, float]:
    """``{"p50": …, …, "max": …}`` rounded to microseconds; empty when nothing was measured."""
    if not len(values):
        return {}
    found = np.percentile(values, percentiles)
    return {**{f"p{p}": round(float(v), 3) for p, v in zip(percentiles, found, strict=True)}, "max": round(largest, 3)}


class Recent:
    """The measurements of the last moments, up to ``capacity``. Not thread-safe by itself either."""

    def __init__(self, capacity: int = 1024) -> None:
        self._values = np.empty(capacity, np.float32)
        self._at_ns = np.full(capacity, -(1 << 62), np.int64)
        self._count = 0

    def add(self, value: float, now_ns: int) -> None:
        place = self._count % len(self._values)
        self._values[place], self._at_ns[place] = value, now_ns
        self._count += 1

    def since(self, at_ns: int) -> np.ndarray:
        """float32 [N], a copy: what came after ``at_ns``, in no order."""
        return self._values[self._at_ns > at_ns]


RECENT_FRAMES = 300
"""What ``Metrics.recent_stages_ms`` looks back: ten seconds at 30 pictures a second."""

RECENT_NS = 1_000_000_000
"""What ``Metrics.recent_age_ms`` looks back."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The numbers of one moment."""

    frames_in: int
    """Pictures the source delivered, dropped ones included."""
    frames_out: int
    """Pictures that were handed to the sinks."""
    dropped: dict[str, int]
    """By place: ``capture`` (no free slot), ``infer`` (a newer one came first), ``lane:NAME`` (the lane failed on it), ``late`` (a lane
    took too long), ``lanes`` (none was left), ``sink:NAME``."""
    lost_frames: int
    """Pictures in which a face that had been there was not found."""
    faces: int
    """Different faces seen."""
    age_ms: dict[str, dict[str, float]]
    """Sink name → p50, p95, p99, max of now minus capture when the sink had taken the frame."""
    stages_ms: dict[str, dict[str, float]]
    """Stage name → p50, p95, max."""
    last_drop_ns: int | None
    """When a frame was last dropped, on the line's clock."""
    first_out_ns: int | None
    """When a sink had taken the first frame, on the line's clock."""
    given_up: tuple[str, ...] = ()
    """What of the look is given up for now (``rt.economy``), in order."""
    stood_in: int = 0
    """Of ``frames_out``: those in the place of pictures that the source did not deliver (``rt.capture.reconnect``)."""


class Metrics:
    """Any thread; every call is a few hundred nanoseconds under one lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()  # all below guarded by _lock
        self._dropped: Counter[str] = Counter()
        self._ages: dict[str, Samples] = {}
        self._recent: dict[str, Recent] = {}
        self._given_up: tuple[str, ...] = ()
        self._stages: dict[str, Samples] = {}
        self._last_drop_ns: int | None = None
        self._first_out_ns: int | None = None

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self._counts[what] += number

    def high_water(self, what: str, value: int) -> None:
        with self._lock:
            self._counts[what] = max(self._counts[what], value)

    def drop(self, place: str, now_ns: int) -> None:
        with self._lock:
            self._dropped[place] += 1
            self._last_drop_ns = now_ns

    def taken(self, sink: str, captured_ns: int, now_ns: int) -> None:
        """``sink`` has taken a frame, whose age is now minus capture."""
        age_ms = (now_ns - captured_ns) / 1e6
        with self._lock:
            if self._first_out_ns is None:
                self._first_out_ns = now_ns
            self._ages.setdefault(sink, Samples()).add(age_ms)
            self._recent.setdefault(sink, Recent()).add(age_ms, now_ns)

    def recent_age_ms(self, sinks: Iterable[str], now_ns: int) -> float | None:
        """The 95th percentile of the last second, at that of ``sinks`` where it is lowest: one that is slow by itself does not count.

        None where none of them has taken a frame.
        """
        with self._lock:
            ages = [self._recent[sink].since(now_ns - RECENT_NS) for sink in sinks if sink in self._recent]
        return min((float(np.percentile(age, 95)) for age in ages if len(age)), default=None)

    def recent_stages_ms(self) -> dict[str, dict[str, float]]:
        """Stage name → p50, p95, max of the last frames."""
        with self._lock:
            stages = {name: samples.last(RECENT_FRAMES) for name, samples in self._stages.items()}
        return {name: summary(values, float(values.max()), 50, 95) for name, values in stages.items()}

    def give_up(self, steps: tuple[str, ...]) -> None:
        """What of the look is given up from now on."""
        with self._lock:
            self._given_up = steps

    def stages(self, marks_ns: dict[str, int]) -> None:
        """``marks_ns``: stage name → nanoseconds spent, as a frame carries them."""
        with self._lock:
            for name, spent_ns in marks_ns.items():
                self._stages.setdefault(name, Samples()).add(spent_ns / 1e6)

    def snapshot(self) -> Snapshot:
        """Percentiles are worked out without the lock: nobody on the line waits for them."""
        with self._lock:
            ages = {name: samples.copy() for name, samples in self._ages.items()}
            stages = {name: samples.copy() for name, samples in self._stages.items()}
            seen = Snapshot(
                frames_in=self._counts["frames_in"],
                frames_out=self._counts["frames_out"],
                dropped=dict(self._dropped),
                lost_frames=self._counts["lost_frames"],
                faces=self._counts["faces"],
                age_ms={},
                stages_ms={},
                last_drop_ns=self._last_drop_ns,
                first_out_ns=self._first_out_ns,
                given_up=self._given_up,
                stood_in=self._counts["stood_in"],
            )
        return replace(
            seen,
            age_ms={name: samples.summary(50, 95, 99) for name, samples in ages.items()},
            stages_ms={name: samples.summary(50, 95) for name, samples in stages.items()},
        )

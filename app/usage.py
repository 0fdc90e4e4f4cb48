"""What the process uses: processor time and memory, sampled beside the line."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil

_MB = 1024 * 1024


class UsageSampler:
    """Samples resident memory once a second on a thread of its own, from ``start`` to ``stop``."""

    def __init__(self, period_s: float = 1.0) -> None:
        self._process = psutil.Process()
        self._period_s = period_s
        self._stop = threading.Event()
        self._samples: list[tuple[float, float]] = []  # sampler thread until it has ended: seconds, MB
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
        self._cpu_start_s = 0.0
        self._cpu_s = 0.0

    def start(self) -> None:
        self._cpu_start_s = self._cpu_now_s()
        self._sample()
        self._thread.start()

    def stop(self) -> None:
        """Also where it was never started."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._sample()
        self._cpu_s = self._cpu_now_s() - self._cpu_start_s

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of all threads between start and stop."""
        return self._cpu_s

    @property
    def resident_mb(self) -> float:
        """Of the last second; 0 before ``start``. Any thread."""
        return self._samples[-1][1] if self._samples else 0.0

    def rss_mb(self) -> dict[str, float]:
        """start, end, peak in MB, and the slope in MB per minute over the last four fifths of the time."""
        seconds, rss = np.array(self._samples).T
        settled = seconds >= seconds[0] + 0.2 * (seconds[-1] - seconds[0])
        slope = np.polyfit(seconds[settled], rss[settled], 1)[0] * 60 if settled.sum() >= 10 else None
        facts = {"start": rss[0], "end": rss[-1], "peak": rss.max()}
        if slope is not None:
            facts["slope_per_min"] = slope
        return {name: round(float(value), 2) for name, value in facts.items()}

    def _cpu_now_s(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    def _sample(self) -> None:
        self._samples.append((time.monotonic(), self._process.memory_info().rss / _MB))

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._sample()


def process_age_s() -> float:
    """Seconds since this process began, to a hundredth: the operating system counts no finer."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - _began_after_boot_s()
    return time.time() - psutil.Process().create_time()


def _began_after_boot_s() -> float:
    """Field 22 of proc(5)'s ``stat``, by the clock of ``CLOCK_BOOTTIME``.

    psutil adds it to the time of day of the boot, which Linux gives in whole seconds: every age would be up to one second too long.
    """
    after_name = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(after_name[22 - 3]) / os.sysconf("SC_CLK_TCK")

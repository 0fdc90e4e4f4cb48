"""Prints a row for docs/gpu-results.md: the card, its driver, versions, and what the bench of tests/test_gpu.py measured.

python scripts/gpu_table.py REPORT.json
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

HEAD = ("card", "driver", "versions", "engine", "fps of 60", "age p50", "p95", "p99 ms", "swap p50", "p95 ms", "drops", "date")

PACKAGES = ("cupy-cuda13x", "cuda-core", "cuda-bindings", "tensorrt-rtx", "tensorrt")


def main(path: str) -> None:
    """Raises for a machine without a GPU: there is nothing to print."""
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    for cells in (HEAD, ("---",) * len(HEAD), row(report, *card())):
        print("| " + " | ".join(cells) + " |")


def card() -> tuple[str, str]:
    """Name and compute capability of the first GPU; the CUDA version that its driver takes."""
    from cuda.bindings import runtime
    from cuda.core import Device

    device = Device(0)
    version = int(runtime.cudaDriverGetVersion()[1])
    return f"{device.name} (sm_{device.arch})", f"CUDA {version // 1000}.{version % 1000 // 10}"


def row(report: dict[str, Any], name: str, driver: str) -> tuple[str, ...]:
    """What is known of one run, as text."""
    from datetime import date

    engine = next(model["runtime"] for model in report["models"] if model["model"].startswith("inswapper_full"))
    age, swap = report["age_ms"], report["stages_ms"]["swap"]
    times = (f"{age['p50']:.1f}", f"{age['p95']:.1f}", f"{age['p99']:.1f}", f"{swap['p50']:.1f}", f"{swap['p95']:.1f}")
    drops = str(sum(report["dropped"].values()))
    return (name, driver, installed(), engine, f"{report['fps']:.1f}", *times, drops, date.today().isoformat())


def installed() -> str:
    """Of the packages that matter, those that are here."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    main(sys.argv[1])

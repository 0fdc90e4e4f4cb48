"""Prints a row for docs/gpu-results.md: card, driver, versions, what the bench of tests/test_gpu.py measured, how many tests passed.

python scripts/gpu_table.py REPORT.json TESTS.xml
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import xml.etree.ElementTree as ElementTree
from datetime import date
from pathlib import Path
from typing import Any

HEAD = ("card", "driver", "versions", "engine", "fps of 60", "age p50", "p95", "p99 ms", "swap p50", "p95 ms", "drops", "passed", "date")

PACKAGES = ("cupy-cuda13x", "cuda-core", "cuda-bindings", "tensorrt-rtx", "tensorrt")


def main(report: str, tests: str) -> None:
    """Raises for a machine without a GPU: there is nothing to print."""
    print(table(Path(report), Path(tests), *card()))


def table(report: Path, tests: Path, name: str, driver: str) -> str:
    """``report``: need not be there, where the bench failed."""
    measured = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
    rows = (HEAD, ("---",) * len(HEAD), (name, driver, installed(), *cells(measured), passed(tests), str(date.today())))
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows)


def card() -> tuple[str, str]:
    """Name and compute capability of the first GPU; the CUDA version that its driver takes."""
    from cuda.bindings import runtime
    from cuda.core import Device

    device = Device(0)
    version = int(runtime.cudaDriverGetVersion()[1])
    return f"{device.name} (sm_{device.arch})", f"CUDA {version // 1000}.{version % 1000 // 10}"


def passed(tests: Path) -> str:
    """``9 of 10``, of a file that pytest wrote."""
    suites = list(ElementTree.parse(tests).iter("testsuite"))
    total, *bad = (sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped"))
    return f"{total - sum(bad)} of {total}"


def cells(report: dict[str, Any] | None) -> tuple[str, ...]:
    """What was measured, as text."""
    if report is None:
        return ("failed", *("–" for _ in range(7)))
    engine = next(model["runtime"] for model in report["models"] if model["model"].startswith("inswapper_full"))
    age, swap = report["age_ms"], report["stages_ms"]["swap"]
    times = (f"{age['p50']:.1f}", f"{age['p95']:.1f}", f"{age['p99']:.1f}", f"{swap['p50']:.1f}", f"{swap['p95']:.1f}")
    drops = str(sum(report["dropped"].values()))
    return (engine, f"{report['fps']:.1f}", *times, drops)


def installed() -> str:
    """Of the packages that matter, those that are here."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found) or "–"


if __name__ == "__main__":
    main(*sys.argv[1:])

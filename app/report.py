"""The report of a run: what went in and out, how old it was, where the time went, on which machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.errors import AppError
from app.settings import Settings
from app.usage import UsageSampler
from engines.session import ModelUse
from engines.unfinished import write_whole
from rt.line import Line
from rt.metrics import Snapshot

PACKAGES = ("ffrt", "numpy", "opencv-contrib-python", "av", "onnxruntime", "numba", "pyvirtualcam")
"""Whose versions a report names."""


def build_report(
    settings: Settings,
    line: Line,
    snapshot: Snapshot,
    usage: UsageSampler,
    seconds: float,
    source: dict[str, Any],
    startup_s: dict[str, float],
    models: Sequence[ModelUse],
    upgrade: dict[str, Any] | None,
) -> dict[str, Any]:
    """``seconds``: how long the line ran. ``source``: what ``Source.describe`` says. ``models``: those open at the end.
    ``startup_s``: step → seconds from the start of the process until it was done."""
    return {
        "seconds": round(seconds, 3),
        "fps": round(snapshot.frames_out / seconds, 3) if seconds > 0 else 0.0,
        "frames_in": snapshot.frames_in,
        "frames_out": snapshot.frames_out,
        "stood_in": snapshot.stood_in,
        "dropped": {"camera": source.get("missed", 0), **dict.fromkeys(("capture", "infer"), 0), **snapshot.dropped},
        "last_drop_s": None if snapshot.last_drop_ns is None else round(line.seconds_since_start(snapshot.last_drop_ns), 3),
        "startup_s": startup_s,
        "lost_frames": snapshot.lost_frames,
        "faces": snapshot.faces,
        "age_ms": _headline(snapshot, line),
        "stages_ms": snapshot.stages_ms,
        "sinks": _sinks(snapshot, line),
        "lanes": line.lanes.facts(),
        "economy": _economy(settings, line),
        "models": [asdict(model) for model in models],
        "upgrade": upgrade,
        "input": source,
        "error": str(line.error) if line.error else None,
        "cpu_seconds": round(usage.cpu_seconds, 2),
        "cores": round(usage.cpu_seconds / seconds, 3) if seconds > 0.1 else 0.0,
        "rss_mb": usage.rss_mb(),
        "settings": settings.public(),
        "versions": versions(),
        "machine": machine(),
    }


def _sinks(snapshot: Snapshot, line: Line) -> dict[str, Any]:
    """Those that were switched off before the end too; of two with one name the later is numbered."""
    facts: dict[str, Any] = {}
    for runner in (*line.retired, *line.runners):
        name = runner.sink.name
        count = sum(known.partition(" ")[0] == name for known in facts)
        facts[f"{name} {count + 1}" if count else name] = {**runner.statistics(), "age_ms": snapshot.age_ms.get(name, {})}
    return facts


def _headline(snapshot: Snapshot, line: Line) -> dict[str, float]:
    """The age at the sink that is last to have its frames, lossless ones aside where there are others: they may lag by design."""
    names = [r.sink.name for r in line.runners if not r.sink.lossless] or [r.sink.name for r in line.runners]
    ages = [snapshot.age_ms[name] for name in names if snapshot.age_ms.get(name)]
    return max(ages, key=lambda age: age["p95"], default={})


def _economy(settings: Settings, line: Line) -> dict[str, Any]:
    """What was given up of the look: at the end, and each step with its time in seconds."""
    changes = [
        {"at_s": round(line.seconds_since_start(change.at_ns), 3), "step": change.step, "given_up": change.given_up, "why": change.why}
        for change in line.economy.changes
    ]
    return {"budget_ms": settings.run.budget_ms, "given_up": list(line.economy.given_up), "changes": changes}


def versions() -> dict[str, str]:
    """Installed versions of what matters, by package name."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The machine in a few words, so that a number can be compared."""
    return {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()}


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def write_json(path: Path, value: Any) -> None:
    """Atomically. Raises ``AppError`` when the place cannot be written."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise AppError(
            f"the report cannot be written to {path}: {error.strerror}; give --report a file in a folder that can be written"
        ) from error

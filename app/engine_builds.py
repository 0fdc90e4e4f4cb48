"""What `ffrt engines` does: options as people write them → builds, lists, verdicts. Returns facts; printing is the command line's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.errors import UsageError
from engines.build.cache import EngineCache, Entry
from engines.build.child import Progress
from engines.build.crops import Framing, Pixels, read_crops, recorded_crops
from engines.build.graph import parse_batch, parse_shape, shape_text
from engines.build.key import PRECISIONS, parse_target
from engines.build.precision import QUANTIZERS, check_targets
from engines.build.service import (
    DEFAULT_TARGETS,
    BuildOptions,
    build_engine_of,
    installed_versions,
    verify_engine,
    verify_file,
    verify_precision,
)
from engines.build.trial import Trial, missing_shapes
from engines.errors import ModelError, ParityError
from engines.family import families
from engines.kit import family_and_path
from engines.store import embedded_model, embedded_models
from engines.store.graph import read_graph
from engines.store.shelf import Shelf, sha256_of
from engines.tensorrt import MODULES
from engines.wording import counted

FRAMINGS = {
    "face_detection_full_range_sparse": Framing.SCENE,
    "face_detection_short_range": Framing.SCENE,
    "iris_landmark": Framing.EYE,
}
"""Embedded models that look at something else than a face that fills the picture."""

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Request:
    """The words of the command line."""

    model: str
    runtime: str = "rtx"
    precision: str = "fp32"
    targets: str | None = None
    batch: str = "1"
    shapes: tuple[str, ...] = ()
    crops: Path | None = None
    framing: Framing | None = None
    pixels: str | None = None
    memory_mb: int | None = None
    optimization_level: int | None = None


def build(request: Request, report: Report, cancelled: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """Builds the engine, or finds it built. JSON-ready. Raises ``UsageError`` and what the engines raise."""
    path = model_path(request.model)
    graph = read_graph(path)  # a bad file is told before a missing package
    options = options_of(request)
    usual = missing_shapes(path, graph, options.shapes, options.trial.family)
    options = replace(options, shapes={**usual, **options.shapes})
    if options.runtime == "rtx":  # of the other one the GPU here is asked
        check_targets(options.precision, options.targets)
    _check_calibrated(request, options)
    started_s = time.monotonic()
    entry, is_new = build_engine_of(path, options, EngineCache(), report=report, cancelled=cancelled)
    shapes = {name: shape_text(shape) for name, shape in usual.items()}
    return {**entry.to_dict(), "built": is_new, "seconds": round(time.monotonic() - started_s, 3), "usual_shapes": shapes}


def entries() -> list[dict[str, Any]]:
    """Every engine on disk, newest first, each with why it is of no more use, if it is not. JSON-ready."""
    versions = installed_versions()
    return [{**entry.to_dict(), "proof": proof(entry), "stale": _stale(entry, versions)} for entry in EngineCache().entries()]


def prune(older_than_days: float | None, max_mb: float | None, everything: bool) -> list[dict[str, Any]]:
    """Removes what is stale or damaged, and what the limits say. JSON-ready."""
    for name, value in (("--older-than", older_than_days), ("--max-size", max_mb)):
        if value is not None and value < 0:
            raise UsageError(f"{name} {value:g} was given; it takes 0 or more")
    limit = 0 if everything else None if max_mb is None else int(max_mb * 1e6)
    removed = EngineCache().prune(now_s=time.time(), max_age_days=older_than_days, max_bytes=limit, versions=installed_versions())
    return [{"key": key, "why": why, "bytes": freed} for key, why, freed in removed]


def verify_parity(request: Request, on: str | None, candidate: Path | None, report: Report) -> dict[str, Any]:
    """The verdicts over a model at a precision: of the graph on the processor, of a file of one's own, or of built engines on the GPU.

    ``on``: a runtime whose built engines, or the runtime that ``candidate``, are compared. JSON-ready; ``passed`` says the whole.
    """
    path, options = model_path(request.model), options_of(request)
    usual = missing_shapes(path, read_graph(path), options.shapes, options.trial.family)
    options = replace(options, shapes={**usual, **options.shapes})
    if candidate is not None:
        verdicts = [_named(candidate.name, verify_file(path, candidate, options, on or "ort", report).to_dict())]
    elif on in MODULES:
        verdicts = _verify_engines(path, on, options, report)
    elif on is not None:
        raise UsageError(f"--runtime {on} was given; engines are compared on {' or '.join(MODULES)}, a file (--candidate) on any")
    elif request.precision == "fp32":
        raise UsageError("fp32 is what others are compared with; give --precision fp16, int8 or fp8, or --candidate FILE")
    else:
        verdicts = [_named(f"{path.name} at {request.precision}", verify_precision(path, options, report=report).to_dict())]
    return {"passed": all(verdict["passed"] for verdict in verdicts), "verdicts": verdicts}


def model_path(text: str) -> Path:
    """The path of an ONNX file, or the name of a model that is here: embedded, pulled or imported; ``simswap:mine.onnx`` says which family
    a file is of that fits several. Raises ``ModelError``."""
    if text in embedded_models():
        return embedded_model(text)
    path = family_and_path(text, families)[1]
    if path.is_file():
        return path
    shelf = Shelf()
    if shelf.matches(text):
        return shelf.model(shelf.find(text)).path
    raise ModelError(f"{text} is neither a file nor an embedded model; give an ONNX file, or {', '.join(sorted(embedded_models()))}")


def model_name(text: str) -> str:
    """What the model is called that a person calls ``text``: for the folder of its crops. Raises ``ModelError`` where two are called so."""
    path = family_and_path(text, families)[1]
    if path.is_file():
        return path.stem
    shelf = Shelf()
    return shelf.find(text).name if shelf.matches(text) else text


def options_of(request: Request) -> BuildOptions:
    """Raises ``UsageError`` and ``ModelError`` for words that mean nothing."""
    if request.precision not in PRECISIONS:
        raise UsageError(f"--precision {request.precision} was given; choose from {', '.join(PRECISIONS)}")
    if request.runtime not in MODULES:
        raise UsageError(f"--runtime {request.runtime} was given; engines are built for {' or '.join(MODULES)}")
    level = request.optimization_level
    if level is not None and not 0 <= level <= 5:
        raise UsageError(f"--effort {level} was given; it goes from 0 (quick build) to 5 (quick engine)")
    if request.memory_mb is not None and request.memory_mb < 1:
        raise UsageError(f"--memory {request.memory_mb} was given; it is what the build may take in MB")
    return BuildOptions(
        runtime=request.runtime,
        precision=request.precision,
        targets=_targets(request),
        batch=parse_batch(request.batch),
        shapes=dict(map(parse_shape, request.shapes)),
        optimization_level=level,
        memory_bytes=None if request.memory_mb is None else request.memory_mb * 1_000_000,
        trial=Trial(
            family=family_and_path(request.model, families)[0],
            crops=recorded_crops(model_name(request.model)) if request.crops is None else read_crops(request.crops),
            framing=request.framing or FRAMINGS.get(request.model, Framing.FACE),
            pixels=None if request.pixels is None else _pixels(request.pixels),
        ),
    )


def _check_calibrated(request: Request, options: BuildOptions) -> None:
    """Raises ``UsageError`` for a small precision without crops: two portraits do not show how far the values of other faces reach."""
    if options.precision in QUANTIZERS and options.trial.crops is None:
        raise UsageError(
            f"--precision {options.precision} is set by how far a model's values reach on your face, and no crops of it are recorded; "
            f"run `ffrt engines calibrate {request.model}` first, or give --crops DIR. fp16 needs none"
        )


def proof(entry: Entry) -> str:
    """``none needed`` (fp32), ``proven``, ``refused``, or ``graph`` where the graph alone was compared, on the processor."""
    parity = entry.facts.get("parity")
    if parity is not None:
        return "proven" if parity["passed"] else "refused"
    return "none needed" if entry.key.precision == "fp32" else "graph"


def _verify_engines(path: Path, runtime: str, options: BuildOptions, report: Report) -> list[dict[str, Any]]:
    sha256 = sha256_of(path)
    cache = EngineCache()
    built = [entry for entry in cache.entries() if entry.key.model_sha256 == sha256 and entry.key.runtime == runtime]
    if not built:
        raise ModelError(f"no engine of {path.name} is built for {runtime}; run `ffrt engines build {path} --runtime {runtime}`")
    return [_named(entry.key.hex, verify_engine(path, entry, cache, options.trial, report)[1].to_dict()) for entry in built]


def require(result: dict[str, Any]) -> None:
    """Raises ``ParityError`` when a verdict is bad."""
    refused = [verdict["what"] for verdict in result["verdicts"] if not verdict["passed"]]
    if refused:
        raise ParityError(f"refused: {', '.join(refused)}; use the next higher precision (fp8 and int8 → fp16 → fp32)")


def _named(what: str, verdict: dict[str, Any]) -> dict[str, Any]:
    return {"what": what, **verdict}


def _stale(entry: Entry, versions: dict[str, str]) -> str:
    installed = versions.get(entry.key.runtime)
    if installed is None:
        return f"{entry.key.runtime} is not installed"
    return "" if installed == entry.key.runtime_version else f"{entry.key.runtime} {installed} is installed"


def _targets(request: Request) -> tuple[str, ...]:
    if request.targets is None:
        return DEFAULT_TARGETS
    if request.runtime != "rtx":
        raise UsageError(f"--for was given with --runtime {request.runtime}, which builds for the GPU of this machine; leave it out")
    return tuple(map(parse_target, request.targets.split(",")))


def _pixels(text: str) -> Pixels:
    try:
        mean, std = map(float, text.split(","))
        if std <= 0:
            raise ValueError
    except ValueError:
        raise UsageError(f"--pixels {text} was given; write MEAN,STD of pixels / 255, as in 0.5,0.5 for models that take -1 to 1") from None
    return Pixels(mean, std)


def summary(entries: Sequence[dict[str, Any]]) -> str:
    """``3 engines, 12.4 MB``."""
    total = sum(entry["bytes"] for entry in entries)
    return f"{counted(len(entries), 'engine')}, {total / 1e6:.1f} MB"

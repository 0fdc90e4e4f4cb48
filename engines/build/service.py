"""From a model's file to a proven engine in the cache: what `ffrt engines` and, later, the window call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.build.builder import BuildRequest, build_task, inspect_task, known_targets, precision_task
from engines.build.cache import EngineCache, Entry
from engines.build.child import Progress, run_in_child
from engines.build.crops import recorded_crops
from engines.build.graph import profiles
from engines.build.key import EngineKey
from engines.build.parity import Verdict, compare
from engines.build.precision import check_targets
from engines.build.trial import Trial, missing_shapes
from engines.errors import ModelError, ParityError
from engines.family import ModelFile
from engines.session import Session, Shapes, open_session
from engines.tensorrt import PORTABLE, import_runtime, open_engine, tied_driver

DEFAULT_TARGETS = ("sm_75", "sm_86", "sm_89", "sm_120")
"""GeForce RTX 20, 30, 40 and 50: the cards of people who stream."""

Report = Callable[[Progress], None]
Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a person may choose."""

    runtime: str = "rtx"
    precision: str = "fp32"
    targets: tuple[str, ...] = DEFAULT_TARGETS
    """Of ``rtx``; an engine for ``tensorrt`` is for the GPU that builds it."""
    batch: tuple[int, int, int] = (1, 1, 1)
    """Least, best, most."""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Input → shape, for inputs whose sizes may vary beyond the batch."""
    optimization_level: int | None = None
    memory_bytes: int | None = None
    """What the child may take; None: all there is."""
    trial: Trial = field(default_factory=Trial)
    """What the model is tried on before it is trusted."""


def build_engine_of(
    model: Path,
    options: BuildOptions,
    cache: EngineCache,
    *,
    report: Report = lambda progress: None,
    cancelled: Cancelled = lambda: False,
) -> tuple[Entry, bool]:
    """The engine of ``model``, and whether it was built now; blocks the calling thread, on which ``report`` is called.

    Raises ``DeviceError`` when the runtime is not there, ``ModelError`` for a bad model or options that do not fit it, ``ParityError``
    when the gate refuses, ``BuildError`` when the build breaks, ``BuildCancelled``, ``CacheError``.
    """
    trt = import_runtime(options.runtime)
    targets = options.targets if options.runtime == "rtx" else ()
    driver = tied_driver(options.runtime)
    check_targets(options.precision, targets or ((driver.partition(" ")[0],) if driver else PORTABLE))
    if options.runtime == "rtx":
        _check_known(targets, known_targets(trt), str(trt.__version__))
    facts = run_in_child(inspect_task, model, report=report, cancelled=cancelled, memory_bytes=options.memory_bytes)
    taken = profiles(facts["inputs"], options.batch, options.shapes)
    key = EngineKey(
        model_sha256=facts["sha256"],
        runtime=options.runtime,
        runtime_version=str(trt.__version__),
        targets=targets or ((driver.partition(" ")[0],) if driver else ()),
        precision=options.precision,
        profiles=taken,
        flags=_flags(options),
        driver=driver,
    )

    def build(out: Path) -> Mapping[str, Any]:
        request = BuildRequest(
            model=model,
            out=out,
            runtime=options.runtime,
            precision=options.precision,
            targets=targets,
            profiles=taken,
            optimization_level=options.optimization_level,
            trial=options.trial,
        )
        return run_in_child(build_task, request, report=report, cancelled=cancelled, memory_bytes=options.memory_bytes)

    return cache.get_or_build(
        key,
        build,
        now_s=time.time,
        waiting=lambda: report(Progress(0, 0, "another process builds this engine; waiting for it")),
        cancelled=cancelled,
    )


def verify_engine(
    model: Path, entry: Entry, cache: EngineCache, trial: Trial, report: Report = lambda progress: None
) -> tuple[Entry, Verdict]:
    """Compares a built engine with the fp32 model on ONNX Runtime and writes the verdict beside it. Needs the GPU.

    Raises ``DeviceError`` naming what is missing. A verdict that is bad raises nothing: it keeps the engine from being used.
    """
    candidate = open_engine(entry, entry.key.runtime)
    try:
        shapes = {profile.name: profile.low for profile in entry.key.profiles}
        verdict = _compare(model, candidate, trial, shapes, report)
    finally:
        candidate.close()
    return cache.add_facts(entry.key, {"parity": verdict.to_dict()}), verdict


PREPARED = ("fp16", "fp32")
"""What is tried for a model that a person is live with: the quick one, and what is left when the gate refuses it."""


def prepare_engine(
    model: ModelFile,
    runtime: str,
    target: str,
    shapes: Shapes,
    report: Report,
    cancelled: Cancelled,
    precisions: Sequence[str] = PREPARED,
) -> None:
    """Builds the engine of ``model`` for the GPU here and proves it, all in children: the calling thread only waits.

    ``shapes``: for inputs whose sizes the file leaves open. It is tried on the crops that were recorded for it, where there are any.
    Raises as ``build_engine_of`` does; ``ParityError`` when the gate refuses every one of ``precisions``.
    """
    trial = Trial(model.family, recorded_crops(model.name))
    shapes = {**missing_shapes(model.path, model.graph, shapes, model.family), **shapes}
    for precision in precisions:
        options = BuildOptions(runtime, precision, (target,), shapes=shapes, trial=trial)
        try:
            entry, _ = build_engine_of(model.path, options, EngineCache(), report=report, cancelled=cancelled)
            verdict: Verdict = run_in_child(prove_task, model.path, entry, trial, report=report, cancelled=cancelled)
            verdict.require(model.name, precision)
            return
        except ParityError:
            if precision == precisions[-1]:
                raise


def prove_task(report: Report, model: Path, entry: Entry, trial: Trial) -> Verdict:
    """``verify_engine``, in the child."""
    return verify_engine(model, entry, EngineCache(), trial, report)[1]


def verify_precision(
    model: Path, options: BuildOptions, *, report: Report = lambda progress: None, cancelled: Cancelled = lambda: False
) -> Verdict:
    """Converts ``model`` to ``options.precision`` in a child and compares it with fp32, both on the processor: needs no GPU."""
    request = BuildRequest(
        model=model,
        out=Path(),
        runtime=options.runtime,
        precision=options.precision,
        targets=options.targets,
        profiles=(),
        trial=options.trial,
    )
    verdict: Verdict = run_in_child(
        precision_task, request, dict(options.shapes), report=report, cancelled=cancelled, memory_bytes=options.memory_bytes
    )
    return verdict


def verify_file(model: Path, candidate: Path, options: BuildOptions, runtime: str, report: Report = lambda progress: None) -> Verdict:
    """Compares another file of the same model (its fp16 export) on ``runtime`` with the fp32 ``model`` on the processor."""
    session = open_session(candidate, runtime=runtime)
    try:
        return _compare(model, session, options.trial, options.shapes, report)
    finally:
        session.close()


def installed_versions() -> dict[str, str]:
    """Runtime → version, of those that are installed. The packages' metadata alone is read."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for runtime, package in (("rtx", "tensorrt_rtx"), ("tensorrt", "tensorrt"), ("ort", "onnxruntime"), ("ort", "onnxruntime-gpu")):
        try:
            found[runtime] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _compare(model: Path, candidate: Session, trial: Trial, shapes: Shapes, report: Report) -> Verdict:
    reference = open_session(model)
    try:
        feeds = trial.feeds(model, reference, shapes)
        checks = trial.checks_of(model)
        return compare(reference, candidate, feeds, checks, lambda done, total: report(Progress(done, total, "comparing with fp32")))
    finally:
        reference.close()


def _check_known(targets: tuple[str, ...], known: tuple[str, ...], version: str) -> None:
    unknown = [target for target in targets if target not in known]
    if unknown:
        raise ModelError(
            f"TensorRT for RTX {version} does not build for {', '.join(unknown)}; it knows {', '.join(known)}"
            " (data-centre chips like sm_90 and sm_100 take --runtime tensorrt)"
        )


def _flags(options: BuildOptions) -> tuple[str, ...]:
    """What else decides the engine's bytes: the builder's effort, and for small numbers what they were measured on."""
    effort = () if options.optimization_level is None else (f"optimization_level={options.optimization_level}",)
    return effort if options.precision == "fp32" else (*effort, *options.trial.flags())

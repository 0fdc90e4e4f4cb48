"""The build itself, in the child: ONNX → graph at a precision → gate → engine file.

TensorRT for RTX builds without a GPU and for several chips at once; TensorRT builds for the GPU that is there. Both take the same
calls, but for those marked. Networks are strongly typed: what precision each layer has is in the graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.build import turing
from engines.build.cache import unusable
from engines.build.child import Progress
from engines.build.graph import load_model
from engines.build.key import InputProfile, capability
from engines.build.parity import Verdict, compare
from engines.build.trial import Trial
from engines.errors import BuildError, DeviceError
from engines.session import Session
from engines.store.graph import read_graph
from engines.store.shelf import sha256_of
from engines.tensorrt import MODULES, error_collector, import_runtime

if TYPE_CHECKING:
    import onnx

RANGE_CROPS = 8
"""So many crops are measured for fp16, where only the order of size matters; for int8 and fp8 all are."""

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """All that the child needs. Picklable."""

    model: Path
    out: Path
    """Where the engine goes."""
    runtime: str
    """``rtx`` or ``tensorrt``."""
    precision: str
    targets: tuple[str, ...]
    """Of ``rtx`` alone; empty: its own choice (8.0, 8.6, 8.9, 12.x)."""
    profiles: tuple[InputProfile, ...]
    optimization_level: int | None = None
    """0 (quick build) to 5 (quick engine); None: the runtime's own."""
    trial: Trial = field(default_factory=Trial)
    """For calibration and the gate."""


def build_task(report: Report, request: BuildRequest) -> dict[str, Any]:
    """Builds, writes the engine to ``request.out`` and returns facts (JSON-ready). For ``child.run_in_child``.

    Raises ``ModelError`` for a bad model, ``ParityError`` when the converted graph fails the gate on the processor,
    ``DeviceError`` for a runtime that is not there, ``BuildError`` when the runtime refuses, ``CacheError`` for a disk that is full.
    """
    trt = import_runtime(request.runtime)
    report(Progress(0, 0, "reading the model"))
    model = load_model(request.model)
    facts: dict[str, Any] = {"model": request.model.name}
    if request.precision != "fp32":
        shapes = {profile.name: profile.low for profile in request.profiles}
        model, verdict = converted(report, model, request, shapes)
        verdict.require(request.model.name, request.precision)
        facts["graph_parity"] = verdict.to_dict()
    started_s = time.perf_counter()
    engine = build_engine(trt, model, request, report)
    try:
        request.out.write_bytes(engine)
    except OSError as error:
        raise unusable(request.out.parent, error) from error
    return {**facts, "build_s": round(time.perf_counter() - started_s, 3)}


def inspect_task(report: Report, path: Path) -> dict[str, Any]:
    """Inputs (``TensorSpec``) and SHA-256 of a model, read in the child since a stranger's file may be anything."""
    report(Progress(0, 0, "reading the model"))
    return {"inputs": read_graph(path).inputs, "sha256": sha256_of(path)}


def known_targets(trt: ModuleType) -> tuple[str, ...]:
    """Chips that an engine for RTX can be built for: ``sm_75``, ``sm_86``, …"""
    names = trt.ComputeCapability.__members__  # rtx only
    return tuple(sorted((f"sm_{name[2:]}" for name in names if name.startswith("SM")), key=capability))


def build_engine(trt: ModuleType, model: onnx.ModelProto, request: BuildRequest, report: Report = lambda progress: None) -> bytes:
    """The serialised engine. Raises ``BuildError`` with the runtime's own words."""
    if turing.TARGET in request.targets:
        model = turing.without_full_products(model)
    said: list[str] = []
    logger = error_collector(trt, said)
    builder = _builder(trt, logger, request.runtime)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model.SerializeToString()):
        reasons = "; ".join(parser.get_error(k).desc() for k in range(parser.num_errors))
        raise BuildError(f"{request.runtime} cannot read {request.model.name}: {reasons or '; '.join(said[-2:])}")
    config = builder.create_builder_config()
    config.progress_monitor = _monitor(trt, report)
    if request.optimization_level is not None:
        config.builder_optimization_level = request.optimization_level
    if request.runtime == "rtx":  # rtx only
        _set_targets(trt, config, request.targets)
    _set_shapes(builder, network, config, request.profiles)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        hint = f" ({turing.HINT})" if any("Turing" in words for words in said) else ""
        raise BuildError(f"{request.runtime} cannot build {request.model.name}: {'; '.join(said[-2:]) or 'it gave no reason'}{hint}")
    return bytes(engine)


def _builder(trt: ModuleType, logger: Any, runtime: str) -> Any:
    try:
        return trt.Builder(logger)
    except (TypeError, RuntimeError) as error:  # "factory function returned nullptr": no driver, or no libraries
        raise DeviceError(f"{MODULES[runtime]} cannot build here ({error}); it needs an NVIDIA GPU and its driver") from error


def _set_targets(trt: ModuleType, config: Any, targets: tuple[str, ...]) -> None:  # rtx only
    """Targets that the runtime does not know were refused before: ``known_targets``."""
    config.num_compute_capabilities = len(targets)
    for place, target in enumerate(targets):
        config.set_compute_capability(getattr(trt.ComputeCapability, f"SM{capability(target)}"), place)


def _set_shapes(builder: Any, network: Any, config: Any, profiles: tuple[InputProfile, ...]) -> None:
    wanted = {profile.name: profile for profile in profiles}
    varying = builder.create_optimization_profile()
    is_static = True
    for place in range(network.num_inputs):
        tensor = network.get_input(place)
        profile = wanted[tensor.name]
        if profile.is_static:
            tensor.shape = profile.best  # a fixed shape lets the builder do more than a range of one
            continue
        is_static = False
        varying.set_shape(tensor.name, profile.low, profile.best, profile.high)
    if not is_static:
        config.add_optimization_profile(varying)


def _monitor(trt: ModuleType, report: Report) -> Any:
    """Phases nest; what is reported is the outermost one's steps."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self._steps: dict[str, int] = {}
            self._outermost: str | None = None

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self._steps[phase_name] = num_steps
            if parent_phase is None:
                self._outermost = phase_name
                report(Progress(0, num_steps, phase_name))

        def step_complete(self, phase_name: str, step: int) -> bool:
            if phase_name == self._outermost:
                report(Progress(step, self._steps[phase_name], phase_name))
            return True

        def phase_finish(self, phase_name: str) -> None:
            if phase_name == self._outermost:
                self._outermost = None

    return Monitor()


# --- the graph at another precision, and its gate


def precision_task(report: Report, request: BuildRequest, shapes: Mapping[str, tuple[int, ...]]) -> Verdict:
    """The verdict over ``request.model`` at ``request.precision``; nothing is built, and a bad verdict raises nothing."""
    report(Progress(0, 0, "reading the model"))
    model = load_model(request.model)
    return converted(report, model, request, shapes)[1]


def converted(
    report: Report, model: onnx.ModelProto, request: BuildRequest, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[onnx.ModelProto, Verdict]:
    """The model at ``request.precision`` and the verdict over it: both run on ONNX Runtime, which takes no GPU."""
    from engines.build.precision import convert
    from engines.build.ranges import measure
    from engines.ort import OrtSession

    reference = OrtSession.from_bytes(model.SerializeToString(), request.model.name)
    try:
        feeds = request.trial.feeds(request.model, reference, shapes)
        few = feeds[:RANGE_CROPS] if request.precision == "fp16" else feeds
        ranges = measure(model, few, partial(_tell, report, "measuring ranges"))
        smaller = convert(model, request.precision, ranges)
        return smaller, _gate(report, reference, smaller, feeds, request)
    finally:
        reference.close()


def _gate(
    report: Report, reference: Session, smaller: onnx.ModelProto, feeds: Sequence[Mapping[str, np.ndarray]], request: BuildRequest
) -> Verdict:
    from engines.build.precision import rounded
    from engines.ort import OrtSession

    if request.precision == "fp16":
        smaller = rounded(smaller)
    candidate = OrtSession.from_bytes(smaller.SerializeToString(), f"{request.model.name} at {request.precision}")
    try:
        checks = request.trial.checks_of(request.model)
        return compare(reference, candidate, feeds, checks, partial(_tell, report, "comparing with fp32"))
    finally:
        candidate.close()


def _tell(report: Report, what: str, done: int, total: int) -> None:
    report(Progress(done, total, what))

"""The gate: a model on a new runtime or at a lower precision is trusted when it computes what the fp32 original does.

Compared are two sessions, whatever runs them, on the same inputs; the worst input decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engines.build.crops import CROPS_MIN, is_picture
from engines.errors import ModelError, ParityError
from engines.family import Graph
from engines.measure import LANDMARKS_SIDE, Check, Measure
from engines.session import Session, TensorSpec
from engines.wording import counted

NEXT_PRECISION = {"fp8": "fp16", "int8": "fp16", "fp16": "fp32"}
"""What to try when a precision is refused."""

LIMITS = {Measure.PSNR_DB: 35.0, Measure.COSINE: 0.999, Measure.LANDMARK_PX: 0.5}
"""PSNR and cosine: at least; landmarks: at most. From the issue that asked for the gate; 35 dB is 4.5 levels of 255 RMS."""

PSNR_MAX_DB = 200.0
"""Said of equal tensors, since JSON knows no infinity."""


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """One output over all inputs."""

    name: str
    measure: str
    worst: float
    mean: float
    limit: float
    finite: bool
    """False: the candidate computed NaN or infinity at least once; ``worst`` and ``mean`` then leave those inputs out."""
    passed: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says."""

    passed: bool
    crops: int
    reference: str
    """Its runtime, for people."""
    candidate: str
    outputs: tuple[OutputVerdict, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    def sentence(self) -> str:
        """``image: psnr_db 31.2 (35 or more is wanted), …``: the numbers, those that failed first."""
        return ", ".join(_words(output) for output in sorted(self.outputs, key=lambda output: output.passed))

    def require(self, what: str, precision: str) -> None:
        """Raises ``ParityError`` with the numbers and the next higher precision, unless all is well."""
        if self.passed:
            return
        higher = NEXT_PRECISION.get(precision)
        mend = f"use {higher} instead (--precision {higher})" if higher else "use another runtime"
        raise ParityError(f"{what} at {precision} is refused after {self.crops} crops: {self.sentence()}; {mend}")


def compare(
    reference: Session,
    candidate: Session,
    feeds: Sequence[Mapping[str, np.ndarray]],
    checks: Mapping[str, Check] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Runs both on every one of ``feeds`` (real crops, 32 at least) on the calling thread.

    ``checks``: by output; what is not named is guessed from its shape (``guess_check``). Raises ``ModelError`` for too few feeds, and
    for sessions whose outputs differ in name or shape: those are two models.
    """
    if len(feeds) < CROPS_MIN:
        raise ModelError(f"the comparison was given {counted(len(feeds), 'crop')}; {CROPS_MIN} or more are needed to trust a model")
    names = [spec.name for spec in reference.outputs]
    if sorted(names) != sorted(spec.name for spec in candidate.outputs):
        raise ModelError(
            f"the candidate's outputs are {', '.join(spec.name for spec in candidate.outputs)}, the reference's {', '.join(names)}"
        )
    rules = _checks(reference, checks or {})
    scores: dict[str, list[float | None]] = {name: [] for name in names}
    spans = _Spans()
    for done, feed in enumerate(feeds):
        report(done, len(feeds))
        wanted, got = reference.run(feed), candidate.run(_typed(feed, candidate.inputs))
        for name in names:
            spans.see(name, wanted[name])
            scores[name].append(_score(name, wanted[name], got[name], rules[name]))
    outputs = tuple(_verdict(name, rules[name], scores[name], spans) for name in names)
    return Verdict(all(output.passed for output in outputs), len(feeds), reference.runtime, candidate.runtime, outputs)


def guess_check(spec: TensorSpec, inputs: Sequence[TensorSpec]) -> Check:
    """[N, points, 2 or 3]: landmarks in pixels of the input picture; [N, 128 or 256 or 512]: an embedding; all else by PSNR."""
    shape = spec.shape
    if len(shape) == 3 and shape[2] in (2, 3) and shape[1] != 1:
        return Check(Measure.LANDMARK_PX, _side(inputs))
    if len(shape) == 2 and shape[1] in (128, 256, 512):
        return Check(Measure.COSINE)
    return Check(Measure.PSNR_DB)


# --- fp16 files that are known to go wrong


def refuse_half_swapper(path: Path, graph: Graph, runtime: str, is_swapper: bool) -> None:
    """``graph``: what the file says of itself; where that shows nothing of fp16, the file is not read again.

    Raises ``ParityError`` for a swapper whose arithmetic is fp16 on ONNX Runtime's CPU or CUDA provider.

    Since ONNX Runtime 1.17 the fp16 inswapper gives black boxes on the one and distorted faces on the other (onnxruntime issue 19437).
    """
    if not is_swapper or runtime not in ("ort", "ort-cuda") or not (_hints_at_half(path, graph) and computes_in_half(path)):
        return
    wanted = re.sub(r"[._-]?(fp16|half)", "", path.stem, flags=re.IGNORECASE) + path.suffix
    named = f"use {wanted} (fp32)" if wanted != path.name else "use the fp32 file of the same model"
    raise ParityError(
        f"{path.name} computes in fp16, which ONNX Runtime turns into black or distorted faces on {runtime}; {named}, "
        "from which `ffrt engines build --precision fp16` makes an fp16 engine that is proven"
    )


def _hints_at_half(path: Path, graph: Graph) -> bool:
    """By its inputs, by inswapper's matrix, which is its last weight, or by the name it goes by."""
    seen = [*graph.inputs, *([graph.last_initializer] if graph.last_initializer else [])]
    return "fp16" in path.stem.lower() or any(spec.dtype == np.float16 for spec in seen)


def computes_in_half(path: Path) -> bool:
    """Whether weights in fp16 go into the mathematics as they are; kept as fp16 and cast when loaded does not count.

    Raises ``ModelError`` for a file that is no model.
    """
    from engines.build.graph import load_model

    graph = load_model(path).graph
    half = {tensor.name for tensor in graph.initializer if tensor.data_type == 10}  # TensorProto.FLOAT16
    return any(name in half for node in graph.node if node.op_type != "Cast" for name in node.input)


# --- one output


class _Spans:
    """Least and largest value of the reference's outputs over all inputs."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, float]] = {}

    def see(self, name: str, value: np.ndarray) -> None:
        if not np.isfinite(value).all():
            raise ModelError(f"the fp32 reference itself computes NaN or infinity at {name}; nothing can be compared with it")
        if value.size:
            low, high = self._found.get(name, (math.inf, -math.inf))
            self._found[name] = min(low, float(value.min())), max(high, float(value.max()))

    def of(self, name: str) -> float:
        low, high = self._found.get(name, (0.0, 0.0))
        # A constant output has no span; its own size, or 1 for zeros, then is what an error is compared with.
        return high - low or abs(high) or 1.0


def _score(name: str, wanted: np.ndarray, got: np.ndarray, check: Check) -> float | None:
    """Of PSNR the mean square error for now, since the span is not known yet; None for NaN or infinity."""
    if wanted.shape != got.shape:
        raise ModelError(
            f"{name} is {list(got.shape)} from the candidate and {list(wanted.shape)} from the reference; these are two models"
        )
    a, b = _by_point(wanted, check).astype(np.float64), _by_point(got, check).astype(np.float64)
    if not np.isfinite(b).all():
        return None
    if check.measure is Measure.LANDMARK_PX:
        return float(np.linalg.norm((a - b)[..., :2], axis=-1).mean()) * LANDMARKS_SIDE / check.side
    if check.measure is Measure.COSINE:
        sizes = float(np.linalg.norm(a) * np.linalg.norm(b))
        return float((a * b).sum()) / sizes if sizes else float(not a.any() and not b.any())
    return float(((a - b) ** 2).mean()) if a.size else 0.0


def _by_point(value: np.ndarray, check: Check) -> np.ndarray:
    return value.reshape(len(value), -1, check.numbers) if check.numbers else value


def _typed(feed: Mapping[str, np.ndarray], inputs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """``feed`` in the candidate's types: a file in fp16 takes its pictures in fp16."""
    types = {spec.name: spec.dtype for spec in inputs}
    return {name: value.astype(types.get(name, value.dtype), copy=False) for name, value in feed.items()}


def _verdict(name: str, check: Check, scores: Sequence[float | None], spans: _Spans) -> OutputVerdict:
    found = [score for score in scores if score is not None]
    if check.measure is Measure.PSNR_DB:
        found = [_psnr_db(error, spans.of(name)) for error in found]
    finite = len(found) == len(scores)
    lower_is_better = check.measure is Measure.LANDMARK_PX
    limit = LIMITS[check.measure]
    if not found:
        return OutputVerdict(name, check.measure.value, 0.0, 0.0, limit, False, False)
    worst = max(found) if lower_is_better else min(found)
    well = worst <= limit if lower_is_better else worst >= limit
    return OutputVerdict(name, check.measure.value, worst, float(np.mean(found)), limit, finite, finite and well)


def _psnr_db(mean_square: float, peak: float) -> float:
    return min(PSNR_MAX_DB, 10 * math.log10(peak * peak / mean_square)) if mean_square > 0 else PSNR_MAX_DB


def _checks(reference: Session, given: Mapping[str, Check]) -> dict[str, Check]:
    return {spec.name: given.get(spec.name) or guess_check(spec, reference.inputs) for spec in reference.outputs}


def _side(inputs: Sequence[TensorSpec]) -> float:
    for spec in inputs:
        if is_picture(spec.shape) and isinstance(spec.shape[2], int):
            return float(spec.shape[2])
    return float(LANDMARKS_SIDE)


def _words(output: OutputVerdict) -> str:
    if not output.finite:
        return f"{output.name}: NaN or infinity"
    side = "less" if output.measure == Measure.LANDMARK_PX else "more"
    return f"{output.name}: {output.measure} {output.worst:.4g} ({output.limit:g} or {side} is wanted)"

"""How far the tensors of a network reach, measured by running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort

from engines.build.precision import tensor_names
from engines.errors import ModelError


def measure(
    model: onnx.ModelProto, feeds: Sequence[Mapping[str, np.ndarray]], report: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, float]:
    """Tensor → largest absolute value over ``feeds`` (the inputs of one run each), inputs included; on the processor, in fp32.

    Raises ``ModelError`` for a model that ONNX Runtime refuses, and for one that computes NaN or infinity from these feeds.
    """
    widened = onnx.ModelProto()
    widened.CopyFrom(model)
    there = {value.name for value in widened.graph.output}
    names = tensor_names(model)
    widened.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in there)
    session = _session(widened)
    ranges: dict[str, float] = dict.fromkeys(names, 0.0)
    for done, feed in enumerate(feeds):
        report(done, len(feeds))
        for name, value in [*feed.items(), *zip(names, session.run(names, dict(feed)), strict=True)]:
            if value.dtype.kind == "f" and value.size:
                ranges[name] = max(ranges.get(name, 0.0), _largest(name, value))
    return ranges


def _largest(name: str, value: np.ndarray) -> float:
    largest = float(np.abs(value).max())
    if not np.isfinite(largest):
        raise ModelError(f"the fp32 model itself computes NaN or infinity at {name}; it cannot serve as a reference")
    return largest


def _session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1  # a build is in no hurry, and the line may be live meanwhile
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # optimised away is not measured
    try:
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the binding raises classes of its own, all straight from Exception
        raise ModelError(f"ONNX Runtime cannot run this model, so its numbers cannot be measured: {error}") from error

"""ONNX Runtime on the processor: the runtime that is everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime as ort

from engines.errors import ModelError
from engines.session import TensorSpec, runtimes

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}
"""ONNX Runtime's names of element types that models for faces use."""


class OrtSession:
    """One model on the CPU provider. Not thread-safe: one thread at a time."""

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        """``threads``: how many the model may use. Raises ``ModelError`` for a file that is missing or no model."""
        if not path.is_file():
            raise ModelError(f"the model {path} does not exist; give the path of an ONNX file")
        try:
            session = ort.InferenceSession(str(path), _options(threads), providers=["CPUExecutionProvider"])
        except Exception as error:  # the binding raises classes of its own, all straight from Exception
            raise ModelError(f"{path} cannot be opened as an ONNX model: {error}; fetch or convert it again") from error
        self._session: ort.InferenceSession | None = session
        self.inputs = tuple(map(_spec, session.get_inputs()))
        self.outputs = tuple(map(_spec, session.get_outputs()))
        self.runtime = "ort:" + session.get_providers()[0]
        self._names = [spec.name for spec in self.outputs]
        self._path = path

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``Session.run``; names, element types and shapes are checked by ONNX Runtime."""
        if self._session is None:
            raise ModelError(f"the session of {self._path.name} is closed; open it again")
        try:
            results = self._session.run(self._names, dict(feeds))
        except Exception as error:  # as above
            given = _named((name, value.dtype, value.shape) for name, value in feeds.items())
            taken = _named((spec.name, spec.dtype, spec.shape) for spec in self.inputs)
            raise ModelError(f"{self._path.name} was given {given}; it takes {taken}: {error}") from error
        return dict(zip(self._names, results, strict=True))

    def close(self) -> None:
        self._session = None


def _named(tensors: Iterable[tuple[str, np.dtype, tuple[int | str, ...]]]) -> str:
    return ", ".join(f"{name} {dtype}[{', '.join(map(str, shape))}]" for name, dtype, shape in tensors) or "nothing"


def _options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A spinning pool takes a core from the camera, the encoders and the window, which need it more.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return options


def _spec(node: ort.NodeArg) -> TensorSpec:
    return TensorSpec(node.name, tuple(node.shape), np.dtype(DTYPES.get(node.type, np.void)))


runtimes.register("ort")(OrtSession)

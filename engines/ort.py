"""ONNX Runtime: on the processor, where it is everywhere, and on the devices its other packages bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime as ort

from engines.errors import DeviceError, ModelError
from engines.session import Runtime, TensorSpec, register_runtime, warm_up

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}
"""ONNX Runtime's names of element types that models for faces use."""

CPU = "CPUExecutionProvider"


@dataclass(frozen=True, slots=True)
class Provider:
    """One device of ONNX Runtime's."""

    name: str
    """ONNX Runtime's own name of it."""
    package: str
    """What brings it. Only one of ONNX Runtime's packages can be installed at a time."""
    needs: str
    """What else it takes."""


PROVIDERS = {
    "ort": Provider(CPU, "onnxruntime", "nothing"),
    "ort-cuda": Provider("CUDAExecutionProvider", "onnxruntime-gpu", "an NVIDIA GPU, its driver, CUDA 13 and cuDNN 9"),
    "ort-directml": Provider("DmlExecutionProvider", "onnxruntime-directml", "Windows and a DirectX 12 GPU"),
    "ort-coreml": Provider("CoreMLExecutionProvider", "onnxruntime", "macOS"),
    "ort-openvino": Provider("OpenVINOExecutionProvider", "onnxruntime-openvino", "an Intel processor or GPU"),
}
"""Runtime → provider. Needs: from the page "Execution providers" of ONNX Runtime's documentation."""


class OrtSession:
    """One model on one provider. Not thread-safe: one thread at a time."""

    def __init__(self, path: Path, *, threads: int = 1, provider: str = CPU) -> None:
        """``threads``: how many the model may use on the processor.

        Raises ``ModelError`` for a file that is missing or no model, ``DeviceError`` when ONNX Runtime does not use ``provider``.
        """
        if not path.is_file():
            raise ModelError(f"the model {path} does not exist; give the path of an ONNX file")
        self._start(str(path), str(path), path.name, threads, provider)

    @classmethod
    def from_bytes(cls, model: bytes, name: str, *, threads: int = 1) -> OrtSession:
        """A model in memory, on the processor. ``name``: for messages."""
        session = cls.__new__(cls)
        session._start(model, name, name, threads, CPU)
        return session

    def _start(self, model: str | bytes, where: str, name: str, threads: int, provider: str) -> None:
        try:
            session = ort.InferenceSession(model, _options(threads), providers=[provider])
        except Exception as error:  # the binding raises classes of its own, all straight from Exception
            raise ModelError(f"{where} cannot be opened as an ONNX model: {error}; fetch or convert it again") from error
        used = session.get_providers()[0]
        if used != provider:  # it prints why, and would go on with the processor
            raise DeviceError(f"ONNX Runtime was asked for {provider} and took {used}; {_provider_needs(provider)}")
        self._session: ort.InferenceSession | None = session
        self.inputs = tuple(map(_spec, session.get_inputs()))
        self.outputs = tuple(map(_spec, session.get_outputs()))
        self.runtime = "ort:" + used
        self._names = [spec.name for spec in self.outputs]
        self._name = name

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``Session.run``; names, element types and shapes are checked by ONNX Runtime."""
        if self._session is None:
            raise ModelError(f"the session of {self._name} is closed; open it again")
        try:
            results = self._session.run(self._names, dict(feeds))
        except Exception as error:  # as above
            given = _named((name, value.dtype, value.shape) for name, value in feeds.items())
            taken = _named((spec.name, spec.dtype, spec.shape) for spec in self.inputs)
            raise ModelError(f"{self._name} was given {given}; it takes {taken}: {error}") from error
        return dict(zip(self._names, results, strict=True))

    def warm_up(self) -> None:
        warm_up(self)

    @property
    def memory_bytes(self) -> int | None:
        """ONNX Runtime does not say."""
        return None

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


def _provider_needs(provider: str) -> str:
    found = next(entry for entry in PROVIDERS.values() if entry.name == provider)
    return f"it comes with the package {found.package} and needs {found.needs}"


def _opener(name: str) -> Callable[..., OrtSession]:
    def open_on_provider(path: Path, *, threads: int = 1) -> OrtSession:
        why = _problem(name)
        if why:
            raise DeviceError(f"the runtime {name} was asked for: {why}")
        return OrtSession(path, threads=threads, provider=PROVIDERS[name].name)

    return open_on_provider


def _problem(name: str) -> str:
    provider = PROVIDERS[name]
    there = ort.get_available_providers()
    if provider.name in there:
        return ""
    return (
        f"ONNX Runtime {ort.__version__} as it is installed has no {provider.name} (it has {', '.join(there)}); "
        f"install {provider.package} in place of onnxruntime (it needs {provider.needs})"
    )


for _name in PROVIDERS:
    register_runtime(_name, Runtime(_opener(_name), partial(_problem, _name)))

"""TensorRT for RTX (``rtx``) and TensorRT 10 or 11 (``tensorrt``): engines that were built beforehand, run on an NVIDIA GPU.

An engine is found by the model's SHA-256 among those that ``ffrt engines build`` left; nothing is built here. An engine that is not
fp32 is taken only after it was compared with fp32. Everything is imported when it is asked for, and nothing falls back.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.device.budget import says_none_is_left
from engines.device.cuda_probe import find_gpus
from engines.device.cuda_runtime import CudaCalls, cuda_runtime
from engines.device.memory import CUDA, Place
from engines.errors import DeviceError, DeviceMemoryError, EngineError, ModelError
from engines.session import Runtime, Shapes, Sizes, TensorSpec, fitting, register_runtime, warm_up
from engines.unfinished import write_whole

if TYPE_CHECKING:
    from engines.build.cache import Entry
    from engines.build.child import Progress
    from engines.family import ModelFile

MODULES = {"rtx": "tensorrt_rtx", "tensorrt": "tensorrt"}
"""Runtime → Python module."""

PACKAGES = {
    "rtx": "the package tensorrt-rtx is not installed; run `pip install 'ffrt[engines]'`",
    "tensorrt": "the package tensorrt (10 or 11) is not installed; run `pip install tensorrt --extra-index-url https://pypi.nvidia.com`",
}
"""Runtime → what to say without it."""

PORTABLE = ("sm_80", "sm_86", "sm_89", "sm_120", "sm_121")
"""Chips that an engine for RTX runs on when none was named: TensorRT for RTX 1.7, support matrix."""

VERSION_MIN = 10
"""Of TensorRT: the first whose engines are strongly typed and whose tensors go by name alone."""


def import_runtime(runtime: str) -> ModuleType:
    """The Python module of ``rtx`` or ``tensorrt``. Raises ``DeviceError`` naming the package, ``ModelError`` for another name."""
    if runtime not in MODULES:
        raise ModelError(f"engines are for {' or '.join(MODULES)}, and {runtime!r} was given")
    try:
        module = _import(runtime)
    except ModuleNotFoundError as error:
        if error.name == MODULES[runtime]:
            raise DeviceError(PACKAGES[runtime]) from error
        raise DeviceError(f"{MODULES[runtime]} is installed and lacks {error.name}; install it again") from error
    except (ImportError, OSError) as error:  # its libraries are missing, or older than its Python part
        raise DeviceError(f"{MODULES[runtime]} is installed and cannot be loaded ({error}); install its libraries again") from error
    if runtime == "tensorrt" and int(str(module.__version__).partition(".")[0]) < VERSION_MIN:
        raise DeviceError(f"TensorRT {module.__version__} is installed; {VERSION_MIN} or later is needed")
    return module


def _import(runtime: str) -> ModuleType:
    if runtime == "rtx":
        import tensorrt_rtx

        return tensorrt_rtx
    import tensorrt

    return tensorrt


class TensorRtSession:
    """One engine on one GPU, with a stream of its own. Not thread-safe: one thread at a time."""

    def __init__(self, engine: bytes, name: str, runtime: str, trt: ModuleType, cuda: Any, compiled: Path | None = None) -> None:
        """``trt``: from ``import_runtime``. ``cuda``: the module ``cuda.bindings.runtime``, or what stands in for it.

        ``compiled``: file for the kernels that RTX compiles on this GPU at the first run, so that the next start finds them.
        Raises ``DeviceError`` when the GPU or its driver refuses, ``ModelError`` for an engine that this runtime does not take.
        """
        self._name = name
        self._cuda = CudaCalls(cuda)
        self._buffers: dict[str, tuple[int, int]] = {}  # tensor → device address, bytes
        self._compiled = compiled
        self._said: list[str] = []
        self._trt_runtime = trt.Runtime(error_collector(trt, self._said))
        self._engine = self._trt_runtime.deserialize_cuda_engine(engine)
        if self._engine is None:
            why = self._reason()
            what = f"the engine of {name} does not run on {runtime} {trt.__version__} here ({why})"
            raise _refused(why, what, ModelError, "build it again")
        self._cached: Any = None
        self._context = self._new_context(trt, runtime)
        if self._context is None:
            why = self._reason()
            raise _refused(why, f"{runtime} cannot run {name} here ({why})", DeviceError, "it may lack GPU memory")
        self._taken = self._cuda.budget.take(len(engine) + int(self._engine.device_memory_size_v2), name)
        self._stream = self._cuda.new_stream()
        specs = [_spec(trt, self._engine, place) for place in range(self._engine.num_io_tensors)]
        self.inputs = tuple(spec for spec, is_input in specs if is_input)
        self.outputs = tuple(spec for spec, is_input in specs if not is_input)
        self.runtime = f"{runtime}:{trt.__version__}"

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``Session.run``. Blocks until the results are in host memory."""
        if self._context is None:
            raise ModelError(f"the session of {self._name} is closed; open it again")
        arrays = self._checked(feeds)
        self._cuda.mean_this_gpu()
        for name, array in arrays.items():
            if not self._context.set_input_shape(name, tuple(array.shape)):
                raise self._unfit(feeds)
        for name, array in arrays.items():
            self._cuda.upload(self._bind(name, array.nbytes), array, self._stream)
        results = {spec.name: self._result(spec) for spec in self.outputs}
        if not self._context.execute_async_v3(self._stream):
            why = self._reason()
            raise _refused(why, f"the GPU refused to run {self._name} ({why})", DeviceError, "see `ffrt doctor`")
        for name, result in results.items():
            self._cuda.download(result, self._buffers[name][0], self._stream)
        self._cuda.wait(self._stream)  # ``arrays`` must live until here: their memory is being read
        return results

    def works_in(self, memory: str) -> bool:
        """See ``engines.session.RunsInPlace``."""
        return memory == CUDA

    def run_into(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        """See ``engines.session.RunsInPlace``: the engine reads and writes where the arrays lie, on the stream that they name."""
        if self._context is None:
            raise ModelError(f"the session of {self._name} is closed; open it again")
        given, wanted = fitting(self._name, self.inputs, self.outputs, feeds, results)
        self._cuda.mean_this_gpu()
        for name, place in given.items():
            if not self._context.set_input_shape(name, place.shape):
                raise self._unfit(given)
            self._set_address(name, place.address)
        for spec in self.outputs:
            self._bind_output(spec, wanted.get(spec.name))
        asked = next((place.stream for place in given.values() if place.stream is not None), None)
        if not self._context.execute_async_v3(self._stream if asked is None else asked):
            raise DeviceError(f"the GPU refused to run {self._name} ({self._reason()})")
        if asked is None:
            self._cuda.wait(self._stream)

    def warm_up(self) -> None:
        warm_up(self)

    @property
    def memory_bytes(self) -> int | None:
        """Device memory of intermediate results and of inputs and outputs; the weights' is not told."""
        if self._engine is None:
            return 0
        return int(self._engine.device_memory_size_v2) + sum(nbytes for _, nbytes in self._buffers.values())

    def close(self) -> None:
        if self._engine is None:
            return
        self._keep_compiled()
        for address, _ in self._buffers.values():
            self._cuda.free(address)
        self._buffers.clear()
        self._cuda.end_stream(self._stream)
        self._taken.give_back()
        # In this order: a context outlives neither its engine nor the runtime.
        self._context = self._cached = None
        self._engine = None
        self._trt_runtime = None

    def _checked(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Contiguous arrays of every input. Raises ``ModelError``: addresses are all that the GPU gets, so nothing else would notice."""
        specs = {spec.name: spec for spec in self.inputs}
        fits = set(feeds) == set(specs) and all(
            value.dtype == specs[name].dtype
            and value.ndim == len(specs[name].shape)
            and all(not isinstance(want, int) or want == have for want, have in zip(specs[name].shape, value.shape, strict=True))
            for name, value in feeds.items()
        )
        if not fits:
            raise self._unfit(feeds)
        return {name: np.ascontiguousarray(value) for name, value in feeds.items()}

    def _bind(self, name: str, nbytes: int) -> int:
        """The device address of a tensor, with room for ``nbytes``."""
        address, room = self._buffers.get(name, (0, 0))
        if room < nbytes:
            if address:
                self._cuda.free(self._buffers.pop(name)[0])
            address = self._cuda.allocate(nbytes)
            self._buffers[name] = (address, nbytes)
        self._set_address(name, address)
        return address

    def _set_address(self, name: str, address: int) -> None:
        if not self._context.set_tensor_address(name, address):
            raise DeviceError(f"{self._name} does not take the memory at {address:#x} for {name} ({self._reason()})")

    def _bind_output(self, spec: TensorSpec, place: Place | None) -> None:
        """Where it is wanted, or where nobody looks: the engine writes all of its outputs."""
        shape = self._shape_of(spec)
        if place is None:
            self._bind(spec.name, max(1, math.prod(shape) * spec.dtype.itemsize))
        elif place.shape == shape:
            self._set_address(spec.name, place.address)
        else:
            raise ModelError(f"{self._name} gives {spec.name} {list(shape)} where {list(place.shape)} was expected")

    def _shape_of(self, spec: TensorSpec) -> tuple[int, ...]:
        shape = tuple(self._context.get_tensor_shape(spec.name))
        if any(size < 0 for size in shape):
            raise ModelError(f"the size of {spec.name} of {self._name} depends on what is computed; run this model on ort")
        return shape

    def _result(self, spec: TensorSpec) -> np.ndarray:
        result = np.empty(self._shape_of(spec), spec.dtype)
        self._bind(spec.name, max(1, result.nbytes))
        return result

    def _new_context(self, trt: ModuleType, runtime: str) -> Any:
        if runtime != "rtx":
            return self._engine.create_execution_context()
        config = self._engine.create_runtime_config()  # rtx only
        self._cached = config.create_runtime_cache()  # rtx only
        if self._compiled is not None:
            with suppress(OSError):  # not there yet; what is there and does not fit is refused by the runtime itself
                self._cached.deserialize(self._compiled.read_bytes())  # rtx only
        config.set_runtime_cache(self._cached)  # rtx only
        return self._engine.create_execution_context(config)  # rtx only

    def _keep_compiled(self) -> None:
        if self._cached is None or self._compiled is None:
            return
        compiled = bytes(self._cached.serialize())
        with suppress(OSError):  # a folder that is full or read-only costs time at the next start, and nothing else
            write_whole(self._compiled, lambda file: file.write(compiled))

    def _unfit(self, feeds: Mapping[str, np.ndarray] | Mapping[str, Place]) -> ModelError:
        given = ", ".join(f"{name} {value.dtype}[{', '.join(map(str, value.shape))}]" for name, value in feeds.items()) or "nothing"
        taken = ", ".join(f"{spec.name} {spec.dtype}[{', '.join(map(str, spec.shape))}]" for spec in self.inputs)
        return ModelError(f"the engine of {self._name} was given {given}; it takes {taken} {self._reason(' (', ')')}".rstrip())

    def _reason(self, before: str = "", after: str = "") -> str:
        """The runtime's own last words."""
        text = f"{before}{self._said[-1]}{after}" if self._said else ("" if before else "it gave no reason")
        self._said.clear()
        return text


def _refused(why: str, what: str, kind: type[EngineError], advice: str) -> EngineError:
    """``why``: the runtime's own words."""
    if says_none_is_left(why):
        return DeviceMemoryError(f"{what}; close other programs that use the GPU, or choose a smaller model")
    return kind(f"{what}; {advice}")


def problem(runtime: str) -> str:
    """Why ``runtime`` cannot run here; empty where it can. Names the first thing that is missing."""
    if importlib.util.find_spec(MODULES[runtime]) is None:
        return PACKAGES[runtime]
    if importlib.util.find_spec("cuda") is None:
        return "the package cuda-python is not installed; run `pip install 'ffrt[gpu]'`"
    count, reason = find_gpus()
    return "" if count else f"no NVIDIA GPU and driver were found ({reason}); install the driver, or choose another runtime"


def gpu_target() -> str:
    """``sm_89`` and the like of the GPU that this thread means. Raises ``DeviceError`` without one."""
    return CudaCalls(cuda_runtime()).target()


def tied_driver(runtime: str) -> str:
    """For an engine's key: driver and GPU that ``runtime`` ties engines to; empty for ``rtx``. Raises ``DeviceError`` without a GPU."""
    if runtime == "rtx":
        return ""
    why = problem(runtime)
    if why:
        raise DeviceError(f"{runtime} builds on the GPU that is to run the engine: {why}")
    cuda = cuda_runtime()
    error, version = cuda.cudaDriverGetVersion()
    return f"{gpu_target()} driver {version if int(error) == 0 else 'unknown'}"


def find_engine(path: Path, runtime: str, version: str, target: str) -> tuple[Entry | None, str]:
    """The engine to take for a model on a GPU, and, where there is none, why not: a sentence that says what to run.

    Proven lower precisions come first, since that is what they were built for.
    """
    from engines.build.cache import EngineCache
    from engines.store.shelf import sha256_of

    sha256 = sha256_of(path)
    cache = EngineCache()
    of_model = [entry for entry in cache.entries() if entry.key.model_sha256 == sha256 and entry.key.runtime == runtime]
    fitting = [entry for entry in of_model if entry.key.runtime_version == version and _runs_on(entry, target)]
    proven = [entry for entry in fitting if _is_proven(entry)]
    for entry in sorted(proven, key=lambda entry: ("fp8", "int8", "fp16", "fp32").index(entry.key.precision)):
        whole = cache.find(entry.key)
        if whole is not None:
            return whole, ""
    named = f"{path.name} with {runtime} {version} for {target}"
    refused = [entry for entry in fitting if "parity" in entry.facts]
    if refused:
        return None, f"the engine of {named} at {refused[0].key.precision} differs too much from fp32; build it at a higher precision"
    if fitting:
        return None, f"the engine of {named} is not proven yet; run `ffrt engines verify-parity {path} --runtime {runtime}` on this machine"
    return None, f"no engine of {named} is built; run `ffrt engines build {path} --runtime {runtime} --for {target}`"


def open_engine(entry: Entry, runtime: str) -> TensorRtSession:
    """A built engine, proven or not: for the gate. Raises ``DeviceError`` where ``runtime`` cannot run."""
    why = problem(runtime)
    if why:
        raise DeviceError(f"the runtime {runtime} was asked for: {why}")
    from engines.build.cache import COMPILED

    compiled = entry.path.with_suffix(COMPILED) if runtime == "rtx" else None
    name = str(entry.facts.get("model", entry.path.name))
    try:
        engine = entry.path.read_bytes()
    except OSError as error:  # removed since it was found
        raise ModelError(f"the engine of {name}, {entry.path}, is gone ({error.strerror}); build it again") from error
    return TensorRtSession(engine, name, runtime, import_runtime(runtime), cuda_runtime(), compiled)


def _runs_on(entry: Entry, target: str) -> bool:
    return target in (entry.key.targets or PORTABLE)


def _is_proven(entry: Entry) -> bool:
    parity = entry.facts.get("parity")
    return entry.key.precision == "fp32" or (isinstance(parity, Mapping) and parity.get("passed") is True)


def _opener(runtime: str) -> Callable[..., TensorRtSession]:
    # threads are of the processor, which does nothing here; sizes are the engine's own
    def open_model(path: Path, *, threads: int = 1, sizes: Sizes | None = None) -> TensorRtSession:
        why = problem(runtime)
        if why:
            raise DeviceError(f"the runtime {runtime} was asked for: {why}")
        if not path.is_file():
            raise ModelError(f"the model {path} does not exist; give the path of an ONNX file")
        entry, why = find_engine(path, runtime, str(import_runtime(runtime).__version__), gpu_target())
        if entry is None:
            raise ModelError(why)
        return open_engine(entry, runtime)

    return open_model


def error_collector(trt: ModuleType, said: list[str]) -> Any:
    """Keeps errors for our own message; TensorRT would print them."""

    class Collector(trt.ILogger):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()

        def log(self, severity: Any, message: str) -> None:
            if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                said.append(" ".join(message.split()))

    return Collector()


def _spec(trt: ModuleType, engine: Any, place: int) -> tuple[TensorSpec, bool]:
    """An input or output, and whether it is an input."""
    name = engine.get_tensor_name(place)
    shape = tuple(f"{name}_{k}" if size < 0 else int(size) for k, size in enumerate(engine.get_tensor_shape(name)))
    is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
    return TensorSpec(name, shape, np.dtype(trt.nptype(engine.get_tensor_dtype(name)))), is_input


def _unfit(runtime: str, path: Path) -> str:
    try:
        return find_engine(path, runtime, str(import_runtime(runtime).__version__), gpu_target())[1]
    except EngineError as error:
        return str(error)


def _prepare(runtime: str, model: ModelFile, shapes: Shapes, report: Callable[[Progress], None], cancelled: Callable[[], bool]) -> None:
    from engines.build.service import prepare_engine

    prepare_engine(model, runtime, gpu_target(), shapes, report, cancelled)


for _name in MODULES:
    register_runtime(_name, Runtime(_opener(_name), partial(problem, _name), partial(_unfit, _name), partial(_prepare, _name)))

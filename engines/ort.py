"""ONNX Runtime: on the processor, where it is everywhere, and on the devices its other packages bring."""

from __future__ import annotations

import errno
import hashlib
import logging
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnxruntime as ort
import psutil

from engines.device.budget import Taken, budget_meant, says_none_is_left
from engines.device.cuda_probe import current_gpu
from engines.device.cuda_runtime import CudaCalls, SideStream, cuda_runtime
from engines.device.memory import CUDA, HOST, Place
from engines.errors import CacheError, DeviceError, DeviceMemoryError, ModelError
from engines.session import Runtime, Sizes, TensorSpec, fitting, register_runtime, warm_up

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

CPU, ON_CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"

DEVICES = {CPU: (HOST, "cpu"), ON_CUDA: (CUDA, "cuda")}
"""Providers that work where arrays lie: in which memory, and ONNX Runtime's name of it."""

NOT_WAITED_FOR = "disable_synchronize_execution_providers"
"""Entry of a run: it returns when its work is given. From onnxruntime_run_options_config_keys.h."""

CACHED_MIN = 16_000_000
"""Bytes of a model from which its optimised graph is kept. Inswapper's size, 554 MB, opens in 4.4 s instead of 6.9, two thirds
of a second of it for hashes (first time: 11.3, and as much disk again); the embedded ones, 1.4 MB at most, would win 20 ms each and lose
as much in finding them."""

CACHED_MAX = 1_900_000_000
"""ONNX files end at 2^31 bytes, and the optimised graph may be a little larger than the model."""

log = logging.getLogger(__name__)


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
    "ort-cuda": Provider(ON_CUDA, "onnxruntime-gpu", "an NVIDIA GPU, its driver, CUDA 13 and cuDNN 9"),
    "ort-directml": Provider("DmlExecutionProvider", "onnxruntime-directml", "Windows and a DirectX 12 GPU"),
    "ort-coreml": Provider("CoreMLExecutionProvider", "onnxruntime", "macOS"),
    "ort-openvino": Provider("OpenVINOExecutionProvider", "onnxruntime-openvino", "an Intel processor or GPU"),
}
"""Runtime → provider. Needs: from the page "Execution providers" of ONNX Runtime's documentation."""


class OrtSession:
    """One model on one provider. Not thread-safe: one thread at a time."""

    def __init__(self, path: Path, *, threads: int = 1, provider: str = CPU, sizes: Sizes = MappingProxyType({})) -> None:
        """``threads``: how many the model may use on the processor. ``sizes``: as ``engines.session.open_session`` takes them; a dimension
        that the file does not have is no fault.

        Raises ``ModelError`` for a file that is missing or no model, ``DeviceError`` when ONNX Runtime does not use ``provider``,
        ``DeviceMemoryError`` where that has no memory left.
        """
        if not path.is_file():
            raise ModelError(f"the model {path} does not exist; give the path of an ONNX file")
        size, before = path.stat().st_size, _resident_bytes()
        with ExitStack() as undo:
            taken = budget_meant().take(size if provider == ON_CUDA else 0, path.name)
            undo.callback(taken.give_back)
            side = _side_stream() if provider == ON_CUDA else None
            if side is not None:
                undo.callback(side.close)
            session = _open_cached(path, threads) if provider == CPU and not sizes and _is_worth_caching(path) else None
            session = session or _open(_given(path), str(path), _options(threads, sizes=sizes), provider, side)
            self._take(session, path.name, provider, max(size, _resident_bytes() - before), taken, side)
            undo.pop_all()

    @classmethod
    def from_bytes(cls, model: bytes, name: str, *, threads: int = 1) -> OrtSession:
        """A model in memory, on the processor. ``name``: for messages."""
        session = cls.__new__(cls)
        session._take(_open(model, name, _options(threads), CPU), name, CPU, len(model), budget_meant().take(0, name))
        return session

    def _take(
        self,
        session: ort.InferenceSession,
        name: str,
        provider: str,
        memory_bytes: int,
        taken: Taken,
        side: SideStream | None = None,
    ) -> None:
        used = session.get_providers()[0]
        if used != provider:  # it prints why, and would go on with the processor
            raise DeviceError(f"ONNX Runtime was asked for {provider} and took {used}; {_provider_needs(provider)}")
        self._session: ort.InferenceSession | None = session
        self.inputs = tuple(map(_spec, session.get_inputs()))
        self.outputs = tuple(map(_spec, session.get_outputs()))
        self.runtime = "ort:" + used
        self._memory_bytes = memory_bytes if provider == CPU else None
        self._taken, self._side = taken, side
        self._names = [spec.name for spec in self.outputs]
        self._name = name
        self._memory, self._device = DEVICES.get(provider, ("", ""))
        self._given_only = ort.RunOptions()
        self._given_only.add_run_config_entry(NOT_WAITED_FOR, "1")

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``Session.run``; names, element types and shapes are checked by ONNX Runtime. Raises ``DeviceMemoryError``, too."""
        if self._session is None:
            raise ModelError(f"the session of {self._name} is closed; open it again")
        try:
            results = self._session.run(self._names, dict(feeds))
        except Exception as error:  # as above
            if says_none_is_left(str(error)):
                raise self._out_of_memory(error) from error
            given = _named((name, value.dtype, value.shape) for name, value in feeds.items())
            taken = _named((spec.name, spec.dtype, spec.shape) for spec in self.inputs)
            raise ModelError(f"{self._name} was given {given}; it takes {taken}: {error}") from error
        return dict(zip(self._names, results, strict=True))

    def _out_of_memory(self, error: Exception) -> DeviceMemoryError:
        return DeviceMemoryError(f"{self._name} found no memory left on {self.runtime}: {_in_short(error)}")

    def works_in(self, memory: str) -> bool:
        """See ``engines.session.RunsInPlace``."""
        return memory == self._memory and (memory == HOST or self._side is not None)

    def run_into(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        """See ``engines.session.RunsInPlace``: inputs and outputs are bound to the arrays' addresses."""
        if self._session is None:
            raise ModelError(f"the session of {self._name} is closed; open it again")
        given, wanted = fitting(self._name, self.inputs, self.outputs, feeds, results)
        binding, number = self._session.io_binding(), self._side.gpu if self._side else 0
        for name, place in given.items():
            binding.bind_input(name, self._device, number, place.dtype.type, place.shape, place.address)
        for name, place in wanted.items():
            binding.bind_output(name, self._device, number, place.dtype.type, place.shape, place.address)
        try:
            self._run_bound(self._session, binding, given)
        except DeviceError:
            raise
        except Exception as error:  # as in run
            if says_none_is_left(str(error)):
                raise self._out_of_memory(error) from error
            raise ModelError(f"{self._name} cannot be run on what it was given: {error}") from error

    def _run_bound(self, session: ort.InferenceSession, binding: ort.IOBinding, given: Mapping[str, Place]) -> None:
        if self._side is None:
            session.run_with_iobinding(binding)
            return
        asked = next((place.stream for place in given.values() if place.stream is not None), None)
        with self._side.among(asked):
            session.run_with_iobinding(binding, self._given_only)

    def warm_up(self) -> None:
        warm_up(self)

    @property
    def memory_bytes(self) -> int | None:
        """By how much the process grew when the model was opened, and its file's size where that is more: ONNX Runtime does not say, and
        memory that was free already is not seen. None on other devices than the processor."""
        return 0 if self._session is None else self._memory_bytes

    def close(self) -> None:
        self._session = None
        self._taken.give_back()
        side, self._side = self._side, None
        if side is not None:
            side.close()


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _open(
    model: str | bytes, where: str, options: ort.SessionOptions, provider: str, side: SideStream | None = None
) -> ort.InferenceSession:
    try:
        return ort.InferenceSession(model, options, providers=[_placed(provider, side)])
    except Exception as error:  # the binding raises classes of its own, all straight from Exception
        if says_none_is_left(str(error)):
            raise DeviceMemoryError(
                f"{where} cannot be opened, for {provider} has no memory left ({_in_short(error)});"
                " close other programs that use it, or choose a smaller model"
            ) from error
        raise ModelError(f"{where} cannot be opened as an ONNX model: {error}; fetch or convert it again") from error


def _given(path: Path) -> str | bytes:
    """The path, or, where its name is not UTF-8, as on old disks, the model itself: the binding takes no such name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return path.read_bytes()
    return str(path)


def _side_stream() -> SideStream | None:
    """None where CUDA's own package is not here: ONNX Runtime works without, and takes arrays of the host alone."""
    try:
        return SideStream(CudaCalls(cuda_runtime()))
    except DeviceError as error:
        log.info("networks on ONNX Runtime take what they work on by way of the host: %s", error)
        return None


def _placed(provider: str, side: SideStream | None) -> str | tuple[str, dict[str, str]]:
    """On the GPU that the calling thread means, where there are several, on a stream of ours, and within the budget of its lane. ONNX
    Runtime takes options as text."""
    if provider != ON_CUDA:
        return provider
    left = budget_meant().left_bytes
    # By itself the arena grows to twice what it had: past a limit that would have done.
    limit = {} if left is None else {"gpu_mem_limit": str(max(1, left)), "arena_extend_strategy": "kSameAsRequested"}
    stream = {} if side is None else {"user_compute_stream": str(side.handle)}
    return provider, {"device_id": str(current_gpu()), **limit, **stream}


def _in_short(error: Exception) -> str:
    """What ONNX Runtime says, without places in its sources, signatures of C++, and the machine's name."""
    text = " ".join(str(error).split())
    found = re.search(r"((CUDA|CUBLAS|CUDNN) failure|Failed to allocate|Available memory)[^;]*", text)
    return found[0].strip() if found else text


def _named(tensors: Iterable[tuple[str, np.dtype, tuple[int | str, ...]]]) -> str:
    return ", ".join(f"{name} {dtype}[{', '.join(map(str, shape))}]" for name, dtype, shape in tensors) or "nothing"


def _options(threads: int, *, is_optimised: bool = False, sizes: Sizes = MappingProxyType({})) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for name, size in sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A spinning pool takes a core from the camera, the encoders and the window, which need it more.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_DISABLE_ALL if is_optimised else levels.ORT_ENABLE_ALL
    return options


# --- large models: optimised once, and opened from the cache of engines afterwards


def _is_worth_caching(path: Path) -> bool:
    return CACHED_MIN <= path.stat().st_size <= CACHED_MAX


def _open_cached(path: Path, threads: int) -> ort.InferenceSession | None:
    """The model as it was optimised for this processor before, or now; None where the cache cannot serve (it is said in the log)."""
    from engines.build.cache import EngineCache
    from engines.build.key import EngineKey
    from engines.store.shelf import sha256_of

    key = EngineKey(sha256_of(path), "ort", ort.__version__, (), "fp32", (), (f"processor={_processor()}",))
    cache = EngineCache()
    made: list[ort.InferenceSession] = []

    def optimise(out: Path) -> dict[str, str]:
        options = _options(threads)
        options.optimized_model_filepath = str(out)
        try:
            made.append(_open(_given(path), str(path), options, CPU))
        except ModelError as error:
            made.append(_open(_given(path), str(path), _options(threads), CPU))  # raises where it is the model that is bad
            raise _unwritten(cache.folder, path, error) from error
        return {"model": path.name}

    try:
        entry, _ = cache.get_or_build(key, optimise, now_s=time.time)
    except CacheError as error:
        log.warning("%s is optimised anew at every start: %s", path.name, error)
        return made[0] if made else None
    if made:
        return made[0]
    try:
        return _open(str(entry.path), str(entry.path), _options(threads, is_optimised=True), CPU)
    except ModelError as error:
        log.warning("the optimised graph of %s cannot be opened and is made anew at the next start: %s", path.name, error)
        with suppress(CacheError):
            cache.remove(key.hex)
        return None


def _unwritten(folder: Path, path: Path, error: ModelError) -> CacheError:
    """What to say where a graph was optimised and could not be written; ONNX Runtime does not say why."""
    from engines.build.cache import unusable

    is_full = shutil.disk_usage(folder).free < path.stat().st_size
    return unusable(folder, OSError(errno.ENOSPC if is_full else errno.EIO, f"the optimised graph was not written: {error.__cause__}"))


def _processor() -> str:
    """What the optimised graph depends on: the layouts that this processor's vector units want."""
    facts = [platform.machine(), platform.processor()]
    with suppress(OSError):  # Linux alone has it
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        facts += [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _spec(node: ort.NodeArg) -> TensorSpec:
    return TensorSpec(node.name, tuple(node.shape), np.dtype(DTYPES.get(node.type, np.void)))


def _provider_needs(provider: str) -> str:
    found = next(entry for entry in PROVIDERS.values() if entry.name == provider)
    return f"it comes with the package {found.package} and needs {found.needs}"


def _opener(name: str) -> Callable[..., OrtSession]:
    def open_on_provider(path: Path, *, threads: int = 1, sizes: Sizes = MappingProxyType({})) -> OrtSession:
        why = _problem(name)
        if why:
            raise DeviceError(f"the runtime {name} was asked for: {why}")
        return OrtSession(path, threads=threads, provider=PROVIDERS[name].name, sizes=sizes)

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

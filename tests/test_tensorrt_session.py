"""Sessions on TensorRT's contract, over stand-ins for its module and for CUDA's that keep memory and run a function of NumPy's.

What cannot be tried without a GPU is whether TensorRT itself keeps the contract; its names are checked in test_trt_api.py.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engines.errors import DeviceError, DeviceMemoryError, ModelError
from engines.session import open_session, run_in_place, runtimes
from engines.store import embedded_model
from engines.tensorrt import TensorRtSession, import_runtime, problem


class Error(enum.IntEnum):
    cudaSuccess = 0  # noqa: N815  CUDA's own names
    cudaErrorMemoryAllocation = 2  # noqa: N815


class FakeCuda:
    """Device memory is host memory that nobody else knows; work is done when the stream is waited for."""

    cudaMemcpyKind = SimpleNamespace(cudaMemcpyHostToDevice=1, cudaMemcpyDeviceToHost=2)  # noqa: N815
    cudaStreamNonBlocking, cudaEventDisableTiming = 1, 2  # noqa: N815

    def __init__(self, room: int = 1 << 20) -> None:
        self.blocks: dict[int, ctypes.Array] = {}
        self.queue: list[Callable[[], object]] = []
        self.streams: set[int] = set()
        self.copies = 0
        self.room = room
        self.meant = 1
        self.context: FakeContext | None = None

    def cudaGetDevice(self):  # noqa: N802
        return Error.cudaSuccess, self.meant

    def cudaSetDevice(self, number):  # noqa: N802
        self.meant = number
        return (Error.cudaSuccess,)

    def cudaStreamCreateWithFlags(self, flags):  # noqa: N802
        assert flags == self.cudaStreamNonBlocking
        self.streams.add(7)
        return Error.cudaSuccess, 7

    def cudaStreamDestroy(self, stream):  # noqa: N802
        self.streams.remove(stream)
        return (Error.cudaSuccess,)

    def cudaMalloc(self, nbytes):  # noqa: N802
        if nbytes > self.room:
            return Error.cudaErrorMemoryAllocation, None
        block = ctypes.create_string_buffer(nbytes)
        self.blocks[ctypes.addressof(block)] = block
        return Error.cudaSuccess, ctypes.addressof(block)

    def cudaFree(self, address):  # noqa: N802
        del self.blocks[address]
        return (Error.cudaSuccess,)

    def cudaMemcpyAsync(self, to, source, nbytes, kind, stream):  # noqa: N802
        assert stream in self.streams
        device = to if kind == 1 else source
        assert len(self.blocks[device]) >= nbytes
        self.copies += 1
        self.queue.append(lambda: ctypes.memmove(to, source, nbytes))
        return (Error.cudaSuccess,)

    def cudaStreamSynchronize(self, stream):  # noqa: N802
        work, self.queue = self.queue, []
        for step in work:
            step()
        return (Error.cudaSuccess,)


class Mode(enum.Enum):
    INPUT = 1
    OUTPUT = 2


class FakeContext:
    def __init__(self, cuda: FakeCuda, most: int) -> None:
        self.cuda, self.most = cuda, most
        self.shape: tuple[int, ...] = ()
        self.addresses: dict[str, int] = {}
        self.given_to: list[int] = []

    def set_input_shape(self, name, shape):
        self.shape = tuple(shape)
        return shape[0] <= self.most

    def set_tensor_address(self, name, address):
        assert address in self.cuda.blocks
        self.addresses[name] = address
        return True

    def get_tensor_shape(self, name):
        return self.shape

    def execute_async_v3(self, stream):
        addresses, count = dict(self.addresses), int(np.prod(self.shape))

        def double():
            value, twice = (np.ctypeslib.as_array((ctypes.c_float * count).from_address(addresses[name])) for name in ("value", "twice"))
            twice[:] = value * 2

        self.cuda.queue.append(double)
        self.given_to.append(stream)
        return True


def fake_trt(cuda: FakeCuda, kept: list[bytes] | None = None) -> SimpleNamespace:
    """A module with one engine, ``b"doubler"``: value float32 [-1, 3] → twice, of at most 8 rows."""

    class Logger:
        class Severity(enum.Enum):
            ERROR = 1
            INTERNAL_ERROR = 2

    class Cache:
        def deserialize(self, blob):
            (kept if kept is not None else []).append(bytes(blob))
            return True

        def serialize(self):
            return b"kernels"

    class Engine:
        num_io_tensors = 2
        device_memory_size_v2 = 1000

        def get_tensor_name(self, place):
            return ("value", "twice")[place]

        def get_tensor_shape(self, name):
            return (-1, 3)

        def get_tensor_mode(self, name):
            return Mode.INPUT if name == "value" else Mode.OUTPUT

        def get_tensor_dtype(self, name):
            return np.float32

        def create_execution_context(self, config=None):
            cuda.context = FakeContext(cuda, 8)
            return cuda.context

        def create_runtime_config(self):
            return SimpleNamespace(create_runtime_cache=Cache, set_runtime_cache=lambda cache: True)

    class Runtime:
        def __init__(self, logger):
            self._logger = logger

        def deserialize_cuda_engine(self, engine):
            if engine == b"doubler":
                return Engine()
            self._logger.log(Logger.Severity.ERROR, "the magic\n tag is wrong")
            return None

    return SimpleNamespace(__version__="11.4", ILogger=Logger, Runtime=Runtime, TensorIOMode=Mode, nptype=lambda kind: kind)


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


def opened(cuda: FakeCuda, runtime: str = "tensorrt", compiled: Path | None = None) -> TensorRtSession:
    return TensorRtSession(b"doubler", "doubler.onnx", runtime, fake_trt(cuda), cuda, compiled)


@pytest.mark.parametrize("runtime", ["rtx", "tensorrt"])
def test_runs_by_names_at_any_batch(cuda: FakeCuda, runtime: str) -> None:
    session = opened(cuda, runtime)
    assert [(spec.name, spec.dtype) for spec in (*session.inputs, *session.outputs)] == [("value", np.float32), ("twice", np.float32)]
    assert isinstance(session.inputs[0].shape[0], str)
    assert session.inputs[0].shape[1] == 3
    assert session.runtime == f"{runtime}:11.4"
    for rows in (1, 5, 2, 8):
        value = np.random.default_rng(rows).random((rows, 3), np.float32)
        np.testing.assert_array_equal(session.run({"value": value})["twice"], value * 2)
        np.testing.assert_array_equal(session.run({"value": value[::-1]})["twice"], value[::-1] * 2)  # not contiguous
    session.warm_up()
    assert session.memory_bytes == 1000 + 2 * 8 * 3 * 4
    session.close()
    session.close()
    assert cuda.blocks == {}
    assert cuda.streams == set()
    with pytest.raises(ModelError, match="closed"):
        session.run({"value": np.zeros((1, 3), np.float32)})


@pytest.mark.parametrize(
    "feeds",
    [
        {"value": np.zeros((1, 4), np.float32)},
        {"value": np.zeros((1, 3), np.float64)},
        {"value": np.zeros(3, np.float32)},
        {"value": np.zeros((9, 3), np.float32)},
        {"other": np.zeros((1, 3), np.float32)},
        {},
    ],
    ids=["shape", "type", "rank", "batch", "name", "empty"],
)
def test_feeds_that_do_not_fit_are_told_what_does(cuda: FakeCuda, feeds) -> None:
    with pytest.raises(ModelError, match=r"was given .*; it takes value float32"):
        opened(cuda).run(feeds)


class OnGpu:
    """An array of the fake GPU's, as CuPy and PyCUDA tell of theirs."""

    def __init__(self, cuda: FakeCuda, shape: tuple[int, ...], stream: int | None, dtype: type = np.float32) -> None:
        self.shape, self.dtype, self.stream = shape, np.dtype(dtype), stream
        self.address = cuda.cudaMalloc(max(1, int(np.prod(shape)) * self.dtype.itemsize))[1]
        count = int(np.prod(shape)) * self.dtype.itemsize
        self.values = np.frombuffer((ctypes.c_char * count).from_address(self.address), dtype).reshape(shape)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3, "stream": self.stream}


@pytest.mark.parametrize("stream", [42, None], ids=["a lane's stream", "no stream"])
def test_arrays_of_the_gpu_are_read_and_written_where_they_lie(cuda: FakeCuda, stream: int | None) -> None:
    """No copy, no memory of its own; on the stream that the arrays name, else done on return."""
    session = opened(cuda)
    for rows in (1, 5, 5, 2):
        value, twice = (OnGpu(cuda, (rows, 3), stream) for _ in range(2))
        value.values[...], before = np.random.default_rng(rows).random((rows, 3)), len(cuda.blocks)
        run_in_place(session, {"value": value}, {"twice": twice})
        if stream is not None:
            assert cuda.queue, "it is given and not waited for"
            cuda.cudaStreamSynchronize(stream)
        np.testing.assert_array_equal(twice.values, value.values * 2)
        assert len(cuda.blocks) == before
    assert cuda.copies == 0
    assert cuda.context is not None
    assert set(cuda.context.given_to) == {7 if stream is None else stream}
    host = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(session.run({"value": host})["twice"], host * 2)  # the host's way finds its own memory again


def test_an_output_that_nobody_wants_has_a_place_all_the_same(cuda: FakeCuda) -> None:
    session = opened(cuda)
    run_in_place(session, {"value": OnGpu(cuda, (4, 3), None)}, {})
    assert cuda.context is not None
    assert cuda.context.addresses["twice"] in cuda.blocks


@pytest.mark.parametrize(
    ("value", "twice"),
    [((2, 4), (2, 4)), ((9, 3), (9, 3)), ((2, 3), (3, 3)), ((3,), (3,))],
    ids=["shape", "batch", "result", "rank"],
)
def test_arrays_of_the_gpu_that_do_not_fit_are_told(cuda: FakeCuda, value: tuple[int, ...], twice: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"was given .*value float32|gives twice \[2, 3\] where \[3, 3\] was expected"):
        run_in_place(opened(cuda), {"value": OnGpu(cuda, value, 42)}, {"twice": OnGpu(cuda, twice, 42)})
    with pytest.raises(ModelError, match="value float64"):
        run_in_place(opened(cuda), {"value": OnGpu(cuda, (1, 3), 42, np.float64)}, {"twice": OnGpu(cuda, (1, 3), 42)})


def test_a_session_runs_on_the_gpu_that_was_meant_when_it_was_opened(cuda: FakeCuda) -> None:
    cuda.meant = 3
    session = opened(cuda)
    cuda.meant = 0  # another lane's thread was here
    session.run({"value": np.zeros((1, 3), np.float32)})
    assert cuda.meant == 3


def test_a_gpu_without_memory_is_one_sentence() -> None:
    with pytest.raises(DeviceMemoryError, match=r"MB of its memory and has not as much left"):
        opened(FakeCuda(room=8)).run({"value": np.zeros((1, 3), np.float32)})


def test_an_engine_of_another_version_is_told_in_the_runtimes_words(cuda: FakeCuda) -> None:
    with pytest.raises(ModelError, match=r"m\.onnx does not run on rtx 11\.4 here \(the magic tag is wrong\); build it again"):
        TensorRtSession(b"old", "m.onnx", "rtx", fake_trt(cuda), cuda)


def test_kernels_compiled_here_are_found_at_the_next_start(cuda: FakeCuda, tmp_path: Path) -> None:
    kept: list[bytes] = []
    compiled = tmp_path / "m.compiled"
    for _ in range(2):
        TensorRtSession(b"doubler", "m.onnx", "rtx", fake_trt(cuda, kept), cuda, compiled).close()
    assert compiled.read_bytes() == b"kernels"
    assert kept == [b"kernels"]
    TensorRtSession(b"doubler", "m.onnx", "rtx", fake_trt(cuda), cuda, tmp_path / "no folder" / "m.compiled").close()


# --- on a machine that lacks something


@pytest.mark.parametrize("runtime", ["rtx", "tensorrt"])
def test_a_runtime_that_cannot_run_names_what_is_missing(runtime: str, monkeypatch) -> None:
    assert runtime in list(runtimes)
    monkeypatch.setattr("engines.tensorrt.find_gpus", lambda: (0, "cudaErrorNoDevice"))
    why = problem(runtime)
    assert why
    assert any(word in why for word in ("pip install", "cudaErrorNoDevice"))
    with pytest.raises(DeviceError, match=f"the runtime {runtime} was asked for: "):
        open_session(embedded_model("face_landmark"), runtime=runtime)


@pytest.mark.parametrize(
    ("installed", "words"), [((), "not installed; run `pip install"), (("it",), "cuda-python"), (("it", "cuda"), "no NVIDIA GPU")]
)
@pytest.mark.parametrize("runtime", ["rtx", "tensorrt"])
def test_the_first_thing_missing_is_named(runtime: str, installed: tuple[str, ...], words: str, monkeypatch) -> None:
    modules = {"tensorrt_rtx": "it", "tensorrt": "it", "cuda": "cuda"}
    monkeypatch.setattr("engines.tensorrt.importlib.util.find_spec", lambda name: object() if modules[name] in installed else None)
    monkeypatch.setattr("engines.tensorrt.find_gpus", lambda: (0, "no driver"))
    assert words in problem(runtime)


def test_a_package_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "tensorrt", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tensorrt.py").write_text("raise ImportError('libnvinfer.so.11: cannot open shared object file')\n")
    with pytest.raises(DeviceError, match=r"tensorrt is installed and cannot be loaded \(libnvinfer"):
        import_runtime("tensorrt")
    (tmp_path / "tensorrt.py").write_text("__version__ = '8.6.1'\n# another length\n")
    with pytest.raises(DeviceError, match=r"TensorRT 8\.6\.1 is installed; 10 or later"):
        import_runtime("tensorrt")
    with pytest.raises(ModelError, match="rtx or tensorrt"):
        import_runtime("openvino")

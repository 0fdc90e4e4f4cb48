"""Networks that read and write where arrays lie: ONNX Runtime by addresses, arrays of other packages by their interface."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standins.sketch import Sketch

from engines.device.cuda_runtime import CudaCalls, SideStream
from engines.device.memory import CUDA, HOST, ApartArray, Ledger, copy_into, deliver, fetched, place_of
from engines.errors import DeviceError, ModelError
from engines.ort import NOT_WAITED_FOR, OrtSession, _placed
from engines.session import TensorSpec, run_in_place


class OfPyCuda:
    """What PyCUDA's GPUArray says of itself, over memory of the host."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.memory.shape,
            "strides": self.memory.strides,
            "data": (self.memory.ctypes.data, False),
            "typestr": self.memory.dtype.str,
            "stream": None,
            "version": 3,
        }


def graph(path: Path, batch: int | str = "n") -> Path:
    """float32 [n, 3, 4, 4] → twice of it, and its first channel."""
    s = Sketch()
    twice, first = s.mul("given", 2.0), s.channel("given", 0)
    shapes: list[tuple[int | str, ...]] = [(batch, 3, 4, 4), (batch, 1, 4, 4)]
    return s.save(path, [("given", shapes[0])], [(twice, "twice", shapes[0]), (first, "first", shapes[1])])


@pytest.fixture
def session(tmp_path: Path) -> OrtSession:
    return OrtSession(graph(tmp_path / "m.onnx"))


def apart(values: np.ndarray, ledger: Ledger) -> ApartArray:
    return ApartArray(values.copy(), ledger)


# --- arrays ---


@given(st.lists(st.integers(0, 5), max_size=4), st.sampled_from(["f4", "f2", "u1", "i8"]))
def test_every_package_s_arrays_tell_where_they_lie(shape: list[int], dtype: str) -> None:
    values = np.zeros(shape, dtype)
    mine, theirs, far = place_of(values), place_of(OfPyCuda(values)), place_of(ApartArray(values, Ledger()))
    assert (mine.memory, theirs.memory, far.memory) == (HOST, CUDA, HOST)
    for place in (mine, theirs, far):
        assert (place.address, place.shape, place.dtype) == (values.ctypes.data, values.shape, values.dtype)
        assert place.nbytes == values.nbytes


@settings(max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_an_array_is_taken_if_and_only_if_its_elements_lie_together(shape: list[int], data: st.DataObject) -> None:
    values = np.zeros([2 * size for size in shape], np.float32)
    cut = values[tuple(slice(0, data.draw(st.integers(1, 2 * size)), data.draw(st.integers(1, 2))) for size in shape)]
    for array in (cut, OfPyCuda(cut)):
        if cut.flags.c_contiguous:
            assert place_of(array).shape == cut.shape
        else:
            with pytest.raises(DeviceError, match="give a contiguous copy"):
                place_of(array)


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(DeviceError, match="a list was given; arrays of NumPy, CuPy, PyCUDA or PyTorch are taken"):
        place_of([1, 2])


def test_memory_that_is_apart_is_brought_over_by_name_alone_and_counted() -> None:
    ledger = Ledger()
    far = apart(np.arange(6, dtype=np.float32).reshape(2, 3), ledger)
    for trespass in (lambda: np.sum(far), lambda: np.asarray(far), lambda: np.zeros(3) + far[0]):
        with pytest.raises(TypeError, match="as if it were the host's"):
            trespass()
    with pytest.raises(TypeError, match="use set"):
        far[...] = np.zeros((2, 3))
    assert not ledger.up
    assert not ledger.down
    half = apart(np.zeros((2, 3), np.float16), ledger)
    copy_into(far, half)
    np.testing.assert_array_equal(fetched(half), [[0, 1, 2], [3, 4, 5]])
    deliver(np.ones((1, 3), np.float32), far[1:])
    np.testing.assert_array_equal(fetched(far.reshape(6).view(np.int32)[3:]), np.ones(3, np.float32).view(np.int32))
    assert (ledger.down, ledger.up) == ([12, 12], [12])


# --- networks ---


@pytest.mark.parametrize("rows", [1, 3])
def test_onnx_runtime_reads_and_writes_where_arrays_lie(session: OrtSession, rows: int) -> None:
    """Nothing is brought over; what is not asked for is not made."""
    ledger, values = Ledger(), np.random.default_rng(rows).random((rows, 3, 4, 4), np.float32)
    for _ in range(2):
        feeds, twice, first = (
            apart(values, ledger),
            apart(np.zeros_like(values), ledger),
            apart(np.zeros((rows, 1, 4, 4), np.float32), ledger),
        )
        run_in_place(session, {"given": feeds}, {"twice": twice, "first": first})
        assert not ledger.up
        assert not ledger.down
        np.testing.assert_array_equal(twice.get(), values * 2)
        np.testing.assert_array_equal(first.get(), values[:, :1])
        ledger.down.clear()
    alone = apart(np.zeros_like(values), ledger)
    run_in_place(session, {"given": apart(values, ledger)}, {"twice": alone})
    np.testing.assert_array_equal(alone.get(), values * 2)


def test_a_part_of_an_array_is_its_own_place(session: OrtSession) -> None:
    ledger, values = Ledger(), np.random.default_rng(0).random((4, 3, 4, 4), np.float32)
    given, made = apart(values, ledger), apart(np.zeros_like(values), ledger)
    for row in (0, 2):
        run_in_place(session, {"given": given[row : row + 1]}, {"twice": made[row : row + 1]})
    expected = values * 2
    expected[[1, 3]] = 0
    np.testing.assert_array_equal(made.get(), expected)


@pytest.mark.parametrize(
    ("feeds", "results"),
    [
        ({}, {"twice": (1, 3, 4, 4)}),
        ({"given": (1, 3, 4, 5)}, {}),
        ({"given": (1, 3, 4)}, {}),
        ({"given": (1, 3, 4, 4)}, {"thrice": (1, 3, 4, 4)}),
        ({"given": (1, 3, 4, 4)}, {"given": (1, 3, 4, 4)}),
        ({"given": (1, 3, 4, 4)}, {"twice": (1, 1, 4, 4)}),
        ({"given": (1, 3, 4, 4)}, {"twice": (2, 3, 4, 4)}),
    ],
)
def test_arrays_that_do_not_fit_are_told(session: OrtSession, feeds: dict[str, Any], results: dict[str, Any]) -> None:
    ledger = Ledger()
    arrays = [{name: apart(np.zeros(shape, np.float32), ledger) for name, shape in each.items()} for each in (feeds, results)]
    with pytest.raises(ModelError, match=r"m\.onnx (was given|cannot be run on)") if feeds else pytest.raises((ModelError, StopIteration)):
        session.run_into(*arrays)


def test_a_closed_session_says_so(session: OrtSession) -> None:
    session.close()
    with pytest.raises(ModelError, match="closed"):
        session.run_into({}, {})


class HostAlone:
    """Keeps ``engines.session.Session`` and no more."""

    inputs = (TensorSpec("given", ("n", 2), np.dtype(np.float16)),)
    outputs = (TensorSpec("made", ("n", 2), np.dtype(np.float32)),)
    runtime = "test"
    memory_bytes = None

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"made": feeds["given"].astype(np.float32) + 1}

    def warm_up(self) -> None: ...

    def close(self) -> None: ...


def test_who_cannot_reach_an_array_has_it_brought_over_and_that_is_counted() -> None:
    ledger = Ledger()
    given, made = apart(np.ones((3, 2), np.float16), ledger), apart(np.zeros((3, 2), np.float32), ledger)
    run_in_place(HostAlone(), {"given": given}, {"made": made})
    assert (ledger.down, ledger.up) == ([12], [24])
    np.testing.assert_array_equal(made.get(), np.full((3, 2), 2))
    with pytest.raises(ModelError, match=r"the network gave made \[3, 2\] where made \[4, 2\] was expected"):
        run_in_place(HostAlone(), {"given": given}, {"made": apart(np.zeros((4, 2), np.float32), ledger)})


# --- ONNX Runtime on a GPU: what can be looked at without ---


class Recorded:
    """Stands for ``cuda.bindings.runtime`` and notes what it is asked for."""

    cudaStreamNonBlocking, cudaEventDisableTiming = 1, 2  # noqa: N815  CUDA's own names

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        answers = {"cudaGetDevice": (1,), "cudaStreamCreateWithFlags": (77,), "cudaEventCreateWithFlags": ("event",)}

        def call(*args: Any) -> tuple[Any, ...]:
            self.calls.append((name, *args))
            return (0, *answers.get(name, ()))

        return call


def test_a_runtime_s_own_stream_stands_between_the_lane_s_work_before_and_after() -> None:
    cuda = Recorded()
    side = SideStream(CudaCalls(cuda))
    cuda.calls.clear()
    with side.among(5):
        cuda.calls.append(("run",))
    assert cuda.calls == [
        ("cudaSetDevice", 1),
        ("cudaEventRecord", "event", 5),
        ("cudaStreamWaitEvent", 77, "event", 0),
        ("run",),
        ("cudaEventRecord", "event", 77),
        ("cudaStreamWaitEvent", 5, "event", 0),
    ]
    cuda.calls.clear()
    with side.among(None):
        pass
    assert cuda.calls == [("cudaSetDevice", 1), ("cudaStreamSynchronize", 77)], "whoever names no stream finds it done"
    side.close()
    assert [name for name, *_ in cuda.calls[-3:]] == ["cudaEventDestroy", "cudaEventDestroy", "cudaStreamDestroy"]


def test_onnx_runtime_knows_the_entry_by_which_it_does_not_wait() -> None:
    """It ignores entries that it does not know."""
    (library,) = Path(onnxruntime.__file__).parent.glob("capi/onnxruntime_pybind11_state*")
    assert NOT_WAITED_FOR.encode() in library.read_bytes()


def test_onnx_runtime_is_told_the_gpu_and_the_stream() -> None:
    side = SideStream(CudaCalls(Recorded()))
    assert _placed("CUDAExecutionProvider", side) == ("CUDAExecutionProvider", {"device_id": "0", "user_compute_stream": "77"})
    assert _placed("CUDAExecutionProvider", None) == ("CUDAExecutionProvider", {"device_id": "0"})
    assert _placed("CPUExecutionProvider", None) == "CPUExecutionProvider"

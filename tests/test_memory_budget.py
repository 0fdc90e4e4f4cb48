"""No memory left: whatever runtime says so, a lane gives up the written steps, then the line ends with a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, save
from small_line import Grey, Keeping, Painting, Scripted
from test_tensorrt_session import FakeCuda, fake_trt

from app import build
from app.settings import RunSettings, Settings
from engines import ort
from engines.batch import Batches
from engines.device.budget import MemoryBudget, budget_meant, says_none_is_left
from engines.device.cuda import CudaStream
from engines.device.host import HostDevice
from engines.device.kinds import open_device
from engines.errors import DeviceMemoryError, ModelError
from engines.face import Patch
from engines.network import Network
from engines.ort import OrtSession
from engines.parking import ParkedSession
from engines.session import TensorSpec
from engines.tensorrt import TensorRtSession
from rt import economy
from rt.audio import AudioBus
from rt.clock import MonotonicClock
from rt.economy import MEMORY_STEPS, Economy
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look
from rt.tracking import Tracking

MB, CUDA = 1_000_000, "CUDAExecutionProvider"

CALL = (
    "std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, ERRTYPE,"
    " const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; std::conditional_t<THRW, void,"
    " onnxruntime::common::Status> = void]"
)
NODE = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node. Name:'Conv_33' Status Message:"
SOURCES, WINDOWS = "/onnxruntime_src/onnxruntime/core", "D:\\a\\_work\\1\\s\\onnxruntime\\core"

RAN_OUT = {
    "arena": f"{NODE} {SOURCES}/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool,"
    " onnxruntime::Stream*, bool, onnxruntime::WaitNotificationFn) Failed to allocate memory for requested buffer of size 134217728\n",
    "arena on windows": f"{NODE} {WINDOWS}\\framework\\bfc_arena.cc:376 onnxruntime::BFCArena::AllocateRawInternal"
    " Failed to allocate memory for requested buffer of size 13111296\n",
    "limit": "[ONNXRuntimeError] : 1 : FAIL : Available memory of 1048576 is smaller than requested bytes of 9437184",
    "cudaMalloc": f"{NODE} {SOURCES}/providers/cuda/cuda_call.cc:121 {CALL} CUDA failure 2: out of memory ; GPU=0 ;"
    f" hostname=studio ; file={SOURCES}/providers/cuda/cuda_allocator.cc ; line=47 ; expr=cudaMalloc((void**)&p, size); \n\n",
    "stream": f"[ONNXRuntimeError] : 1 : FAIL : {WINDOWS}\\providers\\cuda\\cuda_call.cc:114 onnxruntime::CudaCall"
    f" CUDA failure 2: out of memory ; GPU=0 ; hostname=DESKTOP-1 ; file={WINDOWS}\\providers\\cuda\\cuda_stream_handle.cc ; line=175 ;"
    " expr=cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);\n",
    "cublas": f"[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Exception during initialization: {CALL} CUBLAS failure 3:"
    f" CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=studio ; file={SOURCES}/providers/cuda/cuda_execution_provider.cc ; line=164 ;"
    " expr=cublasCreate(&cublas_handle_);",
    "cudnn": "CUDNN failure 4: CUDNN_STATUS_ALLOC_FAILED ; GPU=0 ; expr=cudnnCreate(&cudnn_handle_);",
}
"""What ONNX Runtime says on a GPU that is full, as its users reported it."""

OTHERWISE = (
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: value for the following indices index: 1 Got: 4",
    "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; expr=cudaStreamSynchronize(stream);",
    "CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0",
    "[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from m.onnx failed:Protobuf parsing failed.",
)

TENSORRT = (
    "1: [defaultAllocator.cpp::nvinfer1::internal::DefaultAllocator::allocate::19] Error Code 1: Cuda Runtime (out of memory)",
    "Requested amount of GPU memory (17920000000 bytes) could not be allocated. There may not be enough free memory for it to succeed.",
    "2: [executionContext.cpp::nvinfer1::rt::ExecutionContext::ExecutionContext::470] Error Code 2: OutOfMemory (no further information)",
)


@pytest.mark.parametrize("text", [*RAN_OUT.values(), *TENSORRT, "std::bad_alloc", "bad allocation"])
def test_every_runtimes_words_are_known(text: str) -> None:
    assert says_none_is_left(text)


@pytest.mark.parametrize("text", OTHERWISE)
def test_other_faults_are_not_taken_for_it(text: str) -> None:
    assert not says_none_is_left(text)


# --- each runtime, through its own session ---


class Refusing:
    """An ``onnxruntime.InferenceSession`` that says ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, names: list[str], feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        raise RuntimeError(self.text)


@pytest.fixture
def filler(tmp_path: Path) -> Path:
    """A model that makes as many zeros as it is told to."""
    count, zeros = helper.make_tensor_value_info("count", TensorProto.INT64, [1]), helper.make_tensor_value_info("zeros", 1, [None])
    graph = helper.make_graph([helper.make_node("ConstantOfShape", ["count"], ["zeros"])], "filler", [count], [zeros])
    path = tmp_path / "filler.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_onnx_runtime_itself_says_it_with_these_words(filler: Path) -> None:
    """The arena of a GPU is the same code as the processor's, which is asked for 4 TB here."""
    session = OrtSession(filler)
    with pytest.raises(
        DeviceMemoryError, match=r"^filler\.onnx found no memory left on ort:CPU\w+: Failed to allocate memory for .* 43980"
    ):
        session.run({"count": np.array([1 << 40])})
    assert session.run({"count": np.array([3])})["zeros"].shape == (3,), "and goes on with less"


@pytest.mark.parametrize("text", RAN_OUT.values(), ids=RAN_OUT)
def test_a_session_tells_want_of_memory_in_short(text: str, filler: Path) -> None:
    session = OrtSession(filler)
    session._session = Refusing(text)  # type: ignore[assignment]
    with pytest.raises(DeviceMemoryError) as caught:
        session.run({"count": np.array([3])})
    assert len(str(caught.value)) < 180
    assert not re.search("std::|studio|DESKTOP", str(caught.value))


@pytest.mark.parametrize("text", OTHERWISE[:3])
def test_a_session_tells_other_faults_as_before(text: str, filler: Path) -> None:
    session = OrtSession(filler)
    session._session = Refusing(text)  # type: ignore[assignment]
    with pytest.raises(ModelError, match="it takes count int64"):
        session.run({"count": np.array([3])})


@pytest.mark.parametrize("text", RAN_OUT.values(), ids=RAN_OUT)
def test_a_model_that_finds_no_room_when_it_is_opened_says_what_to_do(text: str, filler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **named: Any) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(ort.ort, "InferenceSession", refuse)
    budget = MemoryBudget(100 * MB, "cuda:0")
    with budget.meant(), pytest.raises(DeviceMemoryError, match="close other programs that use it, or choose a smaller model"):
        OrtSession(filler, provider=CUDA)
    assert budget.left_bytes == 100 * MB, "nothing is counted for what is not open"


@pytest.mark.parametrize("text", TENSORRT)
@pytest.mark.parametrize("place", ["engine", "context", "run"])
def test_tensorrt_is_understood_wherever_it_says_it(place: str, text: str) -> None:
    cuda = FakeCuda()
    trt = fake_trt(cuda)
    runtime = trt.Runtime

    class Full(runtime):  # type: ignore[misc, valid-type]
        def deserialize_cuda_engine(self, engine: bytes) -> Any:
            def say(*args: Any) -> Any:
                self._logger.log(trt.ILogger.Severity.ERROR, text)

            if place == "engine":
                return say()
            made = super().deserialize_cuda_engine(engine)
            if place == "context":
                made.create_execution_context = say
                return made
            create = made.create_execution_context

            def context() -> Any:
                of_run = create()
                of_run.execute_async_v3 = say
                return of_run

            made.create_execution_context = context
            return made

    trt.Runtime = Full
    with pytest.raises(DeviceMemoryError, match="close other programs that use the GPU, or choose a smaller model"):
        TensorRtSession(b"doubler", "doubler.onnx", "tensorrt", trt, cuda).run({"value": np.zeros((1, 3), np.float32)})


class CupyOutOfMemory(MemoryError):
    """As CuPy's own, which is a ``MemoryError`` too."""


def cupy_stream() -> CudaStream:
    nothing = SimpleNamespace(__enter__=lambda self: None)

    class Inside:
        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

    cupy = SimpleNamespace(
        cuda=SimpleNamespace(memory=SimpleNamespace(OutOfMemoryError=CupyOutOfMemory), using_allocator=lambda malloc: Inside())
    )
    device = SimpleNamespace(set_current=lambda: None)
    return CudaStream(device, nothing, Inside(), None, cupy, SimpleNamespace(malloc=None))


# --- what a lane does then ---


class Enhancing:
    """Asks for memory before it does nothing."""

    name = "enhancing"

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        self._act()
        return None


class Wanting(Painting):
    """Asks for memory for every face."""

    def __init__(self, act: Callable[[], None], smaller: Wanting | None = None) -> None:
        super().__init__(lambda captured_ns: act())
        self.smaller = smaller


def run_out_by_onnx_runtime(text: str, filler: Path) -> Callable[[], None]:
    session = OrtSession(filler)
    session._session = Refusing(text)  # type: ignore[assignment]
    return lambda: session.run({"count": np.array([3])}) and None


def run_out_by_tensorrt() -> None:
    session = TensorRtSession(b"doubler", "doubler.onnx", "tensorrt", fake_trt(cuda := FakeCuda(room=8)), cuda)
    try:
        session.run({"value": np.zeros((1, 3), np.float32)})
    finally:
        session.close()


def run_out_by_cupy() -> None:
    def allocate() -> None:
        raise CupyOutOfMemory("Out of memory allocating 1,000,000,000 bytes (allocated so far: 5 bytes, limit set to: 1,000 bytes).")

    cupy_stream().call(allocate)


def run_out_by_numpy() -> None:
    np.empty(1 << 55, np.uint8)


WAYS = ("onnx runtime", *RAN_OUT, "tensorrt", "cupy", "numpy")


def way_of(name: str, filler: Path) -> Callable[[], None]:
    known = {"tensorrt": run_out_by_tensorrt, "cupy": run_out_by_cupy, "numpy": run_out_by_numpy}
    if name == "onnx runtime":
        session = OrtSession(filler)
        return lambda: session.run({"count": np.array([1 << 40])}) and None
    return known.get(name) or run_out_by_onnx_runtime(RAN_OUT[name], filler)


def line_with(looks: list[Look], frames: int) -> tuple[Line, Keeping]:
    clock, metrics, sink = MonotonicClock(), Metrics(), Keeping()
    tracking = Tracking(Scripted(faces=3), metrics, clock)
    lanes = [Lane(HostDevice(), clock) for _ in looks]
    return Line(Grey(frames, clock), tracking, lanes, [sink], looks, clock, metrics, AudioBus()), sink


@pytest.mark.parametrize("way", WAYS)
def test_a_lane_takes_the_written_steps_one_for_each_time_and_goes_on(way: str, filler: Path) -> None:
    """Enhancer, swap size, faces: until the fourth try finds room."""
    run_out, tries = way_of(way, filler), iter(range(1000))

    def want() -> None:
        if next(tries) < 3:
            run_out()

    line, sink = line_with([Look(Wanting(want, Wanting(want)), "white", faces=3, enhancer=Enhancing(lambda: None))], 10)
    line.start()
    assert line.wait(60)
    line.close()
    line.join()
    assert line.error is None
    assert [change.step for change in line.economy.changes] == list(MEMORY_STEPS)
    assert sink.seqs == list(range(3, 10)), "the three on which it ran out are not shown half done"
    worn = line.economy.look()
    assert (worn.enhancer, worn.faces) == (None, 1)
    assert line.lanes.facts()["host"]["failures"] == 0


@pytest.mark.parametrize("way", WAYS)
def test_with_nothing_left_to_give_up_the_line_ends_with_a_sentence(way: str, filler: Path) -> None:
    line, sink = line_with([Look(Wanting(way_of(way, filler)), "white")], 10)
    line.start()
    assert line.wait(60)
    line.close()
    line.join()
    assert isinstance(line.error, DeviceMemoryError)
    assert str(line.error).startswith("host has no memory left and nothing more of the look to give up (")
    assert str(line.error).endswith("close other programs that use it, or choose a smaller model or picture")
    assert not sink.seqs


def test_an_enhancer_alone_that_finds_no_room_is_all_that_goes(filler: Path) -> None:
    look = Look(Painting(), "white", faces=3, enhancer=Enhancing(way_of("arena", filler)))
    line, sink = line_with([look], 6)
    line.start()
    assert line.wait(60)
    line.close()
    line.join()
    assert [change.step for change in line.economy.changes] == ["enhancer off"]
    assert len(sink.seqs) == 5
    assert line.economy.look().faces == 3


class Parking(Enhancing):
    """Says when its weights leave the device and come back; there is room for them after ``refusals`` tries."""

    def __init__(self, act: Callable[[], None], refusals: int = 0) -> None:
        super().__init__(act)
        self.told: list[str] = []
        self.refusals = refusals

    def park(self) -> None:
        self.told.append("parked")

    def unpark(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise DeviceMemoryError("still none")
        self.told.append("back")

    def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
        assert self.told[-1:] != ["parked"], "it is not asked while its weights are away"
        return super().enhance(image, points)


def test_an_enhancer_that_is_given_up_frees_its_weights_and_comes_back_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried again after a while, here at once: in vain twice, and then it stays."""
    monkeypatch.setattr(economy, "_Retry", partial(economy._Retry, pause_ns=0))
    tries = iter(range(1000))

    def want() -> None:
        if next(tries) < 1:
            raise DeviceMemoryError("12 MB were asked for")

    enhancer = Parking(want, refusals=2)
    line, sink = line_with([Look(Painting(), "white", enhancer=enhancer)], 8)
    line.start()
    assert line.wait(60)
    line.close()
    line.join()
    assert line.error is None
    assert [change.given_up for change in line.economy.changes] == [True, False, True, False, True, False]
    assert enhancer.told == ["parked", "parked", "parked", "back"]
    assert sink.seqs == list(range(3, 8)), "a try that is in vain costs a frame"
    assert line.economy.look().enhancer is enhancer


def test_an_enhancer_that_lanes_share_stays_where_it_is() -> None:
    enhancer = Parking(lambda: None)
    shared = Economy([Look(Painting(), "white", enhancer=enhancer)], lanes=2)
    shared.spare_memory("none left", 0, 1)
    assert shared.look(1).enhancer is None
    assert not shared.sets_aside(1, enhancer)
    own = Economy([Look(Painting(), "white", enhancer=enhancer)])
    assert not own.sets_aside(0, enhancer), "it is in force"
    own.spare_memory("none left", 0)
    assert own.sets_aside(0, enhancer)


def test_memory_is_tried_again_less_and_less_often() -> None:
    s, own = 1_000_000_000, Economy([Look(Painting(), "white", faces=3, enhancer=Enhancing(lambda: None))])
    assert own.retry_memory(0) is None
    own.spare_memory("none left", 0)
    pauses = []
    for _ in range(7):
        pause = next(pause for pause in range(2000) if own.retry_memory(pause * s))
        assert own.look().enhancer is not None
        assert own.retry_memory(9000 * s) is None, "nothing is given up"
        pauses.append(pause)
        own.spare_memory("none left", 0)
    assert pauses == [30, 60, 120, 240, 480, 960, 960]
    own.wear([Look(Painting(), "white", faces=3)])
    assert own.retry_memory(9000 * s) is None


def test_a_parked_session_frees_its_memory_and_is_the_same_when_it_is_back() -> None:
    cuda, budget, value = FakeCuda(), MemoryBudget(2000, "cuda:0"), {"value": np.ones((2, 3), np.float32)}

    def opened() -> TensorRtSession:
        return TensorRtSession(b"doubler", "doubler.onnx", "tensorrt", fake_trt(cuda), cuda)

    with budget.meant():
        session = ParkedSession(opened)
        before = session.run(value)
        session.park()
        session.park()
        assert (budget.left_bytes, session.memory_bytes, cuda.blocks) == (2000, 0, {})
        with pytest.raises(ModelError, match="put aside to make room"):
            session.run(value)
        taken = budget.take(1500, "others")
        with pytest.raises(DeviceMemoryError, match="are left"):
            session.unpark()
        taken.give_back()
        session.unpark()
        np.testing.assert_array_equal(next(iter(session.run(value).values())), next(iter(before.values())))
        session.close()
        assert budget.left_bytes == 2000


def test_a_restorer_parks_its_network(filler: Path) -> None:
    session = ParkedSession(lambda: OrtSession(filler))
    network = SimpleNamespace(_session=session)
    Network.park(network)  # type: ignore[arg-type]
    assert session.memory_bytes == 0
    Network.unpark(network)  # type: ignore[arg-type]
    assert session.run({"count": np.array([3])})["zeros"].tolist() == [0, 0, 0]


def test_several_faces_that_find_no_room_at_once_go_one_by_one() -> None:
    asked: list[int] = []

    def ask(which: slice) -> list[np.ndarray]:
        asked.append(which.stop - which.start)
        if which.stop - which.start > 1:
            raise DeviceMemoryError("no room for so many")
        return [np.zeros((1, 2))]

    several = TensorSpec("picture", ("N", 3, 4, 4), np.dtype(np.float32))
    batches = Batches("m", several, (TensorSpec("out", ("N", 2), np.dtype(np.float32)),))
    for _ in range(2):
        assert batches.run(3, ask)[0].shape == (3, 2)
    assert asked == [3, 1, 1, 1, 1, 1, 1]


# --- a lane's budget ---


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=20), st.integers(0, 100))
def test_a_budget_is_never_exceeded_and_what_is_given_back_is_there_again(plan: list[tuple[int, bool]], limit: int) -> None:
    """Each: what is asked for, and whether it is given back at once. A limit of 0 is none."""
    budget, held = MemoryBudget(limit, "cuda:0"), 0
    for nbytes, returns in plan:
        if limit and held + nbytes > limit:
            with pytest.raises(DeviceMemoryError, match="--gpu-memory"):
                budget.take(nbytes, "m")
        else:
            taken = budget.take(nbytes, "m")
            if returns:
                taken.give_back()
                taken.give_back()
            else:
                held += nbytes
        assert budget.left_bytes == (limit - held if limit else None)


def test_a_model_counts_for_the_lane_it_was_opened_for_until_it_is_closed() -> None:
    cuda, budget = FakeCuda(), MemoryBudget(2000, "cuda:0")
    with budget.meant():
        session = TensorRtSession(b"doubler", "doubler.onnx", "tensorrt", fake_trt(cuda), cuda)
        with pytest.raises(DeviceMemoryError, match=r"doubler\.onnx needs 0\.0 MB, and of the 0 MB that cuda:0 may take 0\.0 MB are left"):
            TensorRtSession(b"doubler", "doubler.onnx", "tensorrt", fake_trt(cuda), cuda)
    assert budget.left_bytes == 2000 - 1000 - len(b"doubler")
    session.run({"value": np.zeros((2, 3), np.float32)})
    assert budget.left_bytes == 2000 - 1000 - len(b"doubler") - 2 * 2 * 3 * 4
    session.close()
    session.close()
    assert budget.left_bytes == 2000


def test_onnx_runtime_is_told_what_the_lane_may_take(filler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def opened(model: str, options: Any, providers: list[Any]) -> Any:
        told.extend(providers)
        return SimpleNamespace(get_providers=lambda: [CUDA], get_inputs=list, get_outputs=list)

    monkeypatch.setattr(ort.ort, "InferenceSession", opened)
    budget, size = MemoryBudget(3 * MB, "cuda:0"), filler.stat().st_size
    with budget.meant():
        session = OrtSession(filler, provider=CUDA)
    OrtSession(filler, provider=CUDA).close()
    (limited, options), (unlimited, others) = told
    assert limited == unlimited == CUDA
    assert {name: str(options[name]) for name in options if name not in others} == {
        "gpu_mem_limit": str(3 * MB - size),
        "arena_extend_strategy": "kSameAsRequested",
    }
    assert budget.left_bytes == 3 * MB - size
    session.close()
    assert budget.left_bytes == 3 * MB


def test_other_threads_and_other_lanes_have_their_own() -> None:
    one, two = MemoryBudget(10, "cuda:0"), MemoryBudget(20, "cuda:1")
    with one.meant():
        with two.meant():
            assert budget_meant() is two
        assert budget_meant() is one
    assert budget_meant().left_bytes is None


def test_a_device_is_opened_with_its_budget() -> None:
    device = open_device("kernels", 5 * MB)
    kept = device.mirror(np.zeros((1000, 1000, 3), np.uint8))
    with pytest.raises(DeviceMemoryError, match=r"a picture needs 3\.0 MB, and of the 5 MB that kernels may take 2\.0 MB are left"):
        device.mirror(np.zeros((1000, 1000, 3), np.uint8))
    del kept
    device.mirror(np.zeros((1000, 1000, 3), np.uint8))


@pytest.mark.parametrize(("devices", "is_said"), [(("host",), True), (("host", "kernels"), False)])
def test_a_budget_without_a_gpu_is_said_to_do_nothing(devices: tuple[str, ...], is_said: bool) -> None:
    settings = Settings(run=RunSettings(devices=devices, gpu_memory_mb=100))
    assert ("--gpu-memory changes nothing: none of --device is a GPU" in build.remarks(settings, Look())) == is_said

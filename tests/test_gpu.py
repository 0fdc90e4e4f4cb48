"""What only a GPU can show. `make test-gpu` runs it; nothing here has run on one yet (docs/gpu-results.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER, ROOT
from kit import FolderKit, model_file
from standins import full_size, identity
from standins.gfpgan import gfpgan
from standins.shelf import OTHERS, fill
from standins.swappers import Contract, swapper
from standins.xseg import xseg
from test_compose_device import by_the_processor, photo_of, scene

from engines.device.contract import Step, Stream
from engines.device.cuda import CudaDevice
from engines.device.cuda_networks import CudaNetworks
from engines.device.cuda_probe import current_gpu, find_gpus
from engines.device.graphs import WARM_AFTER, Graphs
from engines.errors import DeviceError, DeviceMemoryError
from engines.family import Kind, ModelFile, families
from engines.session import RunsInPlace, Session, Shapes, open_session, run_in_place, runtimes
from engines.tensorrt import gpu_target, import_runtime
from rt.clock import MonotonicClock
from rt.compose.device import DeviceCompositor
from rt.frame import Frame
from rt.lane import Lane
from rt.options import Blending, Look, OnLost
from rt.ring import SlotRing

pytestmark = pytest.mark.gpu

SIDE = 512


def pictures(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(2)
    return [random.integers(0, 256, (SIDE, SIDE, 3), np.uint8) for _ in range(count)]


def half(image: Any) -> None:
    image //= 2


def test_a_lane_s_way_up_and_down_keeps_every_byte_and_is_timed_by_events() -> None:
    lane = Lane(CudaDevice(0), MonotonicClock())
    ring = SlotRing(3, SIDE, SIDE, lane.slot_memory)
    for number, picture in enumerate(pictures(12)):
        slot = ring.acquire()
        assert slot is not None
        slot.pixels[...] = picture
        lane.process(frame := Frame(slot.pixels, number, number, slot=slot), Look())
        np.testing.assert_array_equal(slot.pixels, picture)
        assert {"swap", "hide"} <= set(frame.marks)
        slot.release()
    lane.close()
    assert (lane.count.bytes_up, lane.count.bytes_down) == (12 * SIDE * SIDE * 3,) * 2


def test_steps_on_several_streams_keep_the_order_that_events_give_them() -> None:
    device = CudaDevice(0)
    streams = [device.stream(str(number)) for number in range(4)]
    pixels = device.pinned((SIDE, SIDE, 3))
    pixels[...] = 255
    image = device.mirror(pixels)
    streams[0].upload(pixels, image)
    expected, event = np.full_like(pixels, 255), streams[0].record()
    for number in range(40):
        stream = streams[number % 4]
        stream.wait(event)
        stream.enqueue(half, image) if number % 5 == 0 else stream.enqueue(image.__ixor__, number)
        expected = expected // 2 if number % 5 == 0 else expected ^ number
        event = stream.record()
    streams[0].wait(event)
    streams[0].download(image, pixels)
    streams[0].record().synchronize()
    np.testing.assert_array_equal(pixels, expected)
    for stream in streams:
        stream.close()


def test_a_graph_does_what_its_steps_do() -> None:
    device = CudaDevice(0)
    stream = device.stream("compute")
    pixels = device.pinned((SIDE, SIDE, 3))
    image = device.mirror(pixels)
    graphs, picture = Graphs(stream), pictures(1)[0]
    for _ in range(WARM_AFTER + 4):
        pixels[...] = picture
        stream.upload(pixels, image)
        graphs.run("half twice", [Step(half, (image,), (image,), (image,))] * 2)
        stream.download(image, pixels)
        stream.record().synchronize()
        np.testing.assert_array_equal(pixels, picture // 4)
    assert not graphs.problem
    assert graphs.replayed >= 3
    graphs.clear()
    stream.close()


def test_what_is_made_and_closed_again_leaves_no_memory_behind() -> None:
    from cuda.bindings import runtime

    def free_bytes() -> int:
        return int(runtime.cudaMemGetInfo()[1])

    def one_lane() -> None:
        device = CudaDevice(0)
        lane = Lane(device, MonotonicClock())
        ring = SlotRing(4, SIDE, SIDE, lane.slot_memory)
        slot = ring.acquire()
        assert slot is not None
        lane.process(Frame(slot.pixels, 0, 0, slot=slot), Look())
        lane.close()
        lane.open()
        lane.close()
        device.trim()

    for _ in range(3):
        one_lane()
    before = free_bytes()
    for _ in range(30):
        one_lane()
    assert before - free_bytes() < 8_000_000


def test_the_budget_of_a_pool_is_kept_and_its_end_is_no_crash() -> None:
    device = CudaDevice(0, memory_bytes=8_000_000)
    kept = [device.mirror(np.zeros((1000, 1000, 3), np.uint8)) for _ in range(2)]
    with pytest.raises(DeviceMemoryError, match="no memory left"):
        device.mirror(np.zeros((1000, 1000, 3), np.uint8))
    kept.clear()
    device.trim()
    assert device.mirror(np.zeros((1000, 1000, 3), np.uint8)).nbytes == 3_000_000


@pytest.mark.parametrize("index", range(max(1, find_gpus()[0])))
def test_a_thread_means_the_gpu_of_its_lane_while_it_opens_models(index: int) -> None:
    before = current_gpu()
    with CudaNetworks(index).current():
        assert current_gpu() == index
    assert current_gpu() == before


def ffrt(arguments: Sequence[str], environment: dict[str, str]) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-c", "from app.main import main; main()", *arguments],
        check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def engine_runtime() -> str:
    """``rtx`` where it runs on this chip and is installed, else ``tensorrt``."""
    for runtime in ("rtx", "tensorrt"):
        try:
            module = import_runtime(runtime)
        except DeviceError:
            continue
        if runtime == "tensorrt" or hasattr(module.ComputeCapability, gpu_target().upper().replace("_", "")):
            return runtime
    pytest.fail(f"neither TensorRT for RTX nor TensorRT runs on {gpu_target()} here; install one of them")


# --- networks and kernels where the picture lies ---


class GpuKit(FolderKit):
    """Opens models on the runtime that is given; their engines are built first."""

    def __init__(self, runtime: str, places: dict[str, str], **models: ModelFile) -> None:
        """``models``: what parts are opened of, on the processor."""
        super().__init__()
        self._runtime, self._places, self._plain = runtime, places, FolderKit(**models)

    def part(self, kind: Kind, names: Sequence[str]) -> Any:
        return self._plain.part(kind, names)

    def session(self, model: ModelFile, shapes: Shapes | None = None) -> Session:
        if self._runtime != "ort":
            build = ["engines", "build", str(model.path), "--runtime", self._runtime, "--json"]
            ffrt([*build, *(["--for", gpu_target()] if self._runtime == "rtx" else [])], self._places)
        return open_session(model.path, runtime=self._runtime)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """For this process and for those that it starts."""
    made = {"FFRT_MODELS": str(tmp_path / "models"), "FFRT_CACHE": str(tmp_path / "cache")}
    for name, place in made.items():
        monkeypatch.setenv(name, place)
    return made


def runtimes_here() -> list[str]:
    here = ["ort-cuda"] if not runtimes["ort-cuda"].problem() else []
    return [*here, engine_runtime()]


def test_networks_read_and_write_arrays_of_the_gpu(tmp_path: Path, places: dict[str, str]) -> None:
    """On the lane's own stream, with nothing else to order it; what comes out is what the processor computes."""
    import cupy

    path = swapper(tmp_path / "swapper.onnx", Contract(128))
    random = np.random.default_rng(1)
    target, source = random.random((1, 3, 128, 128), np.float32), random.normal(0, 1, (1, 512)).astype(np.float32)
    wanted = open_session(path).run({"target": target, "source": source})["output"]
    device = CudaDevice(0)
    for runtime in runtimes_here():
        with device.current():
            session = GpuKit(runtime, places).session(model_file(path, "simswap"))
        assert isinstance(session, RunsInPlace)
        assert session.works_in("cuda")
        stream, made = device.stream("compute"), []

        def work(session: Session = session, made: list[Any] = made) -> None:
            feeds, result = {"target": cupy.asarray(target), "source": cupy.asarray(source)}, cupy.zeros_like(target, dtype=np.float32)
            for _ in range(3):
                run_in_place(session, feeds, {"output": result})
            made += [result, result * 2, feeds]

        stream.enqueue(work)
        stream.record().synchronize()
        np.testing.assert_allclose(made[0].get(), wanted, atol=2e-3)
        np.testing.assert_allclose(made[1].get(), 2 * wanted, atol=4e-3)  # work given after it sees what it wrote
        stream.close()
        session.close()


@pytest.mark.parametrize("blending", list(Blending))
@pytest.mark.parametrize("runtime", ["ort", "engine"])
def test_a_face_is_composed_on_the_gpu_as_by_the_processor(
    tmp_path: Path, places: dict[str, str], runtime: str, blending: Blending
) -> None:
    """Swapper, mask and enhancer are networks: of the processor, which is served by way of the host, and of engines."""
    from rt.compose.kernels.cuda import CudaKernels

    files = {
        "inswapper": swapper(tmp_path / "swapper.onnx", Contract(128, emap=True)),
        "xseg": xseg(tmp_path / "xseg.onnx", batch=1),
        "gfpgan": gfpgan(tmp_path / "gfpgan.onnx"),
    }
    models = {"arcface_w600k_r50": model_file(identity.arcface(tmp_path / "arcface.onnx"), "arcface")}
    photo, frame, device = photo_of(HOPPER), scene(photo_of(ASTRONAUT)), CudaDevice(0)

    def look(kit: FolderKit) -> Look:
        model, mask, enhancer = (families[name].open(model_file(path, name), kit) for name, path in files.items())
        given = {"masks": (mask,), "enhancer": enhancer, "blending": blending, "on_lost": OnLost.BLUR}
        return Look(swapper=model, identity=model.prepare([photo]), **given)

    kit, plain = GpuKit(engine_runtime() if runtime == "engine" else "ort", places, **models), look(FolderKit(**models))
    wanted = by_the_processor(frame, plain, plain.masks)
    with device.current():
        worn, kernels = look(kit), CudaKernels()
    stream, compositor, image = device.stream("compute"), DeviceCompositor(kernels), device.mirror(frame.pixels)
    pixels = frame.pixels.copy()
    for _ in range(6):
        stream.upload(frame.pixels, image)
        with device.current():
            compositor.compose(stream, frame, image, worn)
        stream.download(image, pixels)
        stream.record().synchronize()
        off = np.abs(pixels.astype(int) - wanted)
        assert off.max() <= 6
        assert (off > 2).mean() < 1e-3
    compositor.clear()
    stream.close()


@pytest.mark.timeout(900)
def test_four_faces_at_once_take_60_percent_of_four_alone(tmp_path: Path, places: dict[str, str]) -> None:
    """A network of inswapper's size, by the device's own events; the same of launches is counted in test_networks_in_place."""
    import cupy

    path = full_size.inswapper(tmp_path / "inswapper_full.onnx", batch="n")
    device = CudaDevice(0)
    for runtime in runtimes_here():
        if runtime != "ort-cuda":
            targets = ["--for", gpu_target()] if runtime == "rtx" else []
            ffrt(["engines", "build", str(path), "--runtime", runtime, "--batch", "1..4", *targets, "--json"], places)
        with device.current():
            session = open_session(path, runtime=runtime)
            arrays = {
                count: [cupy.zeros(shape, np.float32) for shape in ((count, 3, 128, 128), (count, 512), (count, 3, 128, 128))]
                for count in (1, 4)
            }
        stream = device.stream("compute")
        taken_ms = {count: run_ms(stream, session, *of_count) for count, of_count in arrays.items()}
        stream.close()
        session.close()
        assert taken_ms[4] <= 0.6 * 4 * taken_ms[1], f"{runtime}: {taken_ms}"


def run_ms(stream: Stream, session: Session, target: Any, source: Any, output: Any, times: int = 20) -> float:
    """What a run takes the device, on average, once it is warm."""
    given = (session, {"target": target, "source": source}, {"output": output})
    for _ in range(5):
        stream.enqueue(run_in_place, *given)
    begin = stream.mark()
    for _ in range(times):
        stream.enqueue(run_in_place, *given)
    end = stream.mark()
    stream.record().synchronize()
    return end.elapsed_ms(begin) / times


@pytest.mark.timeout(900)
def test_the_line_runs_a_network_of_inswappers_size_on_the_gpu(tmp_path: Path) -> None:
    """`ffrt bench live --device cuda:0`; its numbers go into the file that FFRT_GPU_RESULTS names, for the table."""
    models = fill(tmp_path / "given", tmp_path / "models", {"identity": OTHERS["identity"]})
    network, runtime = full_size.inswapper(tmp_path / "inswapper_full.onnx"), engine_runtime()
    places = {"FFRT_MODELS": str(models), "FFRT_CACHE": str(tmp_path / "cache")}
    targets = ["--for", gpu_target()] if runtime == "rtx" else []
    ffrt(["engines", "build", str(network), "--runtime", runtime, *targets, "--json"], places)
    bench = ["bench", "live", "--device", "cuda:0", "--runtime", f"{runtime},ort", "--seconds", "20", "--json"]
    report = ffrt([*bench, "--swapper", f"inswapper:{network}", "--input", "synthetic:size=1920x1080,fps=60"], places)
    (swapper,) = (model for model in report["models"] if model["model"].startswith("inswapper_full"))
    assert swapper["runtime"].startswith(runtime), swapper["why"]
    assert report["error"] is None
    assert report["lanes"]["cuda:0"]["failures"] == 0
    assert report["sinks"]["null"]["out_of_order"] == 0
    if results := os.environ.get("FFRT_GPU_RESULTS"):
        Path(results).write_text(json.dumps(report), encoding="utf-8")

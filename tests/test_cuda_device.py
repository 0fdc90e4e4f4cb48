"""The CUDA device: its names exist in the packages that are installed, and without a GPU it says what is missing."""

from __future__ import annotations

import importlib
import inspect
import re

import numpy as np
import pytest

from engines.device.cuda import CudaDevice
from engines.device.cuda_probe import find_gpus
from engines.errors import DeviceError

NAMES = {
    "cuda.core": (
        "Device.set_current Device.create_stream StreamOptions Stream.handle Stream.record Stream.wait Stream.sync Stream.close "
        "EventOptions Stream.create_graph_builder graph.GraphBuilder.begin_building graph.GraphBuilder.end_building "
        "graph.GraphBuilder.complete graph.GraphBuilder.close graph.Graph.launch"
    ),
    "cupy": "empty ndarray.set ndarray.get cuda.MemoryPool.set_limit cuda.MemoryPool.malloc cuda.ExternalStream "
    "cuda.ExternalStream.__enter__ cuda.alloc_pinned_memory cuda.using_allocator cuda.memory.OutOfMemoryError "
    "cuda.MemoryPool.free_all_blocks",
}

OF_EVENTS_AND_GRAPHS = "Event.sync Event.is_done Event.__sub__ graph.Graph.close"
"""Of cuda.core, used through ``engines.device.threaded``."""


@pytest.mark.parametrize("package", NAMES)
def test_every_name_exists_in_the_installed_package(package: str) -> None:
    module = pytest.importorskip(package)
    source = inspect.getsource(importlib.import_module("engines.device.cuda"))
    for name in NAMES[package].split():
        found = module
        for part in name.split("."):
            assert hasattr(found, part), f"{package} has no {name}"
            found = getattr(found, part)
        assert name.rpartition(".")[2] in source or "__" in name


def test_what_is_asked_of_the_runtime_and_of_a_card_exists() -> None:
    """In ``engines.device.cuda_probe``, ``engines.device.cuda_runtime``, the tests that need a GPU, and the script of their table."""
    runtime, core = pytest.importorskip("cuda.bindings.runtime"), pytest.importorskip("cuda.core")
    for name in [
        "cudaGetDeviceCount",
        "cudaGetDevice",
        "cudaSetDevice",
        "cudaMemGetInfo",
        "cudaDriverGetVersion",
        "cudaMalloc",
        "cudaFree",
    ]:
        assert hasattr(runtime, name)
    assert runtime.cudaError_t.cudaErrorMemoryAllocation.name == "cudaErrorMemoryAllocation"
    for name in ("name", "arch"):
        assert hasattr(core.Device, name)


def test_what_sessions_ask_of_the_runtime_exists() -> None:
    runtime = pytest.importorskip("cuda.bindings.runtime")
    source = inspect.getsource(importlib.import_module("engines.device.cuda_runtime"))
    names = set(re.findall(r"_cuda\.(cuda\w+)", source))
    assert {"cudaMemcpyAsync", "cudaStreamWaitEvent", "cudaEventRecord"} <= names
    assert not [name for name in names if not hasattr(runtime, name)]
    for name in re.findall(r"names\.(\w+)", source):
        assert hasattr(runtime.cudaDeviceAttr, name)


def test_what_is_asked_of_events_and_graphs_exists() -> None:
    core = pytest.importorskip("cuda.core")
    for name in OF_EVENTS_AND_GRAPHS.split():
        found = core
        for part in name.split("."):
            found = getattr(found, part)


def test_the_options_have_the_fields_that_are_given() -> None:
    core = pytest.importorskip("cuda.core")
    assert core.EventOptions(timing_enabled=True, blocking_sync=True).timing_enabled
    assert core.StreamOptions(nonblocking=True).nonblocking


@pytest.mark.skipif(find_gpus()[0] > 0, reason="a GPU is here")
def test_without_a_gpu_the_error_names_what_is_missing() -> None:
    with pytest.raises(DeviceError, match=r"cuda:0 was asked for"):
        CudaDevice(0)


@pytest.mark.gpu
def test_a_picture_goes_up_over_and_down_again() -> None:
    device = CudaDevice(0)
    pixels = device.pinned((36, 64, 3))
    pixels[...] = np.arange(pixels.size).reshape(pixels.shape) % 251
    expected = 255 - pixels
    image = device.mirror(pixels)
    upload, compute, download = (device.stream(name) for name in ("upload", "compute", "download"))

    def invert() -> None:
        image[...] = 255 - image

    upload.upload(pixels, image)
    compute.wait(upload.record())
    compute.enqueue(invert)
    download.wait(compute.record())
    download.download(image, pixels)
    download.record().synchronize()
    for stream in (upload, compute, download):
        stream.close()
    np.testing.assert_array_equal(pixels, expected)

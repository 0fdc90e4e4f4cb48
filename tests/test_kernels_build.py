"""The kernels compile for every chip, are declared as they are written, and are launched by one interface."""

from __future__ import annotations

import importlib
import inspect
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from engines.errors import DeviceError
from rt.compose.kernels.declared import DTYPES, KERNELS, OFFERED, Kernel
from rt.compose.kernels.host import HostKernels
from rt.compose.kernels.nvrtc import CHIPS, compile_for, usage_of
from rt.compose.kernels.sources import source

FILES = sorted({kernel.file for kernel in KERNELS.values()})

REGISTERS_MAX = 128
"""With blocks of 256 threads, half of an SM's threads at least are then there to hide the memory's time: 65536 / 128 = 512 of 1024."""


@pytest.fixture(scope="module")
def nvrtc() -> None:
    """Skips where NVRTC is not here: ``cuda.bindings`` alone are its names, without the library."""
    bindings = pytest.importorskip("cuda.bindings.nvrtc", exc_type=ImportError)
    try:
        bindings.nvrtcVersion()
    except RuntimeError as failure:
        pytest.skip(f"cuda.bindings find no NVRTC: {failure}")


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("chip", [*CHIPS, "compute_75"])
@pytest.mark.parametrize("file", FILES)
def test_it_compiles_for_the_chip_and_spills_nothing(file: str, chip: str) -> None:
    mine = [kernel for kernel in KERNELS.values() if kernel.file == file]
    code, log = compile_for(file, chip)
    if chip.startswith("compute_"):
        assert all(f".entry {kernel.name}(" in code.decode() for kernel in mine)
        return
    assert code[:4] == b"\x7fELF"
    for name, usage in usage_of(mine, log).items():
        assert usage.spilled_bytes == 0, name
        assert 0 < usage.registers <= REGISTERS_MAX, name


@pytest.mark.usefixtures("nvrtc")
def test_nvrtc_refuses_what_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rt.compose.kernels.nvrtc.source", lambda _: "extern void broken(")
    with pytest.raises(DeviceError, match=r"crop.cu does not compile for sm_89"):
        compile_for("crop.cu", "sm_89")


def test_every_file_of_the_room_is_declared_and_whole() -> None:
    there = {entry.name for entry in (files("rt.compose") / "kernels").iterdir() if entry.name.endswith(".cu")}
    assert there == set(FILES)
    for file in FILES:
        assert "#include" not in source(file)


def test_plain_kernels_are_declared_with_the_types_they_are_written_with() -> None:
    """Those that macros make are compared by the host's compiler alone, which sees a cast for each declared type."""
    found = 0
    for file in FILES:
        for name, text in re.findall(r'extern "C" __global__ void (\w+)\(([^)]*)\)', source(file)):
            types = tuple(re.sub(r"const |\s*\w+$", "", word.strip()).strip() for word in text.split(","))
            written = tuple(kind + "*" if "*" in word else kind for kind, word in zip(types, text.split(","), strict=True))
            assert KERNELS[name].arguments == tuple(kind.replace("**", "*").replace(" *", "*") for kind in written), name
            found += 1
    assert found > 5


def test_every_kernel_is_launched_or_said_to_be_offered() -> None:
    """By name, or by the name of a layout."""
    room = Path(str(files("rt.compose")))
    text = "\n".join(path.read_text(encoding="utf-8") for path in room.rglob("*.py") if path.name != "declared.py")
    assert 'f"{picture.layout}_to_bgr"' in text
    launched = {name for name in KERNELS if f'"{name}"' in text} | {"nv12_to_bgr", "p010_to_bgr"}
    assert launched | OFFERED == set(KERNELS)
    assert not launched & OFFERED


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_declared_types_are_known_and_blocks_fit_every_chip(kernel: Kernel) -> None:
    assert set(kernel.arguments) <= set(DTYPES)
    assert int(np.prod(kernel.block)) <= 1024
    assert kernel.grid((1, 1, 1)) == (1, 1, 1)
    x, y, z = kernel.block
    assert kernel.grid((x + 1, y, 3 * z)) == (2, 1, 3)


def test_an_array_of_another_type_is_refused(kernels: HostKernels) -> None:
    kernel, out = KERNELS["planes_to_bgr"], np.zeros(3, np.uint8)
    with pytest.raises(DeviceError, match=r"planes_to_bgr was given an array of float64 for float\*"):
        kernels.launch(kernel, (1, 1, 1), np.zeros(3), 1, 1, 1, 0, out, 3)
    with pytest.raises(DeviceError, match=r"planes_to_bgr was given 1 arguments"):
        kernels.launch(kernel, (1, 1, 1), np.zeros(3, np.float32))


def test_nothing_is_launched_for_nothing(kernels: HostKernels) -> None:
    out = np.full(12, 7, np.uint8)
    kernels.launch(KERNELS["planes_to_bgr"], (0, 5, 1), np.zeros(12, np.float32), 2, 2, 2, 0, out, 6)
    assert (out == 7).all()


class OfPyCuda:
    """What PyCUDA's GPUArray says of itself, over memory of the host."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.dtype, self.strides = values, values.dtype, values.strides
        lies = values.__array_interface__
        self.__cuda_array_interface__ = {**lies, "strides": values.strides, "version": 3, "stream": None}


def test_arrays_of_other_packages_are_taken_where_they_lie(kernels: HostKernels) -> None:
    values = np.random.default_rng(0).random((3, 5, 5), np.float32)
    wanted, made = np.empty((5, 5, 3), np.uint8), OfPyCuda(np.full((5, 5, 3), 7, np.uint8))
    kernels.launch(KERNELS["planes_to_bgr"], (5, 5, 1), values, 5, 5, 5, 1, wanted, 15)
    kernels.launch(KERNELS["planes_to_bgr"], (5, 5, 1), OfPyCuda(values), 5, 5, 5, 1, made, 15)
    np.testing.assert_array_equal(made.values, wanted)


NAMES = (
    "RawModule RawModule.get_function asarray empty ndarray ndarray.set ndarray.view from_dlpack "
    "cuda.get_current_stream cuda.Stream.wait_event cuda.Stream.null.record cuda.Device cuda.memory.OutOfMemoryError cuda.is_available"
)


def test_every_name_of_the_gpu_form_exists_in_cupy() -> None:
    cupy = pytest.importorskip("cupy", exc_type=ImportError)
    text = inspect.getsource(importlib.import_module("rt.compose.kernels.cuda"))
    for name in NAMES.split():
        found = cupy
        for part in name.split("."):
            assert hasattr(found, part), f"cupy has no {name}"
            found = getattr(found, part)
    used = set(re.findall(r"(?:cupy|_cupy)\.([\w.]+)", text))
    assert used <= set(NAMES.split()), "a name that is used is not looked for here"


def test_the_gpu_form_needs_no_gpu_to_be_made() -> None:
    pytest.importorskip("cupy", exc_type=ImportError)
    from rt.compose.kernels.cuda import CudaKernels

    CudaKernels()

"""Kernels on a GPU, through CuPy. Not run on a GPU yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.errors import DeviceError, DeviceMemoryError
from rt.compose.kernels.contract import DLPACK_CUDA, Size, checked
from rt.compose.kernels.declared import KERNELS, Kernel
from rt.compose.kernels.nvrtc import OPTIONS
from rt.compose.kernels.sources import source
from rt.frame import Place


class CudaKernels:
    """Keeps ``rt.compose.kernels.contract.Kernels``, on the current device and its current stream, which are those of whoever calls:
    ``CudaStream`` makes its own current for the work it is given.

    A file is compiled for the card at its first use and kept by CuPy; ``warm_up`` does all of it beforehand.
    """

    def __init__(self) -> None:
        """Raises ``DeviceError`` where CuPy cannot be used."""
        try:
            import cupy
        except (ImportError, OSError, RuntimeError) as error:
            raise DeviceError(f"kernels on a GPU need CuPy, which cannot be used ({error}); run `pip install 'ffrt[gpu]'`") from error
        self._cupy = cupy
        self._modules = {
            file: cupy.RawModule(code=source(file), options=OPTIONS, backend="nvrtc")
            for file in sorted({kernel.file for kernel in KERNELS.values()})
        }
        self._functions: dict[str, Any] = {}

    def warm_up(self) -> None:
        """Compiles and loads everything: a second or two for a new card or version."""
        for kernel in KERNELS.values():
            self._function(kernel)

    @property
    def place(self) -> Place:
        return DLPACK_CUDA, int(self._cupy.cuda.Device().id)

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        values = map(self._argument, checked(kernel, args))
        if 0 not in threads:
            self._function(kernel)(kernel.grid(threads), kernel.block, tuple(values))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        try:
            return self._cupy.empty(shape, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(f"the GPU has no memory left for {shape} of {np.dtype(dtype)}") from error

    def put(self, values: np.ndarray, array: Any) -> None:
        # From pageable memory: the driver takes its own copy before it returns, so that nobody has to wait for the GPU.
        array.set(values, stream=self._cupy.cuda.get_current_stream())

    def adopt(self, plane: Any) -> Any:
        if hasattr(plane, "__cuda_array_interface__"):  # PyCUDA's and others'
            return self._cupy.asarray(plane)
        kind, number = plane.__dlpack_device__()
        return self._cupy.from_dlpack(_Unordered(plane)) if (kind, number) == (DLPACK_CUDA, self._cupy.cuda.Device().id) else None

    def await_decoder(self) -> None:
        # FFmpeg gives NVDEC its work on the default stream, for which streams like ours do not wait by themselves.
        self._cupy.cuda.get_current_stream().wait_event(self._cupy.cuda.Stream.null.record())

    def _argument(self, value: Any) -> Any:
        if value is None:  # no array: an address of nothing
            return np.uintp(0)
        if isinstance(value, self._cupy.ndarray) or not hasattr(value, "__cuda_array_interface__"):
            return value
        return self._cupy.asarray(value)  # PyCUDA's and others', where they lie

    def _function(self, kernel: Kernel) -> Any:
        if kernel.name not in self._functions:
            self._functions[kernel.name] = self._modules[kernel.file].get_function(kernel.name)
        return self._functions[kernel.name]


class _Unordered:
    """A plane whose owner orders no streams and says so by refusing one (PyAV 18): ``await_decoder`` does it."""

    def __init__(self, plane: Any) -> None:
        self._plane = plane

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._plane.__dlpack_device__()
        return int(kind), int(number)

    def __dlpack__(self, **asked: Any) -> Any:
        return self._plane.__dlpack__()

"""Kernels that are counted: what a frame launches, and what it sends to and fro."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from engines.device.checking import CheckingDevice
from engines.device.memory import ApartArray, Ledger
from rt.compose.kernels.contract import Kernels, Size
from rt.compose.kernels.declared import Kernel
from rt.frame import Place


class CheckingKernels:
    """Keeps ``rt.compose.kernels.contract.Kernels``, over others; ``device`` forbids allocations once it is steady.

    Over the host its memory is apart: what passes the processor's hands on its way to a network or back is an error, or is counted.
    """

    def __init__(self, inner: Kernels, device: CheckingDevice) -> None:
        self._inner = inner
        self._device = device
        self.launched: Counter[str] = Counter()
        """Of this frame, by kernel."""
        self.moved: Ledger = _Counted(device)
        """Of this frame: every piece that went up, and every one that came down; the picture itself is the stream's."""

    def begin_frame(self) -> None:
        """Counts anew. Nothing may be under way."""
        self.launched.clear()
        self.moved.clear()

    @property
    def place(self) -> Place:
        return self._inner.place

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        self.launched[kernel.name] += 1
        self._inner.launch(kernel, threads, *args)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        self._device.forbid_allocation(f"memory of {shape} {np.dtype(dtype)}")
        made = self._inner.empty(shape, dtype)
        return ApartArray(made, self.moved) if isinstance(made, np.ndarray) else made

    def put(self, values: np.ndarray, array: Any) -> None:
        if not isinstance(array, ApartArray):  # which counts by itself
            self.moved.went_up(values.nbytes)
        self._inner.put(values, array)

    def adopt(self, plane: Any) -> Any:
        return self._inner.adopt(plane)

    def await_decoder(self) -> None:
        self._inner.await_decoder()


class _Counted(Ledger):
    """Adds to the device's numbers of the frame too."""

    def __init__(self, device: CheckingDevice) -> None:
        super().__init__()
        self._device = device

    def went_up(self, nbytes: int) -> None:
        super().went_up(nbytes)
        self._device.count(bytes_other=nbytes)

    def came_down(self, nbytes: int) -> None:
        super().came_down(nbytes)
        self._device.count(bytes_other=nbytes)

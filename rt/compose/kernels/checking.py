"""Kernels that are counted: what a frame launches, and what it sends to and fro."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from engines.device.checking import CheckingDevice
from rt.compose.kernels.contract import Kernels, Size
from rt.compose.kernels.declared import Kernel


class CheckingKernels:
    """Keeps ``rt.compose.kernels.contract.Kernels``, over others; ``device`` forbids allocations once it is steady."""

    def __init__(self, inner: Kernels, device: CheckingDevice) -> None:
        self._inner = inner
        self._device = device
        self.launched: Counter[str] = Counter()
        """Of this frame, by kernel."""
        self.sent_bytes: list[int] = []
        """Of this frame: every piece that went up."""

    def begin_frame(self) -> None:
        """Counts anew. Nothing may be under way."""
        self.launched.clear()
        self.sent_bytes.clear()

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        self.launched[kernel.name] += 1
        self._inner.launch(kernel, threads, *args)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        self._device.forbid_allocation(f"memory of {shape} {np.dtype(dtype)}")
        return self._inner.empty(shape, dtype)

    def put(self, values: np.ndarray, array: Any) -> None:
        self.sent_bytes.append(values.nbytes)
        self._device.count(bytes_other=values.nbytes)
        self._inner.put(values, array)

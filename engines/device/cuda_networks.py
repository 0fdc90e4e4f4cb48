"""A GPU that runs the networks of a lane, while its pictures stay with the processor, which composes them. Not run on a GPU yet.

CUDA remembers for each thread which GPU it means. A network belongs to the one that was meant when it was opened (``current``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from engines.device.budget import MemoryBudget
from engines.device.contract import Device, Stream
from engines.device.cuda_probe import current_gpu, find_gpus, use_gpu
from engines.device.host import HostStream
from engines.device.kinds import DeviceKind, devices


class CudaNetworks:
    """Keeps ``engines.device.contract.Device``."""

    pins = False

    def __init__(self, index: int, memory_bytes: int = 0) -> None:
        """``memory_bytes``: what networks may take of it; 0 is no limit."""
        self.name = f"cuda:{index}"
        self.budget = MemoryBudget(memory_bytes, self.name)
        self._index = index

    def stream(self, name: str) -> Stream:
        return HostStream(name)

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, np.uint8)

    def mirror(self, pixels: np.ndarray) -> Any:
        return pixels

    def trim(self) -> None:
        """Networks hold what they need, and nothing else is here."""

    @contextmanager
    def current(self) -> Iterator[None]:
        before = current_gpu()
        use_gpu(self._index)
        try:
            with self.budget.meant():
                yield
        finally:
            use_gpu(before)


def problem(index: int) -> str:
    """What is missing for a GPU with this number."""
    count, reason = find_gpus()
    if index < count:
        return ""
    if count:
        there = "cuda:0 is the only GPU here" if count == 1 else f"the GPUs here are cuda:0 to cuda:{count - 1}"
        return f"{there}; choose one of these, or --device host"
    if "No module named" in reason:
        return "the package cuda-python is not installed; run `pip install 'ffrt[gpu]'`, or choose --device host"
    return f"no NVIDIA GPU with a driver was found ({reason}); install NVIDIA's driver, or choose --device host"


def _whole(index: int, memory_bytes: int) -> Device:
    from engines.device.cuda import CudaDevice

    return CudaDevice(index, memory_bytes=memory_bytes)


devices.register("cuda")(DeviceKind(CudaNetworks, problem, is_counted=True, has_memory=True))
devices.register("cuda-kernels")(DeviceKind(_whole, problem, is_counted=True, has_memory=True, compositor="cuda"))

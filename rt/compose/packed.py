"""Pictures as encoders of a device take them: one piece of memory each, that is used again when nobody has it any more."""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from typing import Any

import numpy as np

from engines.device.memory import kept_by_dlpack
from rt.compose.kernels.contract import Kernels

PITCH = 256
"""Bytes: rows begin at multiples, as in memory of ``cuMemAllocPitch``, which NVENC's samples hand over."""


class PackedPictures:
    """``take`` and ``clear`` are one thread's; whoever held a picture last may be any."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._free: dict[tuple[int, int], deque[Any]] = defaultdict(deque)

    def take(self, width: int, height: int) -> tuple[Any, Any]:
        """NV12, both sides even: u8 [H, W] of luma and [H/2, W] of chroma, of any content; the second follows the first, as NVENC wants it.

        Allocates where all that there are are held. Raises ``DeviceMemoryError``.
        """
        free = self._free[width, height]
        memory = free.popleft() if free else self._kernels.empty((height * 3 // 2, -(-width // PITCH) * PITCH), np.uint8)
        planes = memory[:height, :width], memory[height:, :width]
        loan = _Loan(memory, free)
        for plane in planes:
            weakref.finalize(kept_by_dlpack(plane), loan.let_go).atexit = False
        return planes

    def clear(self) -> None:
        """Keeps nothing; what is held is freed by its last holder."""
        self._free.clear()


class _Loan:
    """Both planes of one picture."""

    def __init__(self, memory: Any, free: deque[Any]) -> None:
        self._memory, self._free = memory, free
        self._other = deque((None,))  # whoever lets go first takes it, on any thread

    def let_go(self) -> None:
        try:
            self._other.pop()
        except IndexError:
            self._free.append(self._memory)

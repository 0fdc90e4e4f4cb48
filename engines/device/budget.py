"""A device's memory: what a lane may take of it, and how runtimes say that there is none left."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from engines.errors import DeviceMemoryError

NONE_LEFT = re.compile(
    r"failed to allocate memory for requested buffer"  # ONNX Runtime's arena
    r"|available memory of \d+ is smaller than requested"  # the same, at its limit
    r"|out of memory"  # CUDA, by ONNX Runtime ("CUDA failure 2"), TensorRT ("Cuda Runtime (out of memory)") and CuPy
    r"|outofmemory"  # TensorRT ("Error Code 2: OutOfMemory"), CuPy's class
    r"|could not be allocated"  # TensorRT ("Requested amount of GPU memory (… bytes) could not be allocated")
    r"|cudaErrorMemoryAllocation|STATUS_ALLOC_FAILED"  # cuBLAS, cuDNN and cuFFT
    r"|bad_alloc|bad allocation|alloc failed|allocate memory",  # C++ libraries; std::bad_alloc, on Windows "bad allocation"
    re.IGNORECASE,
)
"""Their words: from the public reports of those who ran out, and from the libraries' own sources."""


def says_none_is_left(text: str) -> bool:
    """Whether a runtime's message says that memory is used up. Runtimes have no class of error for it."""
    return NONE_LEFT.search(text) is not None


class MemoryBudget:
    """What one lane may take of its device. Any thread."""

    def __init__(self, limit_bytes: int, owner: str) -> None:
        """``limit_bytes``: 0 is no limit. ``owner``: the device, for messages."""
        self.limit_bytes = limit_bytes
        self._owner = owner
        self._lock = threading.Lock()
        self._taken_bytes = 0  # guarded by _lock

    def take(self, nbytes: int, what: str) -> Taken:
        """Raises ``DeviceMemoryError`` where so much is not left of the budget; nothing is taken then."""
        with self._lock:
            left = self.limit_bytes - self._taken_bytes
            if self.limit_bytes and nbytes > left:
                raise DeviceMemoryError(
                    f"{what} needs {nbytes / 1e6:.1f} MB, and of the {self.limit_bytes / 1e6:.0f} MB that {self._owner} may take"
                    f" {max(0, left) / 1e6:.1f} MB are left; allow more with --gpu-memory"
                )
            self._taken_bytes += nbytes
        return Taken(self, nbytes)

    def _give_back(self, nbytes: int) -> None:
        with self._lock:
            self._taken_bytes -= nbytes

    @property
    def left_bytes(self) -> int | None:
        """None without a limit."""
        with self._lock:
            return max(0, self.limit_bytes - self._taken_bytes) if self.limit_bytes else None

    @contextmanager
    def meant(self) -> Iterator[None]:
        """What this thread opens meanwhile counts as this lane's."""
        token = _MEANT.set(self)
        try:
            yield
        finally:
            _MEANT.reset(token)


class Taken:
    """A part of a budget."""

    def __init__(self, budget: MemoryBudget, nbytes: int) -> None:
        """Made by ``MemoryBudget.take``."""
        self._budget = budget
        self._nbytes = nbytes

    def give_back(self) -> None:
        """May be called twice; one thread at a time."""
        nbytes, self._nbytes = self._nbytes, 0
        self._budget._give_back(nbytes)


_MEANT: ContextVar[MemoryBudget | None] = ContextVar("the budget of the lane for which a thread opens models", default=None)


def budget_meant() -> MemoryBudget:
    """Of the lane for which this thread opens models, as CUDA knows for each thread which GPU it means; one without a limit elsewhere."""
    return _MEANT.get() or MemoryBudget(0, "this process")

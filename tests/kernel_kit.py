"""What tests of kernels share: memory that shows who writes beside it, and a launch by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from rt.compose.kernels.contract import Kernels, Size
from rt.compose.kernels.declared import KERNELS

GUARD = 64
"""Elements before and behind an array, and at the end of every row of a picture, that nobody may write."""


def poison(dtype: Any) -> Any:
    """A value that no right result has everywhere."""
    return np.nan if np.dtype(dtype).kind == "f" else np.array(0xA5, np.uint8).astype(dtype)


class Guarded:
    """A poisoned array between guards."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.uint8, row_guard: int = 0) -> None:
        """``row_guard``: elements at the end of every row (its second dimension, in pixels of the third)."""
        whole = (shape[0], shape[1] + row_guard, *shape[2:]) if row_guard else shape
        self._memory = np.full(2 * GUARD + int(np.prod(whole)), poison(dtype), dtype)
        inside = self._memory[GUARD : self._memory.size - GUARD].reshape(whole)
        self.array = inside[:, : shape[1]] if row_guard else inside
        self._written = np.zeros(self._memory.size, bool)
        mask = self._written[GUARD : self._memory.size - GUARD].reshape(whole)
        (mask[:, : shape[1]] if row_guard else mask)[...] = True

    def check(self) -> np.ndarray:
        """The array; fails where a guard was written."""
        outside = self._memory[~self._written]
        np.testing.assert_array_equal(outside, np.full(outside.size, poison(self._memory.dtype), self._memory.dtype))
        return self.array

    @classmethod
    def of(cls, values: np.ndarray, row_guard: int = 5) -> Guarded:
        """A guarded copy."""
        made = cls(values.shape, values.dtype, row_guard)
        made.array[...] = values
        return made


def run(kernels: Kernels, name: str, threads: Size, *args: Any) -> None:
    """Launches the kernel of that name."""
    kernels.launch(KERNELS[name], threads, *args)


def noise(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """uint8 [H, W, C]."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)

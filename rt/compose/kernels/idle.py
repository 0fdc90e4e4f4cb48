"""Kernels that do nothing: what is left of a frame is what its launches cost the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.device.memory import deliver
from rt.compose.kernels.contract import DLPACK_CPU, Size, adopted_by_host, checked
from rt.compose.kernels.declared import Kernel


class IdleKernels:
    """Keeps ``rt.compose.kernels.contract.Kernels``. Arguments are looked at as for a GPU; pieces go up into memory of the host."""

    place = (DLPACK_CPU, 0)

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        checked(kernel, args)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def put(self, values: np.ndarray, array: Any) -> None:
        deliver(values, array)

    def adopt(self, plane: Any) -> np.ndarray | None:
        return adopted_by_host(plane)

    def await_decoder(self) -> None:
        """There is nothing to be awaited."""

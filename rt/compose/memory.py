"""Memory of a device that is kept from frame to frame: the steady state allocates nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from rt.compose.kernels.contract import Kernels

PIECE_BYTES = 4096
"""No piece that goes up for a face is larger."""

ALIGNED = 16

Fields = Mapping[str, tuple[Any, tuple[int, ...]]]
"""Name → dtype and shape."""


class Parcel:
    """What goes up for a face in one piece: filled on the host, read by kernels in the same layout."""

    def __init__(self, kernels: Kernels, fields: Fields) -> None:
        places, size = {}, 0
        for name, (dtype, shape) in fields.items():
            nbytes = int(np.dtype(dtype).itemsize * np.prod(shape))
            places[name] = slice(size, size + nbytes)
            size += -(-nbytes // ALIGNED) * ALIGNED
        assert size <= PIECE_BYTES, f"a parcel of {size} bytes"
        self.staging = np.zeros(size, np.uint8)
        self.memory = kernels.empty((size,), np.uint8)
        self.host = {name: self.staging[places[name]].view(dtype).reshape(shape) for name, (dtype, shape) in fields.items()}
        self.device = {name: self.memory[places[name]].view(_plain(dtype)) for name, (dtype, _) in fields.items()}


def _plain(dtype: Any) -> np.dtype[Any]:
    """Records are words on a device: CuPy knows no others."""
    return np.dtype(np.int32) if np.dtype(dtype).names else np.dtype(dtype)


class Memory:
    """One thread."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._arrays: dict[str, Any] = {}
        self._parts: dict[tuple[str, int, tuple[int, ...]], tuple[Any, Any]] = {}
        self._rows: dict[tuple[int, int, int], tuple[Any, Any]] = {}
        self._parcels: dict[str, list[Parcel]] = defaultdict(list)
        self._used: dict[str, int] = defaultdict(int)
        self._pending: list[tuple[np.ndarray, Any]] = []

    def array(self, name: str, count: int, dtype: Any, *, zeroed: bool = False) -> Any:
        """``count`` numbers, and perhaps more: what was asked for under this ``name`` before where that is enough."""
        if name not in self._arrays or len(self._arrays[name]) < count:
            self._arrays[name] = self._kernels.empty((count,), dtype)
            if zeroed:
                self._pending.append((np.zeros(count, dtype), self._arrays[name]))
        return self._arrays[name]

    def part(self, name: str, first: int, shape: tuple[int, ...]) -> Any:
        """A part of the array called ``name``, from its number ``first`` on, in ``shape``: the same object as long as the array is."""
        whole, key = self._arrays[name], (name, first, shape)
        if key not in self._parts or self._parts[key][0] is not whole:
            self._parts[key] = (whole, whole[first : first + math.prod(shape)].reshape(shape))
        return self._parts[key][1]

    def rows(self, whole: Any, first: int, count: int) -> Any:
        """``count`` rows of ``whole`` from ``first`` on: the same object as long as ``whole`` is."""
        if count == len(whole):
            return whole
        key = (id(whole), first, count)
        if key not in self._rows:
            self._rows[key] = (whole, whole[first : first + count])
        return self._rows[key][1]

    def constant(self, values: np.ndarray) -> Any:
        """``values`` on the device, of the same shape. Each call makes another one."""
        made = self._kernels.empty(values.shape, values.dtype)
        self._pending.append((np.ascontiguousarray(values), made))
        return made

    def take_pending(self) -> list[tuple[np.ndarray, Any]]:
        """What new memory is to hold, (values, array), before any kernel reads it: for the stream on which they do."""
        pending, self._pending = self._pending, []
        return pending

    def begin_frame(self) -> None:
        """All parcels are free again: whatever read them is done."""
        self._used.clear()

    def parcel(self, kind: str, fields: Fields) -> Parcel:
        """One of ``kind``, all of which have the same fields, that is not in use in this frame."""
        number, made = self._used[kind], self._parcels[kind]
        self._used[kind] += 1
        if number == len(made):
            made.append(Parcel(self._kernels, fields))
        return made[number]

"""Memory of a device as all who use it agree on it: an address, a shape, a type, and the stream whose work it belongs to.

Arrays of CuPy, PyCUDA, PyTorch and Numba tell these by ``__cuda_array_interface__`` (Numba's documentation, "CUDA Array Interface",
version 3), NumPy's by ``__array_interface__``; so none of these packages is imported here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.errors import DeviceError

HOST, CUDA = "host", "cuda"
"""Where memory lies."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array lies; it must live as long as the place is used."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory: str
    """``HOST`` or ``CUDA``."""
    stream: int | None = None
    """CUDA's handle of the stream on which its content is whole; None where that is so already."""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def place_of(array: Any) -> Place:
    """Raises ``DeviceError`` for what is no array, and for one whose elements do not lie one after the other."""
    said = getattr(array, "__cuda_array_interface__", None)
    memory = HOST if said is None else getattr(array, "memory_of", CUDA)
    said = said or getattr(array, "__array_interface__", None)
    if said is None:
        raise DeviceError(f"a {type(array).__name__} was given; arrays of NumPy, CuPy, PyCUDA or PyTorch are taken")
    place = Place(int(said["data"][0]), tuple(said["shape"]), np.dtype(said["typestr"]), memory, said.get("stream"))
    if not _is_contiguous(place, said.get("strides")):
        raise DeviceError(f"an array of {place.shape} whose elements lie apart was given; give a contiguous copy")
    return place


def address_of(array: Any) -> int:
    """Of its first element, wherever that lies; its rows may be apart."""
    said = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(said["data"][0])


def _is_contiguous(place: Place, strides: tuple[int, ...] | None) -> bool:
    step = place.dtype.itemsize
    if 0 in place.shape:
        return True
    for size, stride in zip(reversed(place.shape), reversed(strides or ()), strict=False):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def fetched(array: Any) -> np.ndarray:
    """``array`` where the processor can read it: itself, or a copy of a device's, which is waited for."""
    return array.get() if hasattr(array, "get") else array


def deliver(values: np.ndarray, array: Any) -> None:
    """``values`` into ``array``, wherever that lies."""
    if isinstance(array, np.ndarray):
        np.copyto(array, values)
    else:
        array.set(values)


def copy_into(source: Any, target: Any) -> None:
    """``source`` into ``target``, both of one device and of one shape, of whatever number types. Not waited for."""
    target[...] = source


def kept_by_dlpack(array: Any) -> Any:
    """The object that lives as long as anybody has what ``array`` gave by DLPack: the array itself, with NumPy and CuPy."""
    return array._memory if isinstance(array, ApartArray) else array


class ApartArray:
    """Memory that stands for a GPU's: kernels and networks get its address, and Python cannot look into it but by ``get`` and ``set``.

    So what a step would have to bring over shows on a machine without a GPU: as an error, or in ``Ledger``.
    """

    memory_of = HOST
    """It stands for a GPU's and lies in the host's memory, where networks of the processor may read it."""

    def __init__(self, memory: np.ndarray, ledger: Ledger) -> None:
        self._memory = memory
        self._ledger = ledger
        self.dtype = memory.dtype
        self.shape = memory.shape
        self.strides = memory.strides
        self.size, self.nbytes, self.ndim = memory.size, memory.nbytes, memory.ndim

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        lies = self._memory.__array_interface__
        return {**{name: lies[name] for name in ("data", "shape", "typestr", "strides")}, "version": 3, "stream": None}

    def get(self) -> np.ndarray:
        """A copy that the processor may read."""
        self._ledger.came_down(self.nbytes)
        return self._memory.copy()

    def set(self, values: np.ndarray) -> None:
        self._ledger.went_up(self.nbytes)
        np.copyto(self._memory, values)

    def view(self, dtype: Any) -> ApartArray:
        return ApartArray(self._memory.view(dtype), self._ledger)

    def reshape(self, *shape: Any) -> ApartArray:
        return ApartArray(self._memory.reshape(*shape), self._ledger)

    def __dlpack__(self, **asked: Any) -> Any:
        return self._memory.__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._memory.__dlpack_device__()

    def __len__(self) -> int:
        return len(self._memory)

    def __getitem__(self, place: Any) -> ApartArray:
        return ApartArray(self._memory[place], self._ledger)

    def __setitem__(self, place: Any, values: Any) -> None:
        """Work of the device: numbers, and arrays of its own, of any type."""
        if isinstance(values, np.ndarray):
            raise TypeError("an array of the host was written into memory of a device; use set(), which is counted")
        self._memory[place] = values._memory if isinstance(values, ApartArray) else values

    def __array__(self, *args: Any, **more: Any) -> np.ndarray:
        raise TypeError("memory of a device was read as if it were the host's; use get(), which is counted")


class Ledger:
    """What was brought over, bytes, in order. Written by the thread that does the device's work."""

    def __init__(self) -> None:
        self.up: list[int] = []
        self.down: list[int] = []

    def went_up(self, nbytes: int) -> None:
        self.up.append(nbytes)

    def came_down(self, nbytes: int) -> None:
        self.down.append(nbytes)

    def clear(self) -> None:
        self.up.clear()
        self.down.clear()

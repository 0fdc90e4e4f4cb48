"""How kernels are launched: one interface, whatever runs them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from engines.errors import DeviceError
from rt.compose.kernels.declared import DTYPES, Kernel
from rt.frame import Place

Size = tuple[int, int, int]
"""Threads in x, y and z."""


class Kernels(Protocol):
    """Runs kernels of one device, in order, on the stream whose work makes the calls. One thread at a time.

    Arrays are those of the device: NumPy's on the host, CuPy's on a GPU, where those of PyCUDA and all others with a
    ``__cuda_array_interface__`` are taken too; CuPy's have one, by which PyCUDA's kernels take them.
    All calls return without waiting for the device.
    """

    @property
    def place(self) -> Place:
        """Whose memory its arrays are."""
        ...

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        """At least ``threads`` threads of ``kernel``; none at all where one of the three is 0.

        ``args``: what it declares, in order: arrays of the declared type (None: no array) and numbers. A picture's rows may be apart;
        the kernel is told by how much. Raises ``DeviceError`` for arguments of other types.
        """
        ...

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """New memory of the device, contiguous, of any content. Allocates: keep it. Raises ``DeviceError`` where there is none left."""
        ...

    def put(self, values: np.ndarray, array: Any) -> None:
        """Copies ``values`` of the host into ``array``. ``values`` may be changed as soon as this returns."""
        ...

    def adopt(self, plane: Any) -> Any:
        """A plane of a decoded picture as an array of this device, without a copy; None where it lies on another one. ``plane`` tells
        by DLPack (the array API standard's ``__dlpack__``), or on a GPU by ``__cuda_array_interface__``, and must live as long as the
        array."""
        ...

    def await_decoder(self) -> None:
        """Asynchronous: what is launched from now on runs after what decoders of this device were given so far."""
        ...


def checked(kernel: Kernel, args: tuple[Any, ...]) -> list[Any]:
    """``args`` with numbers as NumPy's, each of the type that ``kernel`` declares."""
    if len(args) != len(kernel.arguments):
        raise DeviceError(f"the kernel {kernel.name} was given {len(args)} arguments; it takes {', '.join(kernel.arguments)}")
    return [_checked(kernel, kind, value) for kind, value in zip(kernel.arguments, args, strict=True)]


def _checked(kernel: Kernel, kind: str, value: Any) -> Any:
    dtype = DTYPES[kind]
    if not kind.endswith("*"):
        return dtype.type(value)
    if value is not None and value.dtype != dtype:
        raise DeviceError(f"the kernel {kernel.name} was given an array of {value.dtype} for {kind}; it takes {dtype}")
    return value


DLPACK_CPU, DLPACK_CUDA = 1, 2
"""``DLDeviceType`` of dlpack.h."""


def adopted_by_host(plane: Any) -> np.ndarray | None:
    """``Kernels.adopt`` where arrays are NumPy's."""
    return np.from_dlpack(plane) if plane.__dlpack_device__()[0] == DLPACK_CPU else None

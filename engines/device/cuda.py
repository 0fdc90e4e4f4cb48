"""The CUDA form of streams and events. Not joined to the line yet, and not run on a GPU yet.

A stream is a host stream, whose thread gives the work, over a CUDA stream, on which that work runs: so a step may be NumPy or kernels,
and both keep their order. Between streams stand events alone; nothing here waits for a whole device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engines.device.contract import Event
from engines.device.cuda_probe import find_gpus
from engines.device.host import HostEvent, HostStream
from engines.errors import DeviceError


class CudaDevice:
    """One GPU. Raises ``DeviceError`` naming what is missing."""

    def __init__(self, index: int = 0, *, memory_bytes: int = 0) -> None:
        """``memory_bytes``: what the pool of pictures may take of the GPU; 0 is no limit."""
        self.name = f"cuda:{index}"
        try:
            import cupy
            from cuda import core
        except (ImportError, OSError, RuntimeError) as error:
            raise DeviceError(f"{self.name} was asked for and CUDA cannot be used ({error}); run `pip install 'ffrt[gpu]'`") from error
        count, reason = find_gpus()
        if index >= count:
            raise DeviceError(f"{self.name} was asked for and {count} GPUs were found ({reason or 'they are counted from 0'})")
        self._cupy = cupy
        self._core = core
        self._index = index
        self._device = core.Device(index)
        self._device.set_current()
        self._pool = cupy.cuda.MemoryPool()
        self._pool.set_limit(size=memory_bytes)

    def stream(self, name: str) -> CudaStream:
        self._device.set_current()
        stream = self._device.create_stream(options=self._core.StreamOptions(nonblocking=True))
        return CudaStream(name, self._device, stream, self._cupy.cuda.ExternalStream(int(stream.handle), self._index))

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        self._device.set_current()
        size = int(np.prod(shape))
        memory = self._cupy.cuda.alloc_pinned_memory(size)  # kept by the array
        pixels = np.frombuffer(memory, np.uint8, size).reshape(shape)
        pixels[...] = 0
        return pixels

    def mirror(self, pixels: np.ndarray) -> Any:
        self._device.set_current()
        try:
            with self._cupy.cuda.using_allocator(self._pool.malloc):
                return self._cupy.empty(pixels.shape, pixels.dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceError(f"{self.name} has no memory left for a picture of {pixels.nbytes} bytes; swap fewer faces") from error


class CudaStream:
    """Work in order: given by a thread of its own, run by the GPU."""

    def __init__(self, name: str, device: Any, stream: Any, current: Any) -> None:
        """``device``, ``stream``: of cuda.core; ``current``: the same stream for CuPy."""
        self._device = device
        self._stream = stream
        self._current = current
        self._host = HostStream(name)
        self._closed = False

    def enqueue(self, work: Callable[..., Any], *args: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = ()) -> None:
        self._host.enqueue(self._give, work, *args)

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        self.enqueue(lambda: image.set(pixels, stream=self._current))

    def download(self, image: Any, pixels: np.ndarray) -> None:
        self.enqueue(lambda: image.get(stream=self._current, out=pixels, blocking=False))

    def record(self) -> CudaEvent:
        points: list[Any] = []
        self.enqueue(lambda: points.append(self._stream.record()))
        return CudaEvent(self._host.record(), points)

    def wait(self, event: Event) -> None:
        if not isinstance(event, CudaEvent):
            raise DeviceError("an event of another device was given to a CUDA stream; wait for it on the host")
        self._host.wait(event.given)
        self.enqueue(lambda: self._stream.wait(event.point))

    def close(self) -> None:
        self._host.close()
        if not self._closed:
            self._closed = True
            self._device.set_current()
            self._stream.sync()
            self._stream.close()

    def _give(self, work: Callable[..., Any], *args: Any) -> None:
        self._device.set_current()
        with self._current:
            work(*args)


class CudaEvent:
    """First the work before the point was given, then the GPU has done it."""

    def __init__(self, given: HostEvent, points: list[Any]) -> None:
        self.given = given
        self._points = points  # filled before ``given`` is reached, unless the work failed

    @property
    def point(self) -> Any:
        """The event of cuda.core; once ``given`` is reached without an error."""
        return self._points[0]

    def synchronize(self) -> None:
        self.given.synchronize()
        self.point.sync()

    @property
    def done(self) -> bool:
        return self.given.done and (not self._points or bool(self.point.is_done))

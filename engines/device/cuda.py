"""A GPU as a device. Not run on a GPU yet.

Between streams stand events alone; nothing here waits for a whole device but ``trim``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from engines.device.budget import MemoryBudget
from engines.device.cuda_probe import current_gpu, find_gpus, use_gpu
from engines.device.threaded import ThreadedStream
from engines.errors import DeviceError, DeviceMemoryError


class CudaDevice:
    """One GPU. Raises ``DeviceError`` naming what is missing."""

    pins = True

    def __init__(self, index: int = 0, *, memory_bytes: int = 0) -> None:
        """``memory_bytes``: what networks may take of the GPU, and the pool of pictures what they leave of it; 0 is no limit."""
        self.name = f"cuda:{index}"
        self.budget = MemoryBudget(memory_bytes, self.name)
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
        self._limit_pool()

    def stream(self, name: str) -> ThreadedStream:
        self._device.set_current()
        stream = self._device.create_stream(options=self._core.StreamOptions(nonblocking=True))
        timed = self._core.EventOptions(timing_enabled=True, blocking_sync=True)  # blocking: a thread that waits leaves its core to others
        current = self._cupy.cuda.ExternalStream(int(stream.handle), self._index)
        return ThreadedStream(name, CudaStream(self._device, stream, current, timed, self._cupy, self._pool))

    def pinned(self, shape: tuple[int, ...]) -> np.ndarray:
        self._device.set_current()
        size = int(np.prod(shape))
        memory = self._cupy.cuda.alloc_pinned_memory(size)  # kept by the array
        pixels = np.frombuffer(memory, np.uint8, size).reshape(shape)
        pixels[...] = 0
        return pixels

    def mirror(self, pixels: np.ndarray) -> Any:
        self._device.set_current()
        self._limit_pool()
        try:
            with self._cupy.cuda.using_allocator(self._pool.malloc):
                return self._cupy.empty(pixels.shape, pixels.dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(f"{self.name} has no memory left for a picture of {pixels.nbytes / 1e6:.1f} MB") from error

    def trim(self) -> None:
        self._device.set_current()
        self._pool.free_all_blocks()
        self._limit_pool()

    def _limit_pool(self) -> None:
        """What networks leave of the budget; 0 would be no limit."""
        left = self.budget.left_bytes
        self._pool.set_limit(size=0 if left is None else max(1, left))

    @contextmanager
    def current(self) -> Iterator[None]:
        before = current_gpu()
        self._device.set_current()
        try:
            with self.budget.meant(), self._cupy.cuda.using_allocator(self._pool.malloc):  # what kernels keep is of the budget, too
                yield
        finally:
            use_gpu(before)


class CudaStream:
    """Keeps ``engines.device.threaded.NativeStream``."""

    def __init__(self, device: Any, stream: Any, current: Any, timed: Any, cupy: Any, pool: Any) -> None:
        """``device``, ``stream``, ``timed``: device, stream and event options of cuda.core; ``current``: the same stream for CuPy.

        ``pool``: where steps that allocate get their memory.
        """
        self._device = device
        self._stream = stream
        self._current = current
        self._timed = timed
        self._cupy = cupy
        self._pool = pool

    def call(self, work: Callable[..., Any], *args: Any) -> None:
        with self._here():
            work(*args)

    def upload(self, pixels: np.ndarray, image: Any) -> None:
        with self._here():
            image.set(pixels, stream=self._current)

    def download(self, image: Any, pixels: np.ndarray) -> None:
        with self._here():
            image.get(stream=self._current, out=pixels, blocking=False)

    def record(self) -> Any:
        with self._here():
            return self._stream.record(options=self._timed)

    def wait(self, event: Any) -> None:
        with self._here():
            self._stream.wait(event)

    def capture(self, work: Callable[[], None]) -> Any:
        with self._here():
            builder = self._stream.create_graph_builder()
            try:
                builder.begin_building("relaxed")  # other lanes' threads may allocate meanwhile
                try:
                    work()
                finally:
                    builder.end_building()
                return builder.complete()
            finally:
                builder.close()

    def launch(self, graph: Any) -> None:
        with self._here():
            graph.launch(self._stream)

    def sync(self) -> None:
        self._device.set_current()
        self._stream.sync()

    def close(self) -> None:
        self._stream.close()

    @contextmanager
    def _here(self) -> Iterator[None]:
        """Device, stream and memory are those of this thread meanwhile."""
        self._device.set_current()
        try:
            with self._current, self._cupy.cuda.using_allocator(self._pool.malloc):
                yield
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(f"the GPU has no memory left ({error})") from error

"""The few calls of CUDA's runtime that sessions need, each checked. Not run on a GPU yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from engines.device.budget import Taken, budget_meant, says_none_is_left
from engines.errors import DeviceError, DeviceMemoryError


def cuda_runtime() -> Any:
    """The module ``cuda.bindings.runtime``. Raises ``DeviceError`` where it cannot be used."""
    try:
        from cuda.bindings import runtime
    except (ImportError, OSError, RuntimeError) as error:
        raise DeviceError(f"CUDA cannot be used ({error}); run `pip install 'ffrt[gpu]'` and install NVIDIA's driver") from error
    return runtime


class CudaCalls:
    """For the GPU that the thread meant which made this. ``cuda.bindings`` returns (error, value…) and raises nothing."""

    def __init__(self, cuda: Any) -> None:
        """``cuda``: the module ``cuda.bindings.runtime``, or what stands in for it. Raises ``DeviceError``."""
        self._cuda = cuda
        self.budget = budget_meant()
        self._taken: dict[int, Taken] = {}  # address → of the lane's budget
        self.gpu = int(self._checked("its number", cuda.cudaGetDevice()))

    def mean_this_gpu(self) -> None:
        """The calling thread's work goes to it from now on."""
        self._checked("its work", self._cuda.cudaSetDevice(self.gpu))

    def new_stream(self) -> int:
        """One that waits for no other."""
        return int(self._checked("a stream", self._cuda.cudaStreamCreateWithFlags(self._cuda.cudaStreamNonBlocking)))

    def end_stream(self, stream: int) -> None:
        self._cuda.cudaStreamDestroy(stream)

    def new_event(self) -> Any:
        return self._checked("an event", self._cuda.cudaEventCreateWithFlags(self._cuda.cudaEventDisableTiming))

    def end_event(self, event: Any) -> None:
        self._cuda.cudaEventDestroy(event)

    def order(self, first: int, event: Any, then: int) -> None:
        """Asynchronous: what ``then`` is given from now on runs after what ``first`` has been given."""
        self._checked("an event", self._cuda.cudaEventRecord(event, first))
        self._checked("to wait for an event", self._cuda.cudaStreamWaitEvent(then, event, 0))

    def allocate(self, nbytes: int) -> int:
        """Of the budget of the lane for which this was made. Raises ``DeviceMemoryError`` where that or the GPU has not as much left."""
        taken = self.budget.take(nbytes, "a tensor")
        try:
            address = int(self._checked(f"{nbytes / 1e6:.1f} MB of its memory", self._cuda.cudaMalloc(nbytes)))
        except DeviceError:
            taken.give_back()
            raise
        self._taken[address] = taken
        return address

    def free(self, address: int) -> None:
        self._cuda.cudaFree(address)
        self._taken.pop(address).give_back()

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        kind = self._cuda.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._checked("a copy to it", self._cuda.cudaMemcpyAsync(address, array.ctypes.data, array.nbytes, kind, stream))

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        kind = self._cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self._checked("a copy from it", self._cuda.cudaMemcpyAsync(array.ctypes.data, address, array.nbytes, kind, stream))

    def wait(self, stream: int) -> None:
        self._checked("the end of its work", self._cuda.cudaStreamSynchronize(stream))

    def target(self) -> str:
        """Compute capability of the GPU: ``sm_89``."""
        names, gpu = self._cuda.cudaDeviceAttr, self.gpu
        major = self._checked("its kind", self._cuda.cudaDeviceGetAttribute(names.cudaDevAttrComputeCapabilityMajor, gpu))
        minor = self._checked("its kind", self._cuda.cudaDeviceGetAttribute(names.cudaDevAttrComputeCapabilityMinor, gpu))
        return f"sm_{major}{minor}"

    @staticmethod
    def _checked(what: str, answer: tuple[Any, ...]) -> Any:
        error, *values = answer
        if says_none_is_left(str(getattr(error, "name", ""))):
            raise DeviceMemoryError(f"the GPU was asked for {what} and has not as much left")
        if int(error) != 0:
            raise DeviceError(f"the GPU was asked for {what} and answered {getattr(error, 'name', error)}")
        return values[0] if values else None


class SideStream:
    """A stream that a runtime keeps to, whatever stream its work is asked for on. One thread at a time."""

    def __init__(self, calls: CudaCalls) -> None:
        """On the GPU of ``calls``. Raises ``DeviceError``."""
        self._calls = calls
        self.gpu = calls.gpu
        self.handle = calls.new_stream()
        self._begin, self._end = calls.new_event(), calls.new_event()

    @contextmanager
    def among(self, stream: int | None) -> Iterator[None]:
        """What this stream is given meanwhile runs after what ``stream`` was given, and before what that is given next; by events alone,
        so that it can be recorded with the rest of ``stream``. Without one it is waited for."""
        self._calls.mean_this_gpu()
        if stream is not None:
            self._calls.order(stream, self._begin, self.handle)
        yield
        if stream is None:
            self._calls.wait(self.handle)
        else:
            self._calls.order(self.handle, self._end, stream)

    def close(self) -> None:
        for event in (self._begin, self._end):
            self._calls.end_event(event)
        self._calls.end_stream(self.handle)

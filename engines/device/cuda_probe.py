"""Is there a GPU? One function, in which every way of saying no counts as no, because … And which one does this thread mean?"""

from __future__ import annotations

import sys

from engines.errors import DeviceError


def find_gpus() -> tuple[int, str]:
    """How many CUDA devices there are, and, where there are none, why. Never raises for a machine without."""
    try:
        from cuda.bindings import runtime

        error, count = runtime.cudaGetDeviceCount()
    except (ImportError, OSError, RuntimeError) as failure:  # no package, no driver's library, a driver that refuses
        return 0, str(failure).splitlines()[0]
    if int(error) != 0:
        return 0, str(error.name)
    return int(count), "" if count else "no device"


def current_gpu() -> int:
    """The number of the GPU that CUDA's calls on this thread go to; 0 where none was chosen. Never raises for a machine without."""
    runtime = sys.modules.get("cuda.bindings.runtime")
    if runtime is None:  # nobody can have chosen one
        return 0
    try:
        error, number = runtime.cudaGetDevice()
    except (OSError, RuntimeError):
        return 0
    return int(number) if int(error) == 0 else 0


def use_gpu(number: int) -> None:
    """Has CUDA's calls on this thread go to that GPU. Raises ``DeviceError``."""
    try:
        from cuda.bindings import runtime

        (error,) = runtime.cudaSetDevice(number)
    except (ImportError, OSError, RuntimeError) as failure:
        raise DeviceError(f"cuda:{number} cannot be used ({failure}); run `pip install 'ffrt[gpu]'`") from failure
    if int(error) != 0:
        raise DeviceError(f"cuda:{number} was asked for its work and answered {error.name}; is the GPU still there?")

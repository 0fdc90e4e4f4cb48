"""Is there a GPU? One function, in which every way of saying no counts as no, because …"""

from __future__ import annotations


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

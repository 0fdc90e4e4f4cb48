"""Ends with one sentence where no NVIDIA GPU can be used. Needs no package: it is asked before gigabytes of them are fetched.

python scripts/need_gpu.py
"""

from __future__ import annotations

import ctypes
import sys

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def why_not(library: str = LIBRARY) -> str:
    """Why there is no GPU, as the driver says; empty where there is one."""
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return f"NVIDIA's driver is not installed ({library} was not found)"
    count = ctypes.c_int()
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if error:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(error, ctypes.byref(name))
        return f"NVIDIA's driver answered {(name.value or str(error).encode()).decode()}"
    return "" if count.value else "NVIDIA's driver found no GPU"


def main() -> None:
    why = why_not()
    if why:
        sys.exit(f"The tests of the GPU need an NVIDIA card, RTX 20 or later, and none can be used here: {why}.")


if __name__ == "__main__":
    main()

"""Kernels compiled for chips by NVRTC. No GPU and no driver is needed for that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engines.errors import DeviceError
from rt.compose.kernels.declared import Kernel
from rt.compose.kernels.sources import source

CHIPS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""GeForce RTX 20 to 50 and the data centres' cards from A100 to B200."""

OPTIONS = ("--std=c++17", "--fmad=false")
"""Given to NVRTC here and by CuPy alike. Each step is rounded by itself, as the processor does it: these kernels wait for memory anyway."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What ptxas says of one kernel on one chip."""

    registers: int
    spilled_bytes: int
    """Stores and loads of registers that did not fit, bytes."""
    shared_bytes: int


def compile_for(file: str, chip: str) -> tuple[bytes, str]:
    """The machine code of a file's kernels for ``chip`` (``sm_89``), or PTX for ``compute_75`` and the like; and what ptxas says.

    Raises ``DeviceError`` where the file does not compile or NVRTC is not here.
    """
    try:
        from cuda.bindings import nvrtc

        error, program = nvrtc.nvrtcCreateProgram(source(file).encode(), file.encode(), 0, [], [])
    except (ImportError, OSError, RuntimeError) as failure:
        raise DeviceError(f"kernels cannot be compiled: {failure}; run `pip install 'ffrt[kernels]'`") from failure
    options = [f"--gpu-architecture={chip}", *OPTIONS, *(["--ptxas-options=-v"] if chip.startswith("sm_") else [])]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    if int(error):
        raise DeviceError(f"{file} does not compile for {chip} ({error.name}):\n{log.decode(errors='replace')}")
    size, get = (
        (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if chip.startswith("compute_") else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    )
    code = b" " * size(program)[1]
    get(program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return code, log.decode(errors="replace")


def usage_of(kernels: list[Kernel], log: str) -> dict[str, Usage]:
    """By kernel, from ptxas' words. Raises ``DeviceError`` where they say nothing of one."""
    parts = re.split(r"Compiling entry function '(\w+)'", log)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    missing = [kernel.name for kernel in kernels if kernel.name not in said]
    if missing:
        raise DeviceError(f"the compiler says nothing of {', '.join(missing)}; are they declared and not written?")
    return {kernel.name: _usage(said[kernel.name]) for kernel in kernels}


def _usage(words: str) -> Usage:
    def number(pattern: str) -> int:
        return sum(int(found) for found in re.findall(pattern, words))

    return Usage(number(r"Used (\d+) registers"), number(r"(\d+) bytes spill"), number(r"(\d+) bytes smem"))

"""Kernels on the host: a C++ compiler makes a library of them, NumPy's arrays are its memory.

It is for machines without a GPU that are to prove what one would do; the processor's own way is ``rt/compose/host.py``.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engines.device.memory import address_of, deliver
from engines.errors import DeviceError
from engines.folders import cache_folder
from rt.compose.kernels.contract import DLPACK_CPU, Size, adopted_by_host, checked
from rt.compose.kernels.declared import KERNELS, Kernel
from rt.compose.kernels.records import FACE, layout_checks
from rt.compose.kernels.sources import source

COMPILERS = ("c++", "g++", "clang++")

FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-ffp-contract=off")

SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
"""With ``FFRT_SANITIZE=1``: a read or write out of bounds ends the program, with its line.

Python then needs ``ASAN_OPTIONS=detect_leaks=0`` and, in ``LD_PRELOAD``, ``libasan.so`` and ``libstdc++.so`` from where
``g++ -print-file-name=`` says: see `make test-kernels`.
"""


def find_compiler(environment: Mapping[str, str] = os.environ) -> str | None:
    """A C++ compiler: ``CXX`` where it is set, else the first of ``COMPILERS`` that is here."""
    names = [environment["CXX"]] if environment.get("CXX") else COMPILERS
    return next((path for name in names if (path := shutil.which(name))), None)


class HostKernels:
    """Keeps ``rt.compose.kernels.contract.Kernels``. Made once: compiling takes seconds, its result is kept by hash."""

    def __init__(self, *, backwards: bool = False) -> None:
        """``backwards``: the last block and the last thread come first; whoever depends on the order shows.

        Raises ``DeviceError`` without a compiler, with what to install.
        """
        self._libraries = {file: ctypes.CDLL(str(library(file))) for file in sorted({kernel.file for kernel in KERNELS.values()})}
        self._backwards = backwards

    place = (DLPACK_CPU, 0)

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        values = checked(kernel, args)
        if 0 in threads:
            return
        shape = (ctypes.c_uint * 6)(*kernel.grid(threads), *kernel.block)
        boxes = [_boxed(value) for value in values]  # as the driver takes them: addresses of values
        addresses = (ctypes.c_void_p * len(boxes))(*(ctypes.addressof(box) for box in boxes))
        if getattr(self._libraries[kernel.file], f"launch_{kernel.name}")(shape, int(self._backwards), addresses):
            raise DeviceError(f"the kernel {kernel.name} has phases and is not declared so; say phases=True")

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def put(self, values: np.ndarray, array: Any) -> None:
        deliver(values, array)

    def adopt(self, plane: Any) -> np.ndarray | None:
        return adopted_by_host(plane)

    def await_decoder(self) -> None:
        """A decoder on the processor is done when its picture is there."""


def _boxed(value: Any) -> Any:
    if value is None:
        return ctypes.c_void_p(None)
    if not isinstance(value, np.generic):
        return ctypes.c_void_p(address_of(value))
    return ctypes.c_float(float(value)) if isinstance(value, np.floating) else ctypes.c_int(int(value))


def host_text(file: str) -> str:
    """C++ of one file's kernels and of ``launch_NAME(shape, backwards, arguments)`` for each."""
    mine = [kernel for kernel in KERNELS.values() if kernel.file == file]
    parts = [source("host.h"), source(file), *(_entry(kernel) for kernel in mine)]
    if "struct Face " in parts[1]:
        parts.append(layout_checks(FACE, "Face"))
    return "\n".join(parts)


def _entry(kernel: Kernel) -> str:
    values = ", ".join(f"*({kind}*)arguments[{number}]" for number, kind in enumerate(kernel.arguments))
    return (
        f'extern "C" int launch_{kernel.name}(const unsigned* shape, int backwards, void** arguments) {{\n'
        f"  return host::launch(shape, {int(kernel.phases)}, backwards, [&] {{ {kernel.name}({values}); }});\n}}\n"
    )


def library(file: str) -> Path:
    """The compiled library of ``file``; made where it is not there yet. Any thread or process. Raises ``DeviceError``."""
    compiler = find_compiler()
    if compiler is None:
        raise DeviceError(f"no C++ compiler was found ({', '.join(COMPILERS)}); install g++, or name one in CXX")
    flags = [*FLAGS, *(SANITIZERS if os.environ.get("FFRT_SANITIZE") == "1" else ())]
    text = host_text(file)
    name = _digest([text, compiler, _version(compiler), *flags])
    path = cache_folder() / "kernels" / f"{Path(file).stem}-{name}.so"
    if not path.exists():
        _compile(compiler, flags, text, path)
    return path


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def _of_the_compiler(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the sanitizer's library, which is for Python: a compiler that runs in it takes minutes."""
    return {name: value for name, value in environment.items() if name != "LD_PRELOAD"}


def _compile(compiler: str, flags: list[str], text: str, path: Path) -> None:
    """Compiled beside its place and moved there: who looks sees a whole library or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made, given = Path(folder) / path.name, Path(folder) / "kernels.cc"
        given.write_text(text, encoding="utf-8")
        command = [compiler, *flags, str(given), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_of_the_compiler(os.environ))
        if done.returncode:
            raise DeviceError(f"{compiler} could not compile the kernels for the host:\n{done.stderr[-4000:]}")
        made.replace(path)

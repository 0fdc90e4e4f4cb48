"""Every kernel: its name, its file, what it takes, and how many threads stand together. Needs nothing but NumPy to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    "u8*": np.dtype(np.uint8),
    "u64*": np.dtype(np.uint64),
    "short*": np.dtype(np.int16),
    "int*": np.dtype(np.int32),
    "float*": np.dtype(np.float32),
    "Face*": np.dtype(np.int32),  # rows of ``records.FACE``, as words: CuPy knows no records
    "int": np.dtype(np.int32),
    "float": np.dtype(np.float32),
}
"""What kernels take, as C++ spells it → what the arrays and numbers are made of."""

PIXELS = (32, 8, 1)
"""Threads of a block for pictures: a warp reads along a row."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One ``extern "C" __global__`` function."""

    name: str
    file: str
    arguments: tuple[str, ...]
    """Keys of ``DTYPES``."""
    block: tuple[int, int, int] = PIXELS
    phases: bool = False
    """Threads of a block wait for one another (``PHASE`` in the source)."""

    def grid(self, threads: tuple[int, int, int]) -> tuple[int, int, int]:
        """Blocks in x, y and z that hold at least so many threads."""
        x, y, z = (-(-wanted // of_a_block) for wanted, of_a_block in zip(threads, self.block, strict=True))
        return x, y, z


def _declare(file: str, signatures: dict[str, str], block: tuple[int, int, int] = PIXELS, phases: bool = False) -> dict[str, Kernel]:
    return {name: Kernel(name, file, tuple(types.split()), block, phases) for name, types in signatures.items()}


_BIPLANAR_IN, _BIPLANAR_OUT = "u8* int u8* int int int int int", "int int int int u8* int u8* int"
_FRAME = "u8* int int int Face*"
_LIMIT = "u8* float* float* u8* float*"
_PLANES, _MESH = "float* int int u8* float*", "float* int* u8* int"
_PATCH, _LAYER = "u8* u8* u8*", "u8* u8* float* u8*"

KERNELS: dict[str, Kernel] = {
    **_declare(
        "colour.cu",
        {
            **{f"{name}_to_planes": f"{_BIPLANAR_IN} float* int" for name in ("nv12", "p010")},
            **{f"{name}_to_bgr": f"{_BIPLANAR_IN} u8* int" for name in ("nv12", "p010")},
            **{f"planes_to_{name}": f"float* int {_BIPLANAR_OUT}" for name in ("nv12", "p010")},
            **{f"bgr_to_{name}": f"u8* int {_BIPLANAR_OUT}" for name in ("nv12", "p010")},
            "yuy2_to_planes": "u8* int int int int int float* int",
            "yuy2_to_bgr": "u8* int int int int int u8* int",
            "planes_to_yuy2": "float* int int int int int u8* int",
            "bgr_to_yuy2": "u8* int int int int int u8* int",
            "bgr_to_planes": "u8* int int int int float* int",
            "planes_to_bgr": "float* int int int int u8* int",
        },
    ),
    **_declare(
        "crop.cu",
        {
            "crop_to_tensor": "u8* int int int Face* int float*",
        },
    ),
    **_declare(
        "paste.cu",
        {
            "paste_planes": f"{_FRAME} {_PLANES} {_LIMIT}",
            "lay_patch": f"{_FRAME} {_LAYER}",
            "lay_columns": f"{_FRAME} {_LAYER} float* float*",
        },
    ),
    **_declare("paste.cu", {"lay_rows": f"{_FRAME} {_LAYER} float* float*"}, phases=True),
    **_declare(
        "paste.cu",
        {"planes_to_patch": f"{_FRAME} {_PLANES} {_LIMIT} {_PATCH}", "limit_patch": f"{_FRAME} {_LIMIT} {_PATCH}"},
        block=(32, 1, 1),
        phases=True,
    ),
    **_declare(
        "seam.cu",
        dict.fromkeys(("seam_colours", "seam_membrane", "seam_poisson", "seam_bands"), "u8* Face* float float float* float* u8*"),
        block=(512, 1, 1),
        phases=True,
    ),
    **_declare("hide.cu", {"hide_cells": "u8* int int int Face* u8*"}, block=(256, 1, 1), phases=True),
    **_declare("hide.cu", {"hide_face": "u8* int int int Face* u8* int int float* int float*"}),
    **_declare("mask.cu", {"mask_soften": "float* int* int float* int u8*"}, block=(256, 1, 1), phases=True),
    **_declare(
        "mesh.cu",
        {"mesh_raster": "short* short* float* float* float* float* float* int* int* int Face* float* u64*"},
        block=(32, 1, 1),
        phases=True,
    ),
    **_declare("mesh.cu", {"mesh_draw": f"{_FRAME} {_MESH} {_LIMIT} u64*"}),
    **_declare("mesh.cu", {"mesh_patch": f"{_FRAME} {_MESH} {_LIMIT} u64* {_PATCH}"}, block=(32, 1, 1), phases=True),
    **_declare(
        "overlay.cu",
        {"paint_timecode": "u8* int int int u8* int int", "paint_badge": "u8* int int int u8* int int int int int"},
    ),
}
"""By name."""

OFFERED = frozenset(
    {
        *(f"{name}_to_planes" for name in ("nv12", "p010", "yuy2", "bgr")),
        *(f"planes_to_{name}" for name in ("nv12", "p010", "yuy2", "bgr")),
        *("yuy2_to_bgr", "bgr_to_yuy2", "bgr_to_p010", "paint_timecode"),
    }
)
"""What the program does not launch yet: for sources, sinks and networks that have their pictures on a device in these layouts. Proven like
the rest, all of which is launched."""

"""Every kernel: its name, its file, what it takes, and how many threads stand together. Needs nothing but NumPy to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    "u8*": np.dtype(np.uint8),
    "u16*": np.dtype(np.uint16),
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
            "crop_to_tensor": "u8* int int int Face* int int int float*",
            "crop_to_pixels": "u8* int int int Face* int int float*",
            "sharpen": "float* int int float float*",
        },
    ),
    **_declare(
        "paste.cu",
        {
            "paste_planes": "u8* int int int Face* float* int int u8* float* u8* float* float* float*",
            "planes_to_patch": "Face* float* int int u8* float* u8* float* float* u8* u8*",
            "sharpen_rows": "u8* int int int Face* float* float*",
            "sharpen_columns": "u8* int int int Face* float* float* u8*",
            "lay_patch": "u8* int int int Face* u8* u8* u8* float* u8*",
        },
    ),
    **_declare("seam.cu", {"seam_cells": "u8* int int int Face* u8* u8* u8*"}, block=(32, 1, 1), phases=True),
    **_declare(
        "seam.cu",
        dict.fromkeys(("seam_membrane", "seam_poisson"), "u8* Face* float float* u8*"),
        block=(512, 1, 1),
        phases=True,
    ),
    **_declare("match.cu", {"match_sums": "u8* int int int Face* u8* u8* u8* float*"}, block=(256, 1, 1), phases=True),
    **_declare("match.cu", {"match_fit": "float* int float float*"}, block=(32, 1, 1)),
    **_declare(
        "bands.cu",
        {
            "bands_begin": "u8* int int int Face* u8* u8* u8* float*",
            "bands_halve": "Face* float* int float*",
            "bands_sum": "Face* float* float* float* int float*",
            "bands_lay": "u8* int int int Face* u8* u8* u8* float* float*",
        },
    ),
    **_declare("hide.cu", {"hide_cells": "u8* int int int Face* u8*"}, block=(256, 1, 1), phases=True),
    **_declare("hide.cu", {"hide_face": "u8* int int int Face* u8* int int float* int float*"}),
    **_declare(
        "mask.cu",
        {
            "mask_shapes": "u8* Face* float* float* int",
            "mask_lower": "u8* Face* u8* int int",
            "mask_classes": "float* int int int int u8* u8*",
            "mask_blur_rows": "u8* int int float* int float*",
            "mask_blur_columns": "float* int int float* int u8*",
            "mask_erode": "float* int int int float*",
            "blur_pass": "float* int int float* int int float*",
        },
    ),
    **_declare("mask.cu", {"mask_levels": "float* int u8*"}, block=(256, 1, 1)),
    **_declare(
        "mesh.cu",
        {
            "mesh_look": "u8* int int int short* float* int* u16*",
            "mesh_vertices": "short* short* float* float* float* float* float* int* int float*",
        },
        block=(64, 1, 1),
    ),
    **_declare("mesh.cu", {"mesh_raster": "float* int* int Face* u64*"}, block=(32, 1, 1)),
    **_declare(
        "mesh.cu",
        {
            "mesh_draw": "u8* int int int Face* float* int* u8* int u8* float* float* u64*",
            "mesh_patch": "Face* float* int* u8* int u8* float* float* u64* u8* u8*",
        },
    ),
    **_declare(
        "overlay.cu",
        {"paint_timecode": "u8* int int int u8* int int", "paint_badge": "u8* int int int u8* int int int int int"},
    ),
}
"""By name."""

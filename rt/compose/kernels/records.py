"""What goes up for each face: one record, the same bytes in Python and in C++ (``Face`` in ``pixels.cuh``)."""

from __future__ import annotations

from typing import Any

import numpy as np

FACE = np.dtype(
    [
        ("left", "i4"),
        ("top", "i4"),
        ("width", "i4"),
        ("height", "i4"),
        ("to_crop", "f4", 6),
        ("paste_factor", "i4"),
        ("to_source", "f4", 6),
        ("crop_left", "i4"),
        ("crop_top", "i4"),
        ("crop_columns", "i4"),
        ("crop_rows", "i4"),
        ("crop_factor", "i4"),
        ("to_mask", "f4", 6),
        ("opacity", "i4"),
        ("given_scale", "f4", 3),
        ("given_shift", "f4", 3),
        ("made_scale", "f4", 3),
        ("made_shift", "f4", 3),
        ("bgr", "i4"),
    ]
)
"""Fields as in ``pixels.cuh``, which says what they mean."""


def words(records: np.ndarray) -> np.ndarray:
    """int32 [N, words]: ``records`` [N] as a device takes them."""
    return np.ascontiguousarray(records).view(np.int32).reshape(len(records), -1)


def layout_checks(record: np.dtype[Any], name: str) -> str:
    """C++ that does not compile unless the struct ``name`` has the layout of ``record``."""
    fields: Any = record.fields or {}
    places = [f'static_assert(offsetof({name}, {field}) == {fields[field][1]}, "{field}");' for field in fields]
    return "\n".join([*places, f'static_assert(sizeof({name}) == {record.itemsize}, "{name}");', ""])

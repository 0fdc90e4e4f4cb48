"""What goes up for each face: one record, the same bytes in Python and in C++ (``Face`` in ``pixels.cuh``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cv2
import numpy as np

from engines.align import CropPlan
from engines.mask.shapes import Shapes
from engines.paste import PastePlan
from engines.tensor import Norm

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
        ("crop_side", "i4"),
        ("crop_boost", "i4"),
        ("crop_planes", "i4"),
        ("crop_place", "i4"),
        ("shapes", "i4"),
        ("masks", "i4"),
        ("opacity", "i4"),
        ("given_scale", "f4", 3),
        ("given_shift", "f4", 3),
        ("made_scale", "f4", 3),
        ("made_shift", "f4", 3),
    ]
)
"""Fields as in ``pixels.cuh``, which says what they mean."""


RADIUS_MAX = 32
"""Of the blur that sharpens, pixels: as in ``paste.cu``."""


def words(records: np.ndarray) -> np.ndarray:
    """int32 [N, words]: ``records`` [N] as a device takes them."""
    return np.ascontiguousarray(records).view(np.int32).reshape(len(records), -1)


def layout_checks(record: np.dtype[Any], name: str) -> str:
    """C++ that does not compile unless the struct ``name`` has the layout of ``record``."""
    fields: Any = record.fields or {}
    places = [f'static_assert(offsetof({name}, {field}) == {fields[field][1]}, "{field}");' for field in fields]
    return "\n".join([*places, f'static_assert(sizeof({name}) == {record.itemsize}, "{name}");', ""])


def new_faces(count: int) -> np.ndarray:
    """Records [count] of nothing."""
    return np.zeros(count, FACE)


def set_crop(face: np.ndarray, plan: CropPlan, given: Norm, side: int, *, boost: int = 1, is_planar: bool = True, place: int = 0) -> None:
    """How the crop of ``plan`` is taken, into the record ``face`` [1], and what the network wants of colours.

    ``side``: of the network's picture; ``boost`` of them a side are the crop. ``place``: in the floats of all crops.
    """
    face["crop_side"], face["crop_boost"], face["crop_planes"], face["crop_place"] = side, boost, is_planar, place
    back = cv2.invertAffineTransform(plan.matrix)  # as warpAffine does it, in doubles
    face["to_source"] = back.astype(np.float32).ravel()
    face["crop_left"], face["crop_top"], face["crop_factor"] = plan.left, plan.top, plan.factor
    face["crop_columns"], face["crop_rows"] = plan.columns, plan.rows
    std, mean = np.array(given.std, np.float32), np.array(given.mean, np.float32)
    face["given_scale"], face["given_shift"] = 1 / (255 * std), -mean / std


def set_box(face: np.ndarray, left: int, top: int, width: int, height: int, opacity: float) -> None:
    """Which box of the frame is touched. ``opacity`` in [0, 1]."""
    face["left"], face["top"], face["width"], face["height"] = left, top, width, height
    face["opacity"] = round(opacity * 256)


def set_paste(face: np.ndarray, plan: PastePlan, made: Norm, opacity: float) -> None:
    """How the crop of ``plan`` is laid back, and what the network makes of colours."""
    set_box(face, plan.left, plan.top, plan.width, plan.height, opacity)
    face["to_crop"], face["paste_factor"] = plan.matrix.astype(np.float32).ravel(), plan.factor
    face["made_scale"], face["made_shift"] = 255 * np.array(made.std, np.float32), 255 * np.array(made.mean, np.float32)


def set_shapes(face: np.ndarray, shapes: Sequence[Shapes], segments: np.ndarray, table: np.ndarray) -> bool:
    """Masks that are drawn, into ``segments`` (float32 [N, 6]) and ``table`` (float32 [M, 6]) as ``Limit`` takes them (shapes.cuh).

    False where there is not so much room; nothing is drawn then.
    """
    face["shapes"] = 0
    if len(shapes) > len(table) or sum(len(each.segments) for each in shapes) > len(segments):
        return False
    at = 0
    for row, each in zip(table, shapes, strict=False):
        segments[at : at + len(each.segments)] = each.segments
        row[:] = [at, len(each.segments), *each.ramp.numbers()]
        at += len(each.segments)
    face["shapes"] = len(shapes)
    return True


def set_finish(finish: np.ndarray, sigma: float, amount: int) -> None:
    """How a box is sharpened, into ``finish`` (float32 [3 + 32]): radius, amount, and OpenCV's weights from the middle on, in 256ths."""
    weights = _blur_weights(sigma)
    finish[:2] = len(weights) - 1, amount
    finish[2 : 2 + len(weights)] = weights


@lru_cache(maxsize=64)
def _blur_weights(sigma: float) -> np.ndarray:
    """float32 [radius + 1], 256ths: whole numbers, which OpenCV blurs bytes by; what it makes of one bright byte tells them."""
    radius = (round(6 * sigma + 1) | 1) // 2
    line = np.zeros((1, 4 * radius + 1), np.uint8)
    line[0, 2 * radius] = 255  # of a weight of half at the most, 255 / 256 is rounded to itself
    return cv2.GaussianBlur(line, (0, 0), sigma)[0, 2 * radius : 3 * radius + 1].astype(np.float32)


def set_masks(face: np.ndarray, masks: Sequence[tuple[int, np.ndarray]], side: int, table: np.ndarray) -> None:
    """Masks of networks, into ``table`` (float32 [M, 8]) as ``Limit`` takes them: which of all masks of ``side`` pixels, and by which
    matrix (float [2, 3], picture → mask) it lies in the box, which must be set. Raises ValueError where there is not so much room."""
    if len(masks) > len(table):
        raise ValueError(f"{len(masks)} masks were given for one face; there is room for {len(table)}")
    corner = np.array([face["left"][0], face["top"][0]], np.float32)
    for row, (number, matrix) in zip(table, masks, strict=False):
        moved = matrix.astype(np.float32)
        moved[:, 2] += matrix[:, :2] @ corner
        row[:] = [number, side, *moved.ravel()]
    face["masks"] = len(masks)


CLASSES_MAX = 256
"""Of a mask's network."""


def set_softening(record: np.ndarray, place: int, side: int, step: int, kept: np.ndarray | None) -> None:
    """How ``mask_soften`` makes a mask of ``side`` pixels, into ``record`` (int32 [12]), of what a network wrote from its float ``place``
    on: ``step`` times as large a side; shares, or scores of classes of which ``kept`` (bool [C]) are seen. Raises ValueError for more
    than 256."""
    if kept is not None and len(kept) > CLASSES_MAX:
        raise ValueError(f"a mask's network of {len(kept)} classes was given; up to {CLASSES_MAX} are known")
    bits = np.zeros(CLASSES_MAX, np.uint8)
    bits[: 0 if kept is None else len(kept)] = 0 if kept is None else kept
    record[:4] = place, 0 if kept is None else len(kept), side, step
    record[4:12] = np.packbits(bits, bitorder="little").view("<i4")

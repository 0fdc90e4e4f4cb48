"""Masks that networks make, on a device: crop → network → levels → blur, and nothing passes the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

from engines.align import crop_plan, places
from engines.mask.contract import Mask, MaskRecipe, NetworkMask
from engines.mask.lower import SIDE, SIGMA
from rt.compose.canvas import BATCH, Canvas, MadeMask
from rt.compose.kernels import records
from rt.compose.memory import Memory
from rt.compose.networks import DeviceNetworks
from rt.frame import TrackedFace

RADIUS = round(3 * SIGMA)


class NetworkMasks:
    """Looks at every face once a frame, before any is swapped. One thread."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._networks = DeviceNetworks(memory)
        self._weights = memory.constant(cv2.getGaussianKernel(2 * RADIUS + 1, SIGMA, cv2.CV_32F)[:, 0])
        self._kept: dict[bytes, Any] = {}

    def forget(self) -> None:
        """Frees what is kept for models."""
        self._networks.forget()

    def look(self, canvas: Canvas, masks: Sequence[Mask], faces: Sequence[TrackedFace]) -> None:
        """Asks ``canvas`` for the masks of ``faces``, which it is told."""
        number = 0
        for mask in masks:
            if not isinstance(mask, NetworkMask):
                continue
            matrices = places(mask.aligner, canvas.pixels, [face.points for face in faces], mask.recipe.wanted)
            seen = [(face, matrix) for face, matrix in zip(faces, matrices, strict=True) if matrix is not None]
            for first in range(0, len(seen), BATCH):
                number = self._look(canvas, mask, seen[first : first + BATCH], number)

    def _look(self, canvas: Canvas, mask: NetworkMask, seen: Sequence[tuple[TrackedFace, np.ndarray]], number: int) -> int:
        """``number``: of masks made in this frame before; returns it with these."""
        recipe, count = mask.recipe, len(seen)
        planes = self._crops(canvas, recipe, [matrix for _, matrix in seen])
        (made,) = self._networks.run(canvas, mask, None, planes, [(mask.network.made, (count, *recipe.made))])
        for row, (face, matrix) in enumerate(seen):
            levels = self._soft(canvas, recipe, self._memory.rows(made, row, 1), number + row)
            canvas.masking(face.id).made.append(MadeMask(levels, matrix / np.float32(recipe.side // SIDE)))
        return number + count

    def _crops(self, canvas: Canvas, recipe: MaskRecipe, matrices: Sequence[np.ndarray]) -> Any:
        count, side = len(matrices), recipe.side
        crops = canvas.crops(count)
        for record, matrix in zip(np.split(crops.host["faces"], count), matrices, strict=True):
            records.set_crop(record, crop_plan(matrix, side, canvas.pixels.shape), recipe.given)
        shape = (count, 3, side, side) if recipe.is_planar else (count, side, side, 3)
        self._memory.array("mask crops", math.prod(shape), np.float32)
        planes = self._memory.part("mask crops", 0, shape)
        given, threads = (*canvas.frame, crops.device["faces"], count, side), (side, side, count)
        if recipe.is_planar:
            canvas.launch("crop_to_tensor", threads, *given, 1, planes)
        else:
            canvas.launch("crop_to_pixels", threads, *given, planes)
        return planes

    def _soft(self, canvas: Canvas, recipe: MaskRecipe, made: Any, number: int) -> Any:
        """``engines.mask.lower.softened`` of the mask that is in ``made`` ([1, …])."""
        levels, rows = self._memory.array("mask levels", SIDE * SIDE, np.uint8), self._memory.array("mask rows", SIDE * SIDE, np.float32)
        if recipe.kept is None:
            canvas.launch("mask_levels", (SIDE * SIDE, 1, 1), made, SIDE * SIDE, levels)
        else:
            given = (made, len(recipe.kept), SIDE, SIDE, recipe.side // SIDE, self._classes(recipe.kept))
            canvas.launch("mask_classes", (SIDE, SIDE, 1), *given, levels)
        soft = self._memory.array(f"mask {number}", SIDE * SIDE, np.uint8)
        canvas.launch("mask_blur_rows", (SIDE, SIDE, 1), levels, SIDE, SIDE, self._weights, RADIUS, rows)
        canvas.launch("mask_blur_columns", (SIDE, SIDE, 1), rows, SIDE, SIDE, self._weights, RADIUS, soft)
        return soft

    def _classes(self, kept: np.ndarray) -> Any:
        key = kept.tobytes()
        if key not in self._kept:
            self._kept[key] = self._memory.constant(kept.astype(np.uint8))
        return self._kept[key]

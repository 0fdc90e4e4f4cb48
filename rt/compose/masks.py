"""Masks that networks make, on a device: crops → networks → masks, and nothing passes the host. Two launches a frame for all masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engines.align import crop_plan, places
from engines.mask.contract import Mask, NetworkMask
from engines.mask.lower import SIDE, blur_weights
from rt.compose.canvas import BATCH, Canvas, MadeMask
from rt.compose.kernels import records
from rt.compose.memory import Fields, Memory
from rt.compose.networks import DeviceNetworks
from rt.frame import TrackedFace

SOFTENING: Fields = {"masks": (np.int32, (BATCH, 12))}

TILE_THREADS, TILE = 256, 32
"""As in ``mask.cu``."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A mask's look at one face."""

    mask: NetworkMask
    face: TrackedFace
    matrix: np.ndarray


class NetworkMasks:
    """Looks at every face once a frame, before any is swapped. One thread."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._networks = DeviceNetworks(memory)
        weights = blur_weights()
        self._radius, self._weights = len(weights) // 2, memory.constant(256 * weights)

    def forget(self) -> None:
        """Frees what is kept for models."""
        self._networks.forget()

    def look(self, canvas: Canvas, masks: Sequence[Mask], faces: Sequence[TrackedFace]) -> None:
        """Asks ``canvas`` for the masks of ``faces``, which it is told."""
        looks = []
        for mask in masks:
            if isinstance(mask, NetworkMask):
                matrices = places(mask.aligner, canvas.pixels, [face.points for face in faces], mask.recipe.wanted)
                looks += [_Look(mask, face, matrix) for face, matrix in zip(faces, matrices, strict=True) if matrix is not None]
        if not looks:
            return
        canvas.made_masks = self._memory.array("masks", len(looks) * SIDE * SIDE, np.uint8)
        crops = self._cut(canvas, looks)
        made = self._run(canvas, looks, crops)
        self._soften(canvas, looks, made)
        for number, look in enumerate(looks):
            step = np.float32(look.mask.recipe.side // SIDE)
            canvas.masking(look.face.id).made.append(MadeMask(number, look.matrix / step))

    def _cut(self, canvas: Canvas, looks: Sequence[_Look]) -> list[int]:
        """Where the crops begin in the memory called "mask crops", floats."""
        starts = _starts([3 * look.mask.recipe.side**2 for look in looks])
        planes = self._memory.array("mask crops", starts[-1], np.float32)
        for first in range(0, len(looks), BATCH):
            some = looks[first : first + BATCH]
            crops = canvas.crops(len(some))
            for number, look in enumerate(some):
                recipe, record = look.mask.recipe, crops.host["faces"][number : number + 1]
                plan, place = crop_plan(look.matrix, recipe.side, canvas.pixels.shape), starts[first + number]
                records.set_crop(record, plan, recipe.given, recipe.side, is_planar=recipe.is_planar, place=place)
            side = max(look.mask.recipe.side for look in some)
            canvas.launch("crop_to_tensor", (side, side, len(some)), *canvas.frame, crops.device["faces"], len(some), planes)
        return starts

    def _run(self, canvas: Canvas, looks: Sequence[_Look], crops: Sequence[int]) -> list[int]:
        """Where what the networks gave begins in the memory called "masks made", floats."""
        starts = _starts([math.prod(look.mask.recipe.made) for look in looks])
        self._memory.array("masks made", starts[-1], np.float32)
        first = 0
        while first < len(looks):
            mask = looks[first].mask
            last = next((k for k in range(first, len(looks)) if looks[k].mask is not mask or k - first == BATCH), len(looks))
            recipe, count = mask.recipe, last - first
            shape = (3, recipe.side, recipe.side) if recipe.is_planar else (recipe.side, recipe.side, 3)
            given = self._memory.part("mask crops", crops[first], (count, *shape))
            made = self._memory.part("masks made", starts[first], (count, *recipe.made))
            self._networks.run(canvas, mask, None, given, [(mask.network.made, made)])
            first = last
        return starts

    def _soften(self, canvas: Canvas, looks: Sequence[_Look], made: Sequence[int]) -> None:
        """``engines.mask.lower.softened`` of all of them."""
        scores = self._memory.array("masks made", 0, np.float32)
        across = -(-SIDE // TILE)
        for first in range(0, len(looks), BATCH):
            some = looks[first : first + BATCH]
            softening = canvas.parcel("softening", SOFTENING)
            for record, look, place in zip(softening.host["masks"], some, made[first:], strict=False):
                recipe = look.mask.recipe
                records.set_softening(record, place, SIDE, recipe.side // SIDE, recipe.kept)
            out = self._memory.part("masks", first * SIDE * SIDE, (len(some), SIDE, SIDE))
            given = (scores, softening.device["masks"], len(some), self._weights, self._radius)
            canvas.launch("mask_soften", (TILE_THREADS * across, across, len(some)), *given, out)


def _starts(sizes: Sequence[int]) -> list[int]:
    """Where each begins in a row, and the end."""
    return [0, *map(int, np.cumsum(sizes))]

"""Networks that work on crops: the device takes them from the picture and lays the network's picture back, so that neither leaves it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engines.align import crop_plan, places
from engines.crop_model import CropModel, CropRecipe, works_on_crops
from engines.paste import paste_plan, soft_box
from rt.compose.canvas import BATCH, BOX, MAKE, WALK, Canvas
from rt.compose.kernels import records
from rt.compose.memory import Memory
from rt.compose.networks import DeviceNetworks
from rt.compose.painters import PainterKind, painters
from rt.frame import TrackedFace


class CropPainter:
    """Keeps ``rt.compose.painters.Painter``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._networks = DeviceNetworks(memory)
        self._soft: dict[tuple[int, float], Any] = {}

    def paint(self, canvas: Canvas, model: CropModel, identity: Any, faces: Sequence[TrackedFace]) -> list[bool]:
        recipe = model.crops
        assert recipe is not None, "a painter is given what it takes"
        matrices = places(model.aligner, canvas.pixels, [face.points for face in faces], recipe.wanted)
        seen = [(face, matrix) for face, matrix in zip(faces, matrices, strict=True) if matrix is not None]
        drawn: set[int] = set()
        for first in range(0, len(seen), BATCH):
            drawn |= self._paint(canvas, model, recipe, identity, seen[first : first + BATCH])
        return [face.id in drawn for face in faces]

    def forget(self) -> None:
        """The memory of crops is kept, which the next model takes."""
        self._soft.clear()
        self._networks.forget()

    def _paint(
        self, canvas: Canvas, model: CropModel, recipe: CropRecipe, identity: Any, seen: Sequence[tuple[TrackedFace, np.ndarray]]
    ) -> set[int]:
        """The ids of those of which anything is drawn."""
        whole, parts = recipe.side * recipe.boost, recipe.boost**2
        crops, count, side = canvas.crops(len(seen)), len(seen) * parts, recipe.side
        for number, (_, matrix) in enumerate(seen):
            plan, place = crop_plan(matrix, whole, canvas.pixels.shape), number * parts * 3 * side * side
            records.set_crop(crops.host["faces"][number : number + 1], plan, recipe.given, side, boost=recipe.boost, place=place)
        planes = self._pictures("given", (count, 3, side, side))
        canvas.launch("crop_to_tensor", (whole, whole, len(seen)), *canvas.frame, crops.device["faces"], len(seen), planes)
        wanted = [(model.network.made, (count, 3, side, side))]
        if recipe.says_mask and model.network.shown is not None:
            wanted.append((model.network.shown, (count, 1, side, side)))
        pictures, *masks = self._networks.run(canvas, model, identity, planes, wanted)
        drawn = set()
        for number, (face, matrix) in enumerate(seen):
            own, *own_shown = (self._memory.rows(array, number * parts, parts) for array in (pictures, *masks))
            if self._lay(canvas, recipe, face.id, matrix, own, own_shown[0] if own_shown else None):
                drawn.add(face.id)
        return drawn

    def _lay(self, canvas: Canvas, recipe: CropRecipe, face_id: int, matrix: np.ndarray, picture: Any, shown: Any) -> bool:
        whole = recipe.side * recipe.boost
        plan = paste_plan(matrix, whole, canvas.pixels.shape)
        if plan is None:
            return False
        box = canvas.parcel("box", BOX)
        records.set_paste(box.host["face"], plan, recipe.made, canvas.opacity)
        source = (picture, recipe.side, recipe.boost, self._soft_box(whole, recipe.edge), shown, *canvas.limit(box, face_id))
        if canvas.is_direct:
            canvas.launch("paste_planes", WALK, *canvas.frame, box.device["face"], *source)
        else:
            canvas.launch("planes_to_patch", MAKE, *canvas.frame, box.device["face"], *source, *canvas.patch())
            canvas.lay(box, *canvas.patch())
        return True

    def _pictures(self, name: str, shape: tuple[int, ...]) -> Any:
        """Memory of float32 in ``shape``."""
        self._memory.array(name, math.prod(shape), np.float32)
        return self._memory.part(name, 0, shape)

    def _soft_box(self, side: int, edge: float) -> Any:
        if (side, edge) not in self._soft:
            self._soft[side, edge] = self._memory.constant(soft_box(side, edge))
        return self._soft[side, edge]


painters.register("crops")(PainterKind(1, works_on_crops, works_on_crops, CropPainter))

"""Any other swapper: it makes its patch of the picture as it was filmed, on the processor, and the patch goes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engines.face import Patch
from engines.swap.contract import BatchSwapper
from rt.compose.canvas import BOX, MAKE, Canvas
from rt.compose.kernels import records
from rt.compose.memory import Memory
from rt.compose.painters import PainterKind, painters
from rt.frame import TrackedFace


class PatchPainter:
    """Keeps ``rt.compose.painters.Painter``. Each patch goes up whole: right, and slower than what is drawn on the device."""

    def __init__(self, memory: Memory) -> None:
        """Nothing is kept."""

    def paint(self, canvas: Canvas, model: Any, identity: Any, faces: Sequence[TrackedFace]) -> list[bool]:
        if len(faces) > 1 and isinstance(model, BatchSwapper):
            patches = model.swap_all(canvas.pixels, [face.points for face in faces], identity)
        else:
            patches = [_copied(model.swap(canvas.pixels, face.points, identity, face.id, canvas.captured_ns)) for face in faces]
        return [self._lay(canvas, face, patch) for face, patch in zip(faces, patches, strict=True)]

    def forget(self) -> None:
        """Nothing is kept."""

    def _lay(self, canvas: Canvas, face: TrackedFace, patch: Patch | None) -> bool:
        if patch is None:
            return False
        canvas.masking(face.id).lower(patch)
        height, width = patch.alpha.shape
        box = canvas.parcel("box", BOX)
        records.set_box(box.host["face"], patch.left, patch.top, width, height, canvas.opacity)
        pixels, alpha = canvas.sent(np.ascontiguousarray(patch.pixels)), canvas.sent(np.ascontiguousarray(patch.alpha))
        (made, table), cells = canvas.made_limit(box, face.id), canvas.cells()
        if cells is not None or made is not None:
            limit = (None, None, None, made, table)
            canvas.launch("limit_patch", MAKE, *canvas.frame, box.device["face"], *limit, pixels, alpha, cells)
        canvas.lay(box, pixels, alpha, cells)
        return True


def _copied(patch: Patch | None) -> Patch | None:
    """It is valid until the swapper's next."""
    return None if patch is None else Patch(patch.pixels.copy(), patch.alpha.copy(), patch.left, patch.top)


painters.register("patches")(PainterKind(9, lambda swapper: True, lambda enhancer: False, PatchPainter))

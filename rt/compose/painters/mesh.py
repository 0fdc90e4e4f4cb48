"""The embedded swapper's face, drawn by the device: of a face seven kilobytes go up in a frame, in two pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engines.mesh.topology import topology
from engines.swap.mesh.identity import MeshIdentity
from engines.swap.mesh.swapper import cover_of
from rt.compose.canvas import MAKE, WALK, Canvas
from rt.compose.kernels import records
from rt.compose.kernels.mesh import NUMBERS, VERTEX_FLOATS, mesh_tables, numbers_of
from rt.compose.memory import Fields, Memory
from rt.compose.painters import PainterKind, painters
from rt.frame import TrackedFace

LIGHT: Fields = {"light": (np.int16, (468, 4))}


class MeshPainter:
    """Keeps ``rt.compose.painters.Painter``."""

    def __init__(self, memory: Memory) -> None:
        tables = mesh_tables()
        self._memory = memory
        self._count = tables.vertices
        self._up: Fields = {
            "face": (records.FACE, (1,)),
            "numbers": (np.float32, (NUMBERS,)),
            "points": (np.int16, (tables.vertices, 3)),
        }
        self._normals, self._uv = map(memory.constant, (tables.normals, tables.uv))
        self._covers: dict[float, Any] = {}  # by the seam's width
        self._ring, self._triangles = map(memory.constant, (tables.ring, tables.triangles))
        self._vertices = memory.array("vertices", self._count * VERTEX_FLOATS, np.float32)
        self._worn: dict[int, _Worn] = {}  # by the identity's address, which it holds

    def paint(self, canvas: Canvas, model: Any, identity: MeshIdentity, faces: Sequence[TrackedFace]) -> list[bool]:
        if id(identity) not in self._worn:
            self._worn[id(identity)] = _Worn(self._memory, identity)
        return [self._paint(canvas, model, self._worn[id(identity)], face) for face in faces]

    def forget(self) -> None:
        self._worn.clear()
        self._covers.clear()

    def _paint(self, canvas: Canvas, swapper: Any, worn: _Worn, face: TrackedFace) -> bool:
        plan = swapper.plan(canvas.pixels, face.points, worn.identity, face.id, canvas.captured_ns)
        if plan is None:
            return False
        texture = worn.texture_for(plan.width_px)
        side = texture.shape[0]
        points, light = canvas.parcel("mesh points", self._up), canvas.parcel("mesh light", LIGHT)
        left, top, right, bottom = plan.box
        records.set_box(points.host["face"], left, top, right - left, bottom - top, canvas.opacity)
        points.host["numbers"][:], points.host["points"][:] = numbers_of(plan, side), plan.offsets.counts
        light.host["light"][:] = plan.light.counts

        box, count = points.device["face"], len(self._triangles)
        up = (points.device["points"], light.device["light"], points.device["numbers"])
        fixed = (self._normals, worn.colours, self._cover(swapper.seam_width), self._uv, self._ring)
        nearest = canvas.per_pixel("nearest", np.uint64, zeroed=True)
        canvas.launch("mesh_raster", (32 * count, 1, 1), *up, *fixed, self._triangles, count, box, self._vertices, nearest)
        drawn = (self._vertices, self._triangles, texture, side, *canvas.limit(points, face.id), nearest)
        if canvas.is_direct:
            canvas.launch("mesh_draw", WALK, *canvas.frame, box, *drawn)
        else:
            canvas.launch("mesh_patch", MAKE, *canvas.frame, box, *drawn, *canvas.patch())
            canvas.lay(points, *canvas.patch())
        return True

    def _cover(self, seam_width: float) -> Any:
        if seam_width not in self._covers:
            self._covers[seam_width] = self._memory.constant(cover_of(topology(), seam_width))
        return self._covers[seam_width]


class _Worn:
    """An identity on the device, all sizes of its texture: a face that comes nearer is to wait for nothing."""

    def __init__(self, memory: Memory, identity: MeshIdentity) -> None:
        self.identity = identity
        self.colours = memory.constant(identity.colours)
        self._textures = {texture.shape[0]: memory.constant(texture) for texture in identity.textures}

    def texture_for(self, width_px: float) -> Any:
        return self._textures[self.identity.texture_for(width_px).shape[0]]


def _takes(swapper: Any) -> bool:
    from engines.swap.mesh.swapper import MeshSwapper

    return isinstance(swapper, MeshSwapper)


painters.register("mesh")(PainterKind(0, _takes, lambda enhancer: False, MeshPainter))

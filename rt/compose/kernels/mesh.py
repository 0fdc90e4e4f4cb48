"""What the kernels of ``mesh.cu`` take: what no picture changes, what an identity is, and what goes up for a face in every frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.mesh.topology import VERTICES, topology
from engines.swap.mesh.colour import LOG_OFFSET
from engines.swap.mesh.facing import EDGE_ON, PLAIN, Facing
from engines.swap.mesh.light import CONTRAST_FALL, CONTRAST_MIN
from engines.swap.mesh.swapper import MeshPlan, cover_of

NUMBERS = 23
"""Floats of a face: see ``mesh_vertices``."""

VERTEX_FLOATS = 12
"""Of a ``Vertex``."""

LARGEST = 32767


@dataclass(frozen=True)
class MeshTables:
    """The same for every face."""

    normals: np.ndarray
    """float32 [468, 3]."""
    cover: np.ndarray
    """float32 [468 + R]."""
    uv: np.ndarray
    """float32 [468 + R, 2]."""
    ring: np.ndarray
    """int32 [R]."""
    weights: np.ndarray
    """float32 [R, 468]: how a ring vertex is mixed of the others."""
    triangles: np.ndarray
    """int32 [T, 3]."""

    @property
    def vertices(self) -> int:
        """468 + R."""
        return len(self.cover)


def mesh_tables() -> MeshTables:
    """Made once for a device: some 10 ms."""
    mesh = topology()
    weights = mesh.extend(np.eye(VERTICES, dtype=np.float32))[VERTICES:]  # a ring vertex is linear in the others
    return MeshTables(Facing(mesh).normals.astype(np.float32), cover_of(mesh), mesh.uv, mesh.ring, weights, mesh.drawn)


@dataclass(frozen=True, slots=True)
class MeshRecord:
    """What goes up for a face: 2808 bytes of points, as many of light, 92 of numbers."""

    points: np.ndarray
    """int16 [468, 3]."""
    light: np.ndarray
    """int16 [468, 3]."""
    numbers: np.ndarray
    """float32 [23]."""


def packed(plan: MeshPlan, texture_side: int) -> MeshRecord:
    """``plan`` as the kernels take it. A place is kept to 1/65534 of the face's size, light to as much of its span."""
    middle = (plan.points.max(0) + plan.points.min(0)) / 2
    points, scale = _whole_numbers(plan.points - middle)
    light, light_scale = _whole_numbers(plan.gain)
    left, top = plan.box[:2]
    rest = [light_scale, plan.kept, CONTRAST_FALL, CONTRAST_MIN, LOG_OFFSET, texture_side, EDGE_ON, PLAIN, left, top]
    numbers = np.concatenate([[scale], middle, _of_any_size(plan.turn).ravel(), rest]).astype(np.float32)
    return MeshRecord(points, light, numbers)


def _of_any_size(turn: np.ndarray) -> np.ndarray:
    """Only the direction of a turned normal counts: small numbers keep float32 from losing them."""
    scaled: np.ndarray = turn / max(float(np.abs(turn).max()), 1e-30)
    return scaled


def _whole_numbers(values: np.ndarray) -> tuple[np.ndarray, float]:
    """int16 of the shape of ``values``, and what they are to be multiplied by."""
    scale = max(float(np.abs(values).max()), 1e-6) / LARGEST
    return np.round(values / scale).astype(np.int16), scale

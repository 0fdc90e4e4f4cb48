"""What the kernels of ``mesh.cu`` take: what no picture changes, and what goes up for a face in every frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.mesh.topology import topology
from engines.swap.mesh.facing import EDGE_ON, PLAIN, facing
from engines.swap.mesh.plan import MeshPlan
from engines.swap.mesh.swapper import cover_of

NUMBERS = 19
"""Floats of a face: see ``Mesh`` in ``mesh.cu``."""

VERTEX_FLOATS = 12
"""Of a ``Vertex``."""


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
    triangles: np.ndarray
    """int32 [T, 3]."""

    @property
    def vertices(self) -> int:
        """468 + R."""
        return len(self.cover)


def mesh_tables() -> MeshTables:
    """Made once for a device: some 10 ms."""
    mesh = topology()
    return MeshTables(facing().normals, cover_of(mesh), mesh.uv, mesh.ring, mesh.drawn)


def numbers_of(plan: MeshPlan, texture_side: int) -> np.ndarray:
    """float32 [19]: what ``Mesh`` needs beside the plan's points and light."""
    rest = [plan.light.step, texture_side, EDGE_ON, PLAIN - EDGE_ON, *plan.box[:2]]
    return np.concatenate([[plan.offsets.step], plan.middle, plan.turn.ravel(), rest]).astype(np.float32)

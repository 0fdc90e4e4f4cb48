"""Which parts of the face are turned towards the viewer: what is seen edge-on is not drawn, for it would be a smear."""

from __future__ import annotations

from functools import cache

import numpy as np

from engines.mesh.topology import Topology, smoothstep, squared_distances, topology

EDGE_ON, PLAIN = 0.10, 0.42
"""Cosine of the angle to the viewer at which a part is gone, and from which it is drawn wholly: as for the photo."""

SIGMA = 0.12
"""Inter-ocular distances over which the surface is averaged, so that nostrils and lips are not taken for silhouettes."""


class Facing:
    """The mean face's normals, turned as the face is: landmarks' own depth is too rough for theirs. Immutable; any thread."""

    def __init__(self, mesh: Topology) -> None:
        a, b, c = (mesh.shape[mesh.triangles[:, k]].astype(np.float64) for k in range(3))
        away = squared_distances(mesh.shape, (a + b + c) / 3)
        normals = np.exp(-away / (2 * SIGMA**2)) @ np.cross(b - a, c - a)
        self.normals = (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32)
        self._fit = np.linalg.pinv(mesh.shape.astype(np.float64) - mesh.shape.mean(0, dtype=np.float64))

    def turn(self, points: np.ndarray) -> np.ndarray:
        """float32 [3, 3]: what ``normals`` (float32 [468, 3]) are multiplied by to point as those of the face at ``points`` [468, 3]."""
        linear = self._fit @ (points - points.mean(0))  # by least squares, from the mean face to the points
        normals = np.cross(linear[[1, 2, 0]], linear[[2, 0, 1]])  # they go by its cofactors
        turn: np.ndarray = normals / max(float(np.abs(normals).max()), 1e-30)  # only directions count, and float32 is to hold them
        return turn.astype(np.float32)

    def share(self, turn: np.ndarray) -> np.ndarray:
        """float32 [468] in [0, 1]: 1 where the surface of a face that is turned by ``turn`` faces the viewer, 0 where it is edge-on or
        behind. Written out as ``mesh.cu`` does it."""
        across, down, away = self.normals.T
        x, y, z = (across * turn[0, k] + down * turn[1, k] + away * turn[2, k] for k in range(3))
        length = np.sqrt(x * x + y * y + z * z) + np.float32(1e-12)
        return smoothstep(-z / length, EDGE_ON, PLAIN).astype(np.float32)


@cache
def facing() -> Facing:
    """Of the mesh there is. Built once: 10 ms, which every photo and every new swapper would take again."""
    return Facing(topology())

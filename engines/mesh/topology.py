"""The mesh that is drawn: FaceMesh's 468 vertices, rings inside eyes and mouth, a flat map, and how near vertices are.

Lengths are in inter-ocular distances of the mean face; x to the viewer's right, y down, z away from the viewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from engines.mesh import regions

VERTICES = 468

EYE_INWARD, EYE_SHRINK = 0.45, 0.93
"""How far the ring inside an eye lies toward the other lid (0.5 is the middle), and shrunk about the eye's centre."""

MOUTH_INWARD = 0.55
"""How far the ring inside the mouth lies toward the mouth's middle line."""


@dataclass(frozen=True)
class Topology:
    """Everything about the mesh that no picture changes."""

    shape: np.ndarray
    """float32 [468, 3]: the mean face."""
    mirror: np.ndarray
    """int32 [468]: the vertex on the other side."""
    triangles: np.ndarray
    """int32 [T, 3] of FaceMesh alone, corners in one sense: that of those which face the viewer."""
    drawn: np.ndarray
    """int32 [T', 3]: the same and the rings inside eyes and mouth; indices up to ``len(uv)``."""
    ring: np.ndarray
    """int32 [R]: the vertex outside of each ring vertex, from which it takes its colour."""
    uv: np.ndarray
    """float32 [468 + R, 2] in [0, 1]: the flat map."""
    texels_per_iod: float
    """Width of one inter-ocular distance in the flat map, as a share of its side."""
    from_oval: np.ndarray
    """float32 [468]: the way along the mesh to the nearest vertex of the oval."""
    from_eyes: np.ndarray
    from_brows: np.ndarray
    skin: np.ndarray
    """float32 [468]: area around a vertex (mean 1) where it is skin; 0 on brows, lips and eyes, a fifth of it at the nostrils."""
    area: np.ndarray
    """float32 [468]: area around a vertex, mean 1."""

    def extend(self, points: np.ndarray) -> np.ndarray:
        """float32 [468, 3] → float32 [468 + R, 3]: the ring vertices added."""
        return _extend(points)

    def kernel(self, sigma: float, sigma_at_oval: float | None = None) -> np.ndarray:
        """float32 [468, 468], only to be read: Gaussian nearness of vertices, row by row; sigma falls to ``sigma_at_oval`` over the last
        0.35."""
        return _kernel(sigma, sigma_at_oval)


@cache
def topology() -> Topology:
    """Built once: 10 ms."""
    with np.load(Path(str(files("assets") / "mesh" / "topology.npz"))) as file:
        data = {name: file[name] for name in file.files}
    shape, triangles = data["shape"], data["triangles"]
    uv, side = _flat_map(shape)
    area = _vertex_area(shape, triangles)
    skin = area * _skin_share(data["from_eyes"])
    return Topology(
        shape=shape,
        mirror=data["mirror"],
        triangles=triangles,
        drawn=np.concatenate([triangles, _ring_triangles(triangles)]).astype(np.int32),
        ring=np.array([v for ring in _rings() for v in ring], np.int32),
        uv=_extend(np.c_[uv, np.zeros(VERTICES, np.float32)])[:, :2].copy(),
        texels_per_iod=side,
        from_oval=data["from_oval"],
        from_eyes=data["from_eyes"],
        from_brows=data["from_brows"],
        skin=skin.astype(np.float32),
        area=area.astype(np.float32),
    )


@cache
def _kernel(sigma: float, sigma_at_oval: float | None) -> np.ndarray:
    """Built once: 5 ms, which every photo and every new swapper would take again."""
    mesh = topology()
    sigmas = np.full(VERTICES, sigma)
    if sigma_at_oval is not None:
        sigmas = sigma_at_oval + (sigma - sigma_at_oval) * np.clip(mesh.from_oval / 0.35, 0, 1)
    away = squared_distances(mesh.shape, mesh.shape)
    kernel: np.ndarray = np.exp(-away / (2 * sigmas[:, None] ** 2)).astype(np.float32)
    kernel.flags.writeable = False
    return kernel


def squared_distances(those: np.ndarray, others: np.ndarray) -> np.ndarray:
    """float64 [N, M] between points [N, 3] and [M, 3]. Axis by axis: along one of three, NumPy takes four times as long."""
    x, y, z = ((those[:, None, axis].astype(np.float64) - others[None, :, axis]) ** 2 for axis in range(3))
    away: np.ndarray = x + y + z
    return away


def smoothstep(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below ``low``, 1 above ``high`` (either way round), 3t² - 2t³ between."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def brow_line(shape: np.ndarray) -> float:
    """Mean height of the brows on the mean face."""
    return float(shape[regions.BROWS, 1].mean())


def _rings() -> tuple[list[int], ...]:
    return regions.RIGHT_EYE, regions.LEFT_EYE, regions.INNER_MOUTH


def _extend(points: np.ndarray) -> np.ndarray:
    eyes = [_inside_eye(points[ring]) for ring in _rings()[:2]]
    return np.concatenate([points, *eyes, _inside_mouth(points[regions.INNER_MOUTH])]).astype(np.float32)


def _inside_eye(lids: np.ndarray) -> np.ndarray:
    """The other lid's point at the same distance from the corner is the ring read backwards."""
    other = lids[-np.arange(len(lids)) % len(lids)]
    inner = lids + (0.5 * (lids + other) - lids) * EYE_INWARD
    centre = lids.mean(0)
    return centre + (inner - centre) * EYE_SHRINK


def _inside_mouth(lips: np.ndarray) -> np.ndarray:
    other = lips[-np.arange(len(lips)) % len(lips)]
    return lips + (0.5 * (lips + other) - lips) * MOUTH_INWARD


def _ring_triangles(triangles: np.ndarray) -> np.ndarray:
    """Two triangles for each side of a ring, turned the way the mesh's own are: they walk its border against it."""
    walked = {(int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3)}
    corners: list[tuple[int, int, int]] = []
    first = VERTICES
    for ring in _rings():
        count = len(ring)
        for k in range(count):
            following = (k + 1) % count
            pair = (ring[k], ring[following], first + following), (ring[k], first + following, first + k)
            against = (ring[k], ring[following]) in walked
            corners += [(c, b, a) if against else (a, b, c) for a, b, c in pair]
        first += count
    return np.array(corners, np.int32)


def _flat_map(shape: np.ndarray) -> tuple[np.ndarray, float]:
    """The face from the front, its sides spread so that cheeks and temples get texels; [468, 2], and texels an IOD."""
    across = shape[:, 0] * (1 + 0.35 * np.clip((shape[:, 2] + 0.1) / 0.8, 0, 1))
    half = np.abs(across).max() * 1.02
    low, high = shape[:, 1].min(), shape[:, 1].max()
    uv = np.stack([0.5 + across / (2 * half), 0.015 + 0.97 * (shape[:, 1] - low) / (high - low)], 1)
    return uv.astype(np.float32), float(1 / (2 * half))


def _vertex_area(shape: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    a, b, c = (shape[triangles[:, k]] for k in range(3))
    twice = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    area = np.zeros(VERTICES)
    for k in range(3):
        np.add.at(area, triangles[:, k], twice / 3)
    return area / area.mean()


def _skin_share(from_eyes: np.ndarray) -> np.ndarray:
    share = np.ones(VERTICES)
    share[regions.BROWS] = 0
    share[regions.LIPS] = 0
    share[regions.NOSTRILS] = 0.2
    share[from_eyes < 0.07] = 0
    return share

#!/usr/bin/env python3
"""Writes assets/mesh/topology.npz: python scripts/make_mesh_assets.py WHEEL SHAPE.npz [OUT]

WHEEL is mediapipe 0.10.21 (Apache-2.0), whose list of edges names the mesh's triangles. SHAPE.npz holds our own measurements:
`M` [468, 3], the mean face of 30 people in inter-ocular distances, and `mir` [468], the index of each vertex's mirror.
Needs scipy (the extra `dev`) for distances along the mesh.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from engines.mesh import regions


def read_triangles(wheel: Path) -> np.ndarray:
    """int32 [T, 3]: the tessellation's edges stand in threes, one triangle after the other."""
    text = zipfile.ZipFile(wheel).read("mediapipe/python/solutions/face_mesh_connections.py").decode()
    body = re.search(r"FACEMESH_TESSELATION = frozenset\(\[(.*?)\]\)", text, re.S)[1]
    edges = [(int(a), int(b)) for a, b in re.findall(r"\((\d+),\s*(\d+)\)", body)]
    corners = ({*edges[k], *edges[k + 1], *edges[k + 2]} for k in range(0, len(edges), 3))
    return np.array(sorted({tuple(sorted(c)) for c in corners}), np.int32)


def distances(shape: np.ndarray, triangles: np.ndarray, start: list[int]) -> np.ndarray:
    """float32 [468]: the way along the mesh's edges from each vertex to the nearest of ``start``."""
    edges = np.unique(np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]]), 1), axis=0)
    length = np.linalg.norm(shape[edges[:, 0]] - shape[edges[:, 1]], axis=1)
    graph = csr_matrix((np.r_[length, length], (np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]])), (468, 468))
    return dijkstra(graph, indices=start).min(0).astype(np.float32)


def orient(triangles: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """All corners in one sense: neighbours walk their common edge in opposite directions, and most face the viewer.

    Not each by itself: at ears and mouth corners the mean face folds over, and what is turned away there must stay so.
    """
    turned = [tuple(int(v) for v in t) for t in triangles]
    beside: dict[frozenset[int], list[int]] = {}
    for t, corners in enumerate(turned):
        for edge in walked(corners):
            beside.setdefault(frozenset(edge), []).append(t)
    done, waiting = {0}, [0]
    while waiting:
        t = waiting.pop()
        for edge in walked(turned[t]):
            for other in set(beside[frozenset(edge)]) - done:
                if edge in walked(turned[other]):
                    turned[other] = turned[other][::-1]
                done.add(other)
                waiting.append(other)
    out = np.array(turned, np.int32)
    a, b, c = (shape[out[:, k]] for k in range(3))
    return out if (np.cross(b - a, c - a)[:, 2] > 0).mean() < 0.5 else np.ascontiguousarray(out[:, ::-1])


def walked(corners: tuple[int, ...]) -> list[tuple[int, int]]:
    """The three edges of a triangle, in its sense."""
    a, b, c = corners
    return [(a, b), (b, c), (c, a)]


def main(wheel: str, measured: str, out: str = "assets/mesh/topology.npz") -> None:
    with np.load(measured) as file:
        shape, mirror = file["M"], file["mir"]
    triangles = read_triangles(Path(wheel))
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        out,
        triangles=orient(triangles, shape),
        shape=shape.astype(np.float32),
        mirror=mirror.astype(np.int32),
        from_oval=distances(shape, triangles, regions.OVAL),
        from_eyes=distances(shape, triangles, regions.EYES),
        from_brows=distances(shape, triangles, regions.BROWS),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

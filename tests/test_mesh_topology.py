"""The mesh as a surface: what must hold of triangles, rings, mirror and flat map, whatever the picture."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.mesh import regions
from engines.mesh.topology import VERTICES, topology

ROOT = Path(__file__).parent.parent

RINGS = [regions.RIGHT_EYE, regions.LEFT_EYE, regions.INNER_MOUTH]


def directed(triangles: np.ndarray) -> Counter[tuple[int, int]]:
    """How often each edge is walked in each direction."""
    return Counter((int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3))


def border(triangles: np.ndarray) -> set[frozenset[int]]:
    """Edges with a triangle on one side only."""
    walked = directed(triangles)
    return {frozenset(edge) for edge in walked if edge[::-1] not in walked}


def loop(ring: list[int]) -> set[frozenset[int]]:
    return {frozenset((a, b)) for a, b in zip(ring, ring[1:] + ring[:1], strict=True)}


def test_the_borders_are_the_oval_the_eyes_and_the_mouth() -> None:
    wanted = loop(regions.OVAL).union(*(loop(ring) for ring in RINGS))
    assert border(topology().triangles) == wanted


def test_a_disc_with_three_holes() -> None:
    """Euler: vertices - edges + faces = 1 - holes."""
    triangles = topology().triangles
    edges = {frozenset(edge) for edge in directed(triangles)}
    assert len(np.unique(triangles)) - len(edges) + len(triangles) == 1 - 3


def test_rings_narrow_the_holes_and_leave_the_oval() -> None:
    mesh, first = topology(), VERTICES
    wanted = loop(regions.OVAL)
    for ring in RINGS:
        wanted |= loop(list(range(first, first + len(ring))))
        first += len(ring)
    assert border(mesh.drawn) == wanted
    assert first == len(mesh.uv)


@pytest.mark.parametrize("name", ["triangles", "drawn"])
def test_neighbours_are_turned_the_same_way(name: str) -> None:
    assert set(directed(getattr(topology(), name)).values()) == {1}


def test_the_flat_map_does_not_fold() -> None:
    mesh = topology()
    assert mesh.uv.min() > 0
    assert mesh.uv.max() < 1
    a, b, c = (mesh.uv[mesh.drawn[:, k]].astype(np.float64) for k in range(3))
    twice = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    # Ears, mouth corners and the ring's ends are edge-on or folded in the mean face itself.
    assert (twice > 0).sum() <= 12
    assert np.abs(twice[twice > 0]).sum() < 0.005 * np.abs(twice).sum()


def test_the_mirror_is_its_own_inverse_and_turns_the_face_over() -> None:
    mesh = topology()
    np.testing.assert_array_equal(mesh.mirror[mesh.mirror], np.arange(VERTICES))
    np.testing.assert_allclose(mesh.shape[mesh.mirror], mesh.shape * [-1, 1, 1], atol=0.01)
    assert set(mesh.mirror[regions.OVAL]) == set(regions.OVAL)
    assert set(mesh.mirror[regions.LEFT_EYE]) == set(regions.RIGHT_EYE)


@given(st.floats(-3, 3), st.floats(0.1, 500), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_rings_move_with_the_face(angle: float, scale: float, x: float, y: float) -> None:
    mesh = topology()
    cos, sin = np.cos(angle), np.sin(angle)

    def move(points: np.ndarray) -> np.ndarray:
        return points @ (scale * np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])) + [x, y, 0]

    moved = mesh.extend(move(mesh.shape))
    np.testing.assert_allclose(moved, move(mesh.extend(mesh.shape)), atol=1e-5 * (scale + abs(x) + abs(y)))


@pytest.mark.parametrize(("name", "start"), [("from_oval", regions.OVAL), ("from_eyes", regions.EYES), ("from_brows", regions.BROWS)])
def test_distances_are_zero_at_their_start_alone_and_grow_no_faster_than_the_edges(name: str, start: list[int]) -> None:
    mesh = topology()
    away = getattr(mesh, name)
    assert set(np.flatnonzero(away == 0)) == set(start)
    edges = np.array(list(directed(mesh.triangles)))
    length = np.linalg.norm(mesh.shape[edges[:, 0]] - mesh.shape[edges[:, 1]], axis=1)
    assert (np.abs(away[edges[:, 0]] - away[edges[:, 1]]) <= length + 1e-5).all()


def test_areas_add_up_to_the_surface() -> None:
    mesh = topology()
    assert mesh.area.mean() == pytest.approx(1, rel=1e-5)
    assert (mesh.area > 0).all()
    assert (mesh.skin <= mesh.area + 1e-6).all()
    assert not mesh.skin[[*regions.LIPS, *regions.BROWS, *regions.EYES]].any()


def test_nearness_is_one_at_home_even_between_two_and_narrower_at_the_oval() -> None:
    mesh = topology()
    even, narrow = mesh.kernel(0.3), mesh.kernel(0.3, 0.1)
    np.testing.assert_allclose(np.diag(even), 1)
    np.testing.assert_allclose(even, even.T, rtol=1e-4, atol=1e-6)
    assert (narrow[regions.OVAL] <= even[regions.OVAL] + 1e-6).all()
    inside = int(np.argmax(mesh.from_oval))
    np.testing.assert_allclose(narrow[inside], even[inside], rtol=1e-4)


def test_the_file_is_the_one_that_is_registered() -> None:
    folder = ROOT / "assets" / "mesh"
    digest = hashlib.sha256((folder / "topology.npz").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text(encoding="utf-8")

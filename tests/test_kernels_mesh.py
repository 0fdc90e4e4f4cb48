"""The embedded swapper's face and the time code on the device against the processor's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.face import Landmarks, Patch, SourceFace
from engines.mesh.topology import topology
from engines.swap.mesh.identity import MeshIdentity, prepare
from engines.swap.mesh.kernels import BLOCK
from engines.swap.mesh.plan import MeshPlan, planned
from engines.swap.mesh.swapper import MeshSwapper
from rt import timecode
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.contract import Size
from rt.compose.kernels.host import HostKernels
from rt.compose.kernels.mesh import VERTEX_FLOATS, MeshTables, mesh_tables, numbers_of
from tests.faces import face_at
from tests.kernel_kit import Guarded, noise, run


@pytest.fixture(scope="module")
def tables() -> MeshTables:
    return mesh_tables()


@pytest.fixture(scope="module")
def identity() -> MeshIdentity:
    """Of a face of coloured clouds: any picture has a flat map."""
    few = np.random.default_rng(5).integers(20, 240, (12, 12, 3), np.uint8)
    image = cv2.resize(few, (300, 300), interpolation=cv2.INTER_CUBIC)
    return prepare([SourceFace(image, Landmarks(face_at(150, 150, 100), 1.0), "clouds")])


def clouds(height: int, width: int, seed: int) -> np.ndarray:
    few = np.random.default_rng(seed).integers(20, 240, (5, 6, 3), np.uint8)
    return cv2.resize(few, (width, height), interpolation=cv2.INTER_CUBIC)


@dataclass(frozen=True)
class Sight:
    """A picture, and a face of the mean shape in it."""

    x: float
    y: float
    size: float
    degrees: float
    seed: int = 1

    @property
    def image(self) -> np.ndarray:
        """uint8 [150, 201, 3]."""
        return clouds(150, 201, self.seed)

    @property
    def points(self) -> np.ndarray:
        return face_at(self.x, self.y, self.size, self.degrees)

    def plan(self, identity: MeshIdentity) -> MeshPlan | None:
        """None where nothing is drawn."""
        return MeshSwapper().plan(self.image, self.points, identity, 1, 0)


sights = st.builds(Sight, st.floats(-60, 260), st.floats(-60, 210), st.floats(6, 90), st.floats(-180, 180), st.integers(0, 99))
"""Over the border, too small, upside down."""


class Drawn:
    """A face drawn by the kernels, into memory that is looked after."""

    def __init__(self, kernels: HostKernels, tables: MeshTables, plan: MeshPlan, identity: MeshIdentity, opacity: float = 1) -> None:
        self.texture = identity.texture_for(plan.width_px)
        self.plan = plan
        left, top, right, bottom = plan.box
        self.width, self.height = right - left, bottom - top
        face = records.new_faces(1)
        records.set_box(face, left, top, self.width, self.height, opacity)
        self.face = records.words(face)
        self.nearest = Guarded((self.height, self.width), np.uint64)
        self.nearest.array[...] = 0
        self.vertices = Guarded((tables.vertices, VERTEX_FLOATS), np.float32, 0)
        self._kernels, self._tables, self._identity = kernels, tables, identity

    def patch(self, limit: np.ndarray | None = None) -> Patch:
        pixels, alpha, below = Guarded((self.height, self.width, 3)), Guarded((self.height, self.width)), np.zeros((1, 1, 3), np.uint8)
        self._launch("mesh_patch", (32 * 48, 48, 1), below, limit, pixels.array, alpha.array, None)
        return Patch(pixels.check(), alpha.check(), *self.plan.box[:2])

    def draw(self, frame: np.ndarray, limit: np.ndarray | None = None) -> None:
        self._launch("mesh_draw", (self.width, self.height, 1), frame, limit)

    def _launch(self, name: str, threads: Size, frame: np.ndarray, limit: np.ndarray | None, *out: np.ndarray | None) -> None:
        it, nearest = self._tables, self.nearest.array
        up = (self.plan.offsets.counts, self.plan.light.counts, numbers_of(self.plan, len(self.texture)))
        fixed = (it.normals, self._identity.colours, it.cover, it.uv, it.ring, it.triangles, len(it.triangles))
        run(self._kernels, "mesh_raster", (32 * len(it.triangles), 1, 1), *up, *fixed, self.face, self.vertices.array, nearest)
        source = (self.vertices.check(), it.triangles, self.texture, len(self.texture), limit, *4 * (None,), nearest)
        run(self._kernels, name, threads, frame, frame.shape[1], frame.shape[0], frame.strides[0], self.face, *source, *out)
        assert not self.nearest.check().any(), "the next frame begins with nothing drawn"


def assert_same(made: Patch, wanted: Patch) -> None:
    """To the bit, where anything is seen."""
    assert (made.left, made.top) == (wanted.left, wanted.top)
    np.testing.assert_array_equal(made.alpha, wanted.alpha)
    np.testing.assert_array_equal(made.pixels[made.alpha > 0], wanted.pixels[made.alpha > 0])


@settings(max_examples=60, deadline=None)
@given(sights)
def test_a_face_is_drawn_as_by_the_processor(kernels: HostKernels, tables: MeshTables, identity: MeshIdentity, sight: Sight) -> None:
    """To the bit: an alpha and a colour that were each a level off could be two levels in the picture."""
    plan = sight.plan(identity)
    if plan is not None:
        assert_same(Drawn(kernels, tables, plan, identity).patch(), MeshSwapper().draw(plan, identity))


def test_so_is_one_that_is_wider_than_the_processor_shades_at_once(
    kernels: HostKernels, tables: MeshTables, identity: MeshIdentity
) -> None:
    plan = MeshSwapper().plan(clouds(700, 900, 1), face_at(450, 350, 330, 20), identity, 1, 0)
    assert plan is not None
    assert plan.box[2] - plan.box[0] > 2 * BLOCK
    assert_same(Drawn(kernels, tables, plan, identity).patch(), MeshSwapper().draw(plan, identity))


@settings(max_examples=15, deadline=None)
@given(opacity=st.floats(0, 1), is_limited=st.booleans(), sight=sights)
def test_drawn_onto_the_frame_it_is_the_patch_blended(
    kernels: HostKernels, tables: MeshTables, identity: MeshIdentity, opacity: float, is_limited: bool, sight: Sight
) -> None:
    """And the frame outside of the box is not touched."""
    plan = sight.plan(identity)
    if plan is None:
        return
    it, wanted = Drawn(kernels, tables, plan, identity, opacity), sight.image
    frame = Guarded.of(wanted)
    limit = noise(it.height, it.width, 1, sight.seed)[..., 0].copy() if is_limited else None
    patch, limited = it.patch(), it.patch(limit)
    if limit is not None:
        np.minimum(patch.alpha, limit, out=patch.alpha)
    np.testing.assert_array_equal(limited.alpha, patch.alpha)
    host.blend(wanted, patch, opacity)
    it.draw(frame.array, limit)
    np.testing.assert_array_equal(frame.check(), wanted)


FACE = Sight(100, 70, 50, 10)


def test_whichever_triangle_comes_first_the_nearest_is_seen(
    kernels: HostKernels, backwards_kernels: HostKernels, tables: MeshTables, identity: MeshIdentity
) -> None:
    plan = FACE.plan(identity)
    assert plan is not None
    one, other = (Drawn(runner, tables, plan, identity).patch() for runner in (kernels, backwards_kernels))
    assert_same(one, other)
    assert (one.alpha > 200).any()


@settings(max_examples=40, deadline=None)
@given(st.floats(70, 130), st.floats(60, 90), st.floats(20, 55), st.floats(-180, 180))
def test_no_pixel_between_two_triangles_is_missed(identity: MeshIdentity, x: float, y: float, size: float, degrees: float) -> None:
    """The middle of a face from the front, where all is drawn: an edge is walked the same way by both of its triangles."""
    plan = Sight(x, y, size, degrees).plan(identity)
    assert plan is not None
    patch = MeshSwapper().draw(plan, identity)
    nose = plan.place[topology().from_oval.argmax(), :2]
    rows, columns = np.mgrid[: patch.alpha.shape[0], : patch.alpha.shape[1]]
    assert (patch.alpha[np.hypot(columns - nose[0], rows - nose[1]) < 0.2 * size] > 200).all()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 9), (9, 1), (0, 5), (5, 0)])
def test_a_box_of_hardly_anything_is_drawn_and_nothing_beside_it(
    kernels: HostKernels, tables: MeshTables, identity: MeshIdentity, width: int, height: int
) -> None:
    """A piece of the middle of a face, as the processor draws it."""
    sight = Sight(100, 75, 40, 0, 3)
    plan = sight.plan(identity)
    assert plan is not None
    piece = replace(plan, box=(100, 75, 100 + width, 75 + height))
    it = Drawn(kernels, tables, piece, identity)
    assert_same(it.patch(), MeshSwapper().draw(piece, identity))
    frame = Guarded.of(sight.image)
    it.draw(frame.array)
    changed = (frame.check() != sight.image).any(2)
    assert changed[75 : 75 + height, 100 : 100 + width].all()
    assert changed.sum() == width * height


@settings(max_examples=25, deadline=None)
@given(sights)
def test_what_goes_up_says_where_the_face_is_and_how_it_is_lit(identity: MeshIdentity, sight: Sight) -> None:
    """A place is right to a 1/100 of a pixel, the light to a part in a thousand, from two pieces of less than four kilobytes."""
    place = topology().extend(sight.points)
    gain = np.exp(np.random.default_rng(sight.seed).normal(0, 0.5, (468, 3))).astype(np.float32)
    kept = np.random.default_rng(sight.seed).uniform(0.2, 1, (468, 1)).astype(np.float32)
    plan = planned(place, (3, 5, 100, 90), gain, kept, np.eye(3, dtype=np.float32))
    assert max(plan.offsets.counts.nbytes, plan.light.counts.nbytes) < 4096
    np.testing.assert_allclose(plan.place, place - [3, 5, 0], atol=0.01)
    np.testing.assert_allclose(plan.width_px, np.ptp(place[:, 0]), atol=0.02)
    np.testing.assert_allclose(plan.light.values[:, :3], gain, atol=1e-3 * gain.max())
    np.testing.assert_allclose(plan.light.values[:, 3:], kept, atol=1e-3)


def test_rings_inside_of_eyes_and_mouth_fade_to_nothing(kernels: HostKernels, tables: MeshTables, identity: MeshIdentity) -> None:
    plan = FACE.plan(identity)
    assert plan is not None
    drawn = Drawn(kernels, tables, plan, identity)
    drawn.patch()
    vertices = drawn.vertices.check()
    assert set(tables.triangles.ravel()) == set(range(tables.vertices)), "each is built by a triangle's block"
    assert not vertices[468:, 5].any()
    np.testing.assert_array_equal(vertices[:, :3], plan.place)
    np.testing.assert_array_equal(vertices[468:, 6:9], vertices[tables.ring, 6:9])


@settings(max_examples=25, deadline=None)
@given(st.integers(156, 400), st.integers(8, 60), st.integers(0, 2**41))
def test_the_time_code_is_the_processors(kernels: HostKernels, width: int, height: int, value: int) -> None:
    frame = Guarded.of(noise(height, width))
    wanted = frame.array.copy()
    timecode.burn(wanted, value)
    cells, rows = timecode.cells(value), timecode.strip_height(height)
    run(kernels, "paint_timecode", (width, rows, 1), frame.array, width, height, frame.array.strides[0], cells, len(cells), rows)
    np.testing.assert_array_equal(frame.check(), wanted)
    assert timecode.read(np.ascontiguousarray(frame.array)) == value % 2**40


@pytest.mark.parametrize(("width", "height"), [(1, 8), (51, 8), (53, 1), (157, 9)])
def test_a_picture_of_few_pixels_is_painted_within_its_bounds(kernels: HostKernels, width: int, height: int) -> None:
    """``timecode.burn`` refuses these; the kernel at least writes nowhere else."""
    frame, cells = Guarded.of(noise(height, width)), timecode.cells(7)
    rows = min(height, timecode.strip_height(height))
    run(kernels, "paint_timecode", (width, rows, 1), frame.array, width, height, frame.array.strides[0], cells, len(cells), rows)
    assert set(np.unique(frame.check()[height - rows :])) <= {0, 255}

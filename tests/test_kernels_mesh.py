"""The embedded swapper's face and the time code on the device against the processor's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.face import Landmarks, Patch, SourceFace
from engines.mesh.topology import topology
from engines.swap.mesh.colour import LOG_OFFSET, glance, log_colours
from engines.swap.mesh.identity import MeshIdentity, prepare
from engines.swap.mesh.light import contrast
from engines.swap.mesh.swapper import MeshPlan, MeshSwapper
from rt import timecode
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.host import HostKernels
from rt.compose.kernels.mesh import VERTEX_FLOATS, MeshRecord, MeshTables, mesh_tables, packed
from tests.faces import face_at
from tests.kernel_kit import Guarded, noise, run


@pytest.fixture(scope="module")
def tables() -> MeshTables:
    return mesh_tables()


@pytest.fixture(scope="module")
def swapper() -> MeshSwapper:
    return MeshSwapper()


@pytest.fixture(scope="module")
def identity() -> MeshIdentity:
    """Of a face of coloured clouds: any picture has a flat map."""
    few = np.random.default_rng(5).integers(20, 240, (12, 12, 3), np.uint8)
    image = cv2.resize(few, (300, 300), interpolation=cv2.INTER_CUBIC)
    return prepare([SourceFace(image, Landmarks(face_at(150, 150, 100), 1.0), "clouds")])


def picture(height: int, width: int, seed: int) -> np.ndarray:
    few = np.random.default_rng(seed).integers(20, 240, (5, 6, 3), np.uint8)
    return cv2.resize(few, (width, height), interpolation=cv2.INTER_CUBIC)


def as_it_goes_up(plan: MeshPlan, record: MeshRecord) -> MeshPlan:
    """``plan`` with points and light as the kernels read them."""
    points = (record.numbers[0] * record.points + record.numbers[1:4]).astype(np.float32)
    return MeshPlan(points, plan.box, (record.numbers[13] * record.light).astype(np.float32), plan.kept, plan.turn)


def vertices_of(kernels: HostKernels, tables: MeshTables, record: MeshRecord, identity: MeshIdentity) -> np.ndarray:
    out = Guarded((tables.vertices, VERTEX_FLOATS), np.float32, 0)
    it = tables
    face = (record.points, record.light, record.numbers, it.normals, identity.logs, it.cover, it.uv, it.ring, it.weights)
    run(kernels, "mesh_vertices", (tables.vertices, 1, 1), *face, tables.vertices, out.array)
    return out.check()


class Drawn:
    """A face ready to be drawn by the kernels."""

    def __init__(self, kernels: HostKernels, tables: MeshTables, plan: MeshPlan, identity: MeshIdentity, opacity: float = 1) -> None:
        self.texture = identity.texture_for(float(np.ptp(plan.points[:, 0])))
        self.plan = plan
        left, top, right, bottom = plan.box
        self.width, self.height = right - left, bottom - top
        face = records.new_faces(1)
        records.set_box(face, left, top, self.width, self.height, opacity)
        self.face = records.words(face)
        self.record = packed(plan, len(self.texture))
        self.vertices = vertices_of(kernels, tables, self.record, identity)
        self.nearest = Guarded((self.height, self.width), np.uint64)
        self.nearest.array[...] = 0
        self._kernels, self._tables = kernels, tables

    @property
    def box(self) -> tuple[int, int, int]:
        return self.width, self.height, 1

    def raster(self) -> None:
        count = len(self._tables.triangles)
        run(self._kernels, "mesh_raster", (32 * count, 1, 1), self.vertices, self._tables.triangles, count, self.face, self.nearest.array)

    def patch(self, limit: np.ndarray | None = None) -> Patch:
        self.raster()
        pixels, alpha = Guarded((self.height, self.width, 3)), Guarded((self.height, self.width))
        source = (self.vertices, self._tables.triangles, self.texture, len(self.texture), limit, self.nearest.array)
        run(self._kernels, "mesh_patch", self.box, self.face, *source, pixels.array, alpha.array)
        return Patch(pixels.check(), alpha.check(), *self.plan.box[:2])

    def draw(self, frame: np.ndarray, limit: np.ndarray | None) -> None:
        self.raster()
        source = (self.vertices, self._tables.triangles, self.texture, len(self.texture), limit, self.nearest.array)
        run(self._kernels, "mesh_draw", self.box, frame, frame.shape[1], frame.shape[0], frame.strides[0], self.face, *source)


anywhere = {
    "x": st.floats(-60, 260),
    "y": st.floats(-60, 210),
    "size": st.floats(6, 90),
    "degrees": st.floats(-180, 180),
    "seed": st.integers(0, 99),
}


@settings(max_examples=25, deadline=None)
@given(**anywhere)
def test_a_face_is_drawn_as_by_the_processor(
    kernels: HostKernels,
    tables: MeshTables,
    swapper: MeshSwapper,
    identity: MeshIdentity,
    x: float,
    y: float,
    size: float,
    degrees: float,
    seed: int,
) -> None:
    """Over the border too. What is hidden by its own nose may change places with what hides it where both are equally near."""
    image, points = picture(150, 201, seed), face_at(x, y, size, degrees)
    swapper.forget(1)
    plan = swapper.plan(image, points, identity, 1, 0)
    if plan is None:
        return
    it = Drawn(kernels, tables, plan, identity)
    wanted = swapper.draw(as_it_goes_up(plan, it.record), identity)
    made = it.patch()
    assert (made.left, made.top) == (wanted.left, wanted.top)
    assert np.abs(made.alpha.astype(int) - wanted.alpha).max() <= 1
    seen = (made.alpha > 0) & (wanted.alpha > 0)
    assert np.abs(made.pixels[seen].astype(int) - wanted.pixels[seen]).max(initial=0) <= 1
    assert not it.nearest.check().any(), "the next frame begins with nothing drawn"


@settings(max_examples=15, deadline=None)
@given(opacity=st.floats(0, 1), is_limited=st.booleans(), **anywhere)
def test_drawn_onto_the_frame_it_is_the_patch_blended(
    kernels: HostKernels,
    tables: MeshTables,
    swapper: MeshSwapper,
    identity: MeshIdentity,
    opacity: float,
    is_limited: bool,
    x: float,
    y: float,
    size: float,
    degrees: float,
    seed: int,
) -> None:
    """To the bit, and the frame outside of the box is not touched."""
    frame = Guarded.of(picture(150, 201, seed))
    wanted = frame.array.copy()
    plan = swapper.plan(wanted, face_at(x, y, size, degrees), identity, 1, 0)
    if plan is None:
        return
    it = Drawn(kernels, tables, plan, identity, opacity)
    limit = noise(it.height, it.width, 1, seed)[..., 0].copy() if is_limited else None
    patch, limited = it.patch(), it.patch(limit)
    if limit is not None:
        np.minimum(patch.alpha, limit, out=patch.alpha)
    np.testing.assert_array_equal(limited.alpha, patch.alpha)
    host.blend(wanted, patch, opacity)
    it.draw(frame.array, limit)
    np.testing.assert_array_equal(frame.check(), wanted)
    assert not it.nearest.check().any()


def test_whichever_triangle_comes_first_the_nearest_is_seen(
    kernels: HostKernels, backwards_kernels: HostKernels, tables: MeshTables, swapper: MeshSwapper, identity: MeshIdentity
) -> None:
    plan = swapper.plan(picture(150, 201, 1), face_at(100, 70, 50, 10), identity, 1, 0)
    assert plan is not None
    one, other = (Drawn(runner, tables, plan, identity).patch() for runner in (kernels, backwards_kernels))
    np.testing.assert_array_equal(one.alpha, other.alpha)
    np.testing.assert_array_equal(one.pixels, other.pixels)
    assert (one.alpha > 200).any()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 9), (9, 1), (0, 5), (5, 0)])
def test_a_box_of_hardly_anything_is_drawn_and_nothing_beside_it(
    kernels: HostKernels, tables: MeshTables, swapper: MeshSwapper, identity: MeshIdentity, width: int, height: int
) -> None:
    """A piece of the middle of a face, as the whole face shows it."""
    image = picture(150, 201, 3)
    plan = swapper.plan(image, face_at(100, 75, 40), identity, 1, 0)
    assert plan is not None
    whole = swapper.draw(plan, identity)
    piece = np.s_[75 - whole.top : 75 - whole.top + height, 100 - whole.left : 100 - whole.left + width]
    it = Drawn(kernels, tables, MeshPlan(plan.points, (100, 75, 100 + width, 75 + height), plan.gain, plan.kept, plan.turn), identity)
    patch = it.patch()
    assert np.abs(patch.alpha.astype(int) - whole.alpha[piece]).max(initial=0) <= 1
    assert np.abs(patch.pixels.astype(int) - whole.pixels[piece]).max(initial=0) <= 1
    frame = Guarded.of(image)
    it.draw(frame.array, None)
    changed = (frame.check() != image).any(2)
    assert changed[75 : 75 + height, 100 : 100 + width].all()
    assert changed.sum() == width * height


@settings(max_examples=25, deadline=None)
@given(**anywhere)
def test_vertices_are_built_of_what_goes_up(
    kernels: HostKernels,
    tables: MeshTables,
    swapper: MeshSwapper,
    identity: MeshIdentity,
    x: float,
    y: float,
    size: float,
    degrees: float,
    seed: int,
) -> None:
    """A place is right to a 1/100 of a pixel, the light to a part in a thousand, from six kilobytes."""
    plan = swapper.plan(picture(150, 201, seed), face_at(x, y, size, degrees), identity, 1, 0)
    if plan is None:
        return
    record = packed(plan, 512)
    assert max(record.points.nbytes, record.light.nbytes) < 4096
    made = vertices_of(kernels, tables, record, identity)
    mesh, outer = topology(), np.r_[np.arange(468), tables.ring]
    np.testing.assert_allclose(made[:, :3], mesh.extend(plan.points) - np.array([*plan.box[:2], 0]), atol=0.01)
    np.testing.assert_allclose(made[:, 3:5], mesh.uv * 512 - 0.5, atol=1e-3)
    kept = contrast(plan.gain, plan.kept)
    np.testing.assert_allclose(made[:, 6:9], (np.exp(plan.gain) * kept)[outer], rtol=1e-3)
    bias = (np.exp(identity.logs) - LOG_OFFSET) * np.exp(plan.gain) * (1 - kept)
    np.testing.assert_allclose(made[:, 9:12], bias[outer], rtol=2e-3, atol=0.05)
    assert not made[468:, 5].any(), "rings inside of eyes and mouth fade to nothing"


@settings(max_examples=25, deadline=None)
@given(width=st.integers(8, 220), height=st.integers(8, 160), **anywhere)
def test_colours_are_looked_at_as_by_the_processor(
    kernels: HostKernels, width: int, height: int, x: float, y: float, size: float, degrees: float, seed: int
) -> None:
    """From a picture that lies on the device: 2808 bytes come down instead of it."""
    image, points = Guarded.of(picture(height, width, seed)), face_at(x, y, size, degrees)
    seen = glance(points, image.array.shape)
    wanted = log_colours(np.ascontiguousarray(image.array), points)
    if seen is None:
        assert wanted is None
        return
    assert wanted is not None
    record = packed(MeshPlan(points, (0, 0, 1, 1), np.zeros((468, 3), np.float32), 1.0, np.eye(3)), 512)
    out = Guarded((468, 3), np.uint16)
    look = np.array([seen.left, seen.top, seen.columns, seen.rows, seen.block], np.int32)
    shape = (image.array, width, height, image.array.strides[0])
    run(kernels, "mesh_look", (468, 1, 1), *shape, record.points, record.numbers, look, out.array)
    np.testing.assert_allclose(out.check() / 256, np.exp(wanted) - LOG_OFFSET, atol=1)


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

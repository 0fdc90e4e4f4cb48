"""Seams, hidden faces and masks on the device against the processor's compositor."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.face import Patch
from engines.mask.lower import SIGMA, lower, softened
from engines.mask.shapes import Ramp, Shapes, capsules, drawn, polygon
from engines.paste import soft_box
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.host import HostKernels
from tests.faces import face_at
from tests.kernel_kit import Guarded, noise, run


def smooth(height: int, width: int, seed: int) -> np.ndarray:
    """As skin is: colours that change slowly, and a little grain."""
    few = np.random.default_rng(seed).integers(60, 200, (4, 5, 3), np.uint8)
    grain = np.random.default_rng(seed + 1).integers(-6, 7, (height, width, 3))
    return np.clip(cv2.resize(few, (width, height), interpolation=cv2.INTER_LINEAR) + grain, 0, 255).astype(np.uint8)


def joined(kernels: HostKernels, frame: np.ndarray, patch: Patch) -> np.ndarray:
    """``frame`` with the patch laid over it seamlessly, by the device's kernels."""
    out, (height, width) = frame.copy(), patch.alpha.shape
    _, columns, rows = host.seam_cells(width, height)
    face = records.new_faces(1)
    records.set_box(face, patch.left, patch.top, width, height, 1)
    shape, words = (out, out.shape[1], out.shape[0], out.strides[0]), records.words(face)
    cells, membrane, scratch = Guarded((rows, columns, 7)), Guarded((rows, columns, 3)), Guarded((4 * 4096,), np.float32)
    run(kernels, "seam_cells", (32 * 48, 48, 1), *shape, words, patch.pixels, patch.alpha, cells.array)
    run(kernels, "seam_membrane", (512, 1, 1), cells.check(), words, scratch.array, membrane.array)
    scratch.check()
    run(kernels, "lay_patch", (width, height, 1), *shape, words, patch.pixels, patch.alpha, None, None, membrane.check())
    return out


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200), st.integers(1, 150), st.integers(0, 9), st.integers(0, 9), st.integers(0, 99))
def test_a_seam_is_matched_as_by_the_processor(kernels: HostKernels, width: int, height: int, left: int, top: int, seed: int) -> None:
    frame = smooth(height + top + 3, width + left + 2, seed)
    alpha = cv2.resize(soft_box(100), (width, height), interpolation=cv2.INTER_AREA)
    patch = Patch(smooth(height, width, seed + 7), alpha, left, top)
    made = joined(kernels, frame, patch)
    wanted = frame.copy()
    host.match_seam(wanted, patch)
    host.blend(wanted, patch)
    assert np.abs(made.astype(int) - wanted).max() <= 1


def test_a_patch_without_a_fading_edge_is_laid_as_it_is(kernels: HostKernels) -> None:
    frame, patch = noise(60, 60), Patch(noise(50, 40, seed=1), np.full((50, 40), 255, np.uint8), 3, 4)
    np.testing.assert_array_equal(joined(kernels, frame, patch)[4:54, 3:43], patch.pixels)


def test_no_thread_of_the_membrane_waits_for_another(kernels: HostKernels, backwards_kernels: HostKernels) -> None:
    frame, patch = smooth(140, 180, 1), Patch(smooth(130, 170, 2), cv2.resize(soft_box(90), (170, 130)), 5, 5)
    np.testing.assert_array_equal(joined(kernels, frame, patch), joined(backwards_kernels, frame, patch))


@settings(max_examples=30, deadline=None)
@given(st.floats(-100, 300), st.floats(-100, 260), st.floats(2, 90), st.floats(-60, 60), st.integers(0, 99))
def test_a_face_is_hidden_as_by_the_processor(kernels: HostKernels, x: float, y: float, size: float, degrees: float, seed: int) -> None:
    frame, points = Guarded.of(noise(160, 200, seed=seed)), face_at(x, y, size, degrees)
    wanted = frame.array.copy()
    host.blur_face(wanted, points)
    box = host.hidden_box(points, wanted.shape)
    if box is None:
        return
    left, top, right, bottom = box
    columns, rows = host.hidden_cells(points, right - left, bottom - top)
    face, oval = records.new_faces(1), host.oval_of(points)
    records.set_box(face, left, top, right - left, bottom - top, 1)
    shape, words, cells = (frame.array, 200, 160, frame.array.strides[0]), records.words(face), Guarded((rows, columns, 3))
    run(kernels, "hide_cells", (256 * columns, rows, 1), *shape, words, cells.array)
    drawing = (oval.seen_from(left, top), len(oval.segments), oval.ramp.numbers())
    run(kernels, "hide_face", (right - left, bottom - top, 1), *shape, words, cells.check(), columns, rows, *drawing)
    assert np.abs(frame.check().astype(int) - wanted).max() <= 1


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(-20, 80), st.floats(-20, 70)), min_size=3, max_size=8),
    st.floats(0, 12),
    st.sampled_from([Ramp(127.5, 40), Ramp(255, -30), Ramp(255, 25, 80)]),
)
def test_shapes_are_drawn_alike(
    kernels: HostKernels, width: int, height: int, places: list[tuple[float, float]], radius: float, ramp: Ramp
) -> None:
    points = np.array(places, np.float32)
    shapes = [Shapes(np.concatenate([capsules([points], radius), polygon(points[::-1] / 2, radius / 3)]), ramp)]
    shapes.append(Shapes(capsules([points + 20], radius), Ramp(127.5, 30)))
    left, top = 5, 3
    wanted = np.minimum.reduce([drawn(each.seen_from(left, top), each.ramp, (height, width)) for each in shapes])
    face, segments, table = records.new_faces(1), np.zeros((40, 6), np.float32), np.zeros((2, 6), np.float32)
    records.set_box(face, left, top, width, height, 1)
    assert records.set_shapes(face, shapes, segments, table)
    out = Guarded((height, width))
    run(kernels, "mask_shapes", (width, height, 1), out.array, records.words(face), segments, table, 1)
    assert np.abs(out.check().astype(int) - wanted).max() <= 1
    lowered = noise(height, width, 1)[..., 0].copy()
    both = np.minimum(lowered, out.array)
    run(kernels, "mask_shapes", (width, height, 1), lowered, records.words(face), segments, table, 0)
    np.testing.assert_array_equal(lowered, both)
    assert not records.set_shapes(face, [*shapes, shapes[0]], segments, table), "more than there is room for"
    run(kernels, "mask_shapes", (width, height, 1), out.array, records.words(face), segments, table, 1)
    assert (out.check() == 255).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 60), st.floats(0, 50)), min_size=3, max_size=9))
def test_a_polygons_distance_is_opencvs(places: list[tuple[float, float]]) -> None:
    """Of a convex one, since the sign at crossings is a matter of taste. A ramp of one level a pixel is the distance itself."""
    hull = cv2.convexHull(np.array(places, np.float32))[:, 0]
    if len(hull) < 3 or cv2.contourArea(hull) < 1:
        return
    made = drawn(polygon(hull), Ramp(127, 1), (50, 60)).astype(float) - 127
    for y in range(0, 50, 7):
        for x in range(0, 60, 7):
            assert made[y, x] == pytest.approx(-cv2.pointPolygonTest(hull.reshape(-1, 1, 2), (float(x), float(y)), True), abs=0.51)


@pytest.mark.parametrize("shape", [(256, 256), (1, 1), (33, 7)])
def test_a_networks_mask_is_softened_as_by_the_processor(kernels: HostKernels, shape: tuple[int, int]) -> None:
    """The range is drawn out twofold after a blur in which the two may round a half apart: two levels there."""
    height, width = shape
    mask = (cv2.GaussianBlur(noise(height, width, 1)[..., 0], (0, 0), 6) > 127).astype(np.uint8) * 255
    radius = round(3 * SIGMA)
    weights = cv2.getGaussianKernel(2 * radius + 1, SIGMA, cv2.CV_32F)[:, 0].copy()
    between, out = Guarded((height, width), np.float32), Guarded((height, width))
    run(kernels, "mask_blur_rows", (width, height, 1), mask, width, height, weights, radius, between.array)
    run(kernels, "mask_blur_columns", (width, height, 1), between.check(), width, height, weights, radius, out.array)
    off = np.abs(out.check().astype(int) - softened(mask))
    assert off.max() <= 2
    assert (off > 1).mean() < 1e-3


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 50), st.integers(1, 30), st.floats(0.1, 3), st.floats(-20, 20), st.integers(0, 9))
def test_a_mask_lowers_as_by_the_processor(
    kernels: HostKernels, width: int, height: int, side: int, scale: float, shift: float, seed: int
) -> None:
    mask, matrix = noise(side, side, 1, seed)[..., 0].copy(), np.array([[scale, 0.2, shift], [-0.2, scale, 3]], np.float32)
    patch = Patch(noise(height, width), noise(height, width, 1, seed + 1)[..., 0].copy(), 4, 9)
    face, out = records.new_faces(1), Guarded.of(patch.alpha, 0)
    records.set_box(face, 4, 9, width, height, 1)
    records.set_mask(face, matrix)
    run(kernels, "mask_lower", (width, height, 1), out.array, records.words(face), mask, side, 0)
    lower(patch, mask, matrix)
    assert np.abs(out.check().astype(int) - patch.alpha).max() <= 1


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_erosion_and_blur_are_opencvs(kernels: HostKernels, radius: int) -> None:
    values = np.random.default_rng(radius).random((37, 29), np.float32)
    eroded, rows, blurred = (Guarded((37, 29), np.float32) for _ in range(3))
    run(kernels, "mask_erode", (29, 37, 1), values, 29, 37, radius, eroded.array)
    cross = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3))
    np.testing.assert_array_equal(eroded.check(), cv2.erode(values, cross, iterations=radius) if radius else values)
    weights = cv2.getGaussianKernel(2 * radius + 1, 1 + radius, cv2.CV_32F)[:, 0]
    run(kernels, "blur_pass", (29, 37, 1), values, 29, 37, weights, radius, 0, rows.array)
    run(kernels, "blur_pass", (29, 37, 1), rows.check(), 29, 37, weights, radius, 1, blurred.array)
    np.testing.assert_allclose(blurred.check(), cv2.GaussianBlur(values, (2 * radius + 1,) * 2, 1 + radius), atol=1e-5)


def test_the_highest_class_decides(kernels: HostKernels) -> None:
    scores, kept = np.random.default_rng(3).random((5, 12, 16), np.float32), np.array([0, 1, 0, 1, 1], np.uint8)
    out = Guarded((6, 8))
    run(kernels, "mask_classes", (8, 6, 1), scores, 5, 8, 6, 2, kept, out.array)
    np.testing.assert_array_equal(out.check(), 255 * kept[scores[:, ::2, ::2].argmax(0)])


def test_what_is_no_number_keeps_nothing(kernels: HostKernels) -> None:
    out = Guarded((4,))
    run(kernels, "mask_levels", (4, 1, 1), np.array([np.nan, 0.5, -3, 7], np.float32), 4, out.array)
    assert list(out.check()) == [0, 128, 0, 255]

"""Seams, hidden faces and masks on the device against the processor's compositor."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.face import Patch
from engines.mask.lower import blur_weights, levels, lower, softened
from engines.mask.shapes import Ramp, Shapes, capsules, drawn, polygon
from engines.paste import soft_box
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.host import HostKernels
from rt.compose.launches import MATCHING
from rt.compose.seam import match_colours, seam_cells
from rt.options import Blending
from tests.faces import face_at
from tests.kernel_kit import Guarded, noise, run


def smooth(height: int, width: int, seed: int) -> np.ndarray:
    """As skin is: colours that change slowly, and a little grain."""
    few = np.random.default_rng(seed).integers(60, 200, (4, 5, 3), np.uint8)
    grain = np.random.default_rng(seed + 1).integers(-6, 7, (height, width, 3))
    return np.clip(cv2.resize(few, (width, height), interpolation=cv2.INTER_LINEAR) + grain, 0, 255).astype(np.uint8)


def joined(
    kernels: HostKernels, frame: np.ndarray, patch: Patch, blending: Blending, strength: float = 1.0, transfer: float = 0.0
) -> np.ndarray:
    """``frame`` with the patch laid over it, its colours matched, by the device's kernels."""
    out, (height, width) = frame.copy(), patch.alpha.shape
    _, columns, rows = seam_cells(width, height)
    face = records.new_faces(1)
    records.set_box(face, patch.left, patch.top, width, height, 1)
    shape = (out, out.shape[1], out.shape[0], out.strides[0], records.words(face))
    cells, membrane, scratch = Guarded((rows, columns, 7)), Guarded((rows, columns, 3)), Guarded((8 * 4096,), np.float32)
    pixels, alpha, fit = Guarded.of(patch.pixels, 0), Guarded.of(patch.alpha, 0), Guarded((6,), np.float32) if transfer else None
    run(kernels, "limit_patch", (32 * 48, 48, 1), *shape, *5 * (None,), pixels.array, alpha.array, cells.array)
    np.testing.assert_array_equal(pixels.check(), patch.pixels)
    np.testing.assert_array_equal(alpha.check(), patch.alpha)
    given = (cells.check(), shape[4], strength, transfer, scratch.array, None if fit is None else fit.array, membrane.array)
    run(kernels, MATCHING[blending], (512, 1, 1), *given)
    scratch.check()
    laid = (patch.pixels, patch.alpha, None if fit is None else fit.check(), None if blending is Blending.SOFT else membrane.check())
    run(kernels, "lay_patch", (width, height, 1), *shape, *laid)
    return out


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 200),
    st.integers(1, 150),
    st.sampled_from(list(Blending)),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.6, 1.0]),
    st.integers(0, 99),
)
def test_colours_are_matched_as_by_the_processor(
    kernels: HostKernels, width: int, height: int, blending: Blending, strength: float, transfer: float, seed: int
) -> None:
    left, top = seed % 9, seed % 7
    frame = smooth(height + top + 3, width + left + 2, seed)
    alpha = cv2.resize(soft_box(100), (width, height), interpolation=cv2.INTER_AREA)
    patch = Patch(smooth(height, width, seed + 7), alpha, left, top)
    made = joined(kernels, frame, patch, blending, strength, transfer)
    wanted = frame.copy()
    match_colours(wanted, patch, blending, strength, transfer)
    host.blend(wanted, patch)
    off = np.abs(made.astype(int) - wanted)
    if blending is Blending.SOFT:
        assert not off.any(), "whole numbers, and float32 in one order"
    assert off.max() <= 1


def test_a_patch_without_a_fading_edge_is_laid_as_it_is(kernels: HostKernels) -> None:
    frame, patch = noise(60, 60), Patch(noise(50, 40, seed=1), np.full((50, 40), 255, np.uint8), 3, 4)
    np.testing.assert_array_equal(joined(kernels, frame, patch, Blending.SEAMLESS)[4:54, 3:43], patch.pixels)


@pytest.mark.parametrize("blending", list(Blending))
def test_no_thread_waits_for_another(kernels: HostKernels, backwards_kernels: HostKernels, blending: Blending) -> None:
    frame, patch = smooth(140, 180, 1), Patch(smooth(130, 170, 2), cv2.resize(soft_box(90), (170, 130)), 5, 5)
    one, other = (joined(runner, frame, patch, blending, 1.0, 0.5) for runner in (kernels, backwards_kernels))
    np.testing.assert_array_equal(one, other)


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


def limited(kernels: HostKernels, face: np.ndarray, alpha: np.ndarray, *limit: np.ndarray | None) -> np.ndarray:
    """What ``limit`` leaves of ``alpha`` (u8 [h, w])."""
    height, width = alpha.shape
    pixels, out = np.zeros((height, width, 3), np.uint8), Guarded.of(alpha, 0)
    run(kernels, "limit_patch", (32 * 48, 48, 1), pixels, width, height, 3 * width, records.words(face), *limit, pixels, out.array, None)
    return out.check()


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
    whole = np.full((height, width), 255, np.uint8)
    made = limited(kernels, face, whole, None, segments, table, None, None)
    assert np.abs(made.astype(int) - wanted).max() <= 1
    alpha = noise(height, width, 1)[..., 0].copy()
    np.testing.assert_array_equal(limited(kernels, face, alpha, None, segments, table, None, None), np.minimum(alpha, made))
    assert not records.set_shapes(face, [*shapes, shapes[0]], segments, table), "more than there is room for"
    np.testing.assert_array_equal(limited(kernels, face, whole, None, segments, table, None, None), whole)


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


def soften(kernels: HostKernels, made: np.ndarray, out_side: int, *masks: tuple[int, int, np.ndarray | None]) -> np.ndarray:
    """u8 [N, S, S]: of what lies in ``made``; ``masks``: place, step and classes that are kept."""
    table, weights = np.zeros((len(masks), 12), np.int32), blur_weights()
    for row, (place, step, kept) in zip(table, masks, strict=True):
        records.set_softening(row, place, out_side, step, kept)
    out, across = Guarded((len(masks), out_side, out_side)), -(-out_side // 32)
    run(kernels, "mask_soften", (256 * across, across, len(masks)), made, table, len(masks), 256 * weights, len(weights) // 2, out.array)
    return out.check()


@pytest.mark.parametrize("side", [256, 1, 33])
def test_a_networks_mask_is_softened_as_by_the_processor(kernels: HostKernels, backwards_kernels: HostKernels, side: int) -> None:
    """To the bit, several at once; what is no number keeps nothing."""
    shares = np.random.default_rng(1).random((2, side, side), np.float32)
    shares[1] = cv2.GaussianBlur(shares[1], (0, 0), 4) > 0.5
    shares[0, 0, 0], shares[1, -1, 0] = np.nan, 7
    wanted = np.stack([softened(levels(share)) for share in shares])
    for runner in (kernels, backwards_kernels):
        made = soften(runner, shares, side, (0, 1, None), (side * side, 1, None))
        np.testing.assert_array_equal(made, wanted)


def test_the_highest_class_decides(kernels: HostKernels) -> None:
    scores, kept = np.random.default_rng(3).random((70, 24, 24), np.float32), np.arange(70) % 3 == 1
    scores = cv2.GaussianBlur(scores.transpose(1, 2, 0), (0, 0), 3).transpose(2, 0, 1).copy()
    seen = 255 * kept[scores[:, ::2, ::2].argmax(0)].astype(np.uint8)
    assert 0 < seen.mean() < 255
    np.testing.assert_array_equal(soften(kernels, scores, 12, (0, 2, kept))[0], softened(seen))


def test_more_classes_than_are_known_are_refused() -> None:
    with pytest.raises(ValueError, match="a mask's network of 257 classes was given; up to 256 are known"):
        records.set_softening(np.zeros(12, np.int32), 0, 256, 1, np.ones(257, bool))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 50), st.integers(1, 30), st.floats(0.1, 3), st.floats(-20, 20), st.integers(0, 9))
def test_masks_lower_as_by_the_processor(
    kernels: HostKernels, width: int, height: int, side: int, scale: float, shift: float, seed: int
) -> None:
    """The second and the third of three, both of one face."""
    masks = noise(side, side, 3, seed).transpose(2, 0, 1).copy()
    matrices = [np.array([[scale, 0.2, shift], [-0.2, scale, 3]], np.float32), np.array([[0.9, 0, 1], [0, 0.9, shift / 4]], np.float32)]
    patch = Patch(noise(height, width), noise(height, width, 1, seed + 1)[..., 0].copy(), 4, 9)
    face, table = records.new_faces(1), np.zeros((4, 8), np.float32)
    records.set_box(face, 4, 9, width, height, 1)
    records.set_masks(face, list(enumerate(matrices, 1)), side, table)
    made = limited(kernels, face, patch.alpha, None, None, None, masks, table)
    for mask, matrix in zip(masks[1:], matrices, strict=True):
        lower(patch, mask, matrix)
    assert np.abs(made.astype(int) - patch.alpha).max() <= 1
    with pytest.raises(ValueError, match="5 masks were given for one face; there is room for 4"):
        records.set_masks(face, [(0, matrices[0])] * 5, side, table)

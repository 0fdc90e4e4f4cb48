"""Crops and pastes on the device against the processor's: the same similarity, the same averaging, the same blend."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.align import crop_bgr, crop_plan, inverse
from engines.face import Patch
from engines.paste import paste, paste_plan, soft_box
from engines.tensor import IMAGENET, SIGNED, UNIT, Norm
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.host import HostKernels
from tests.kernel_kit import Guarded, noise, run

NORMS = {"unit": UNIT, "signed": SIGNED, "imagenet": IMAGENET}


def turned(side: int, scale: float, degrees: float, x: float, y: float) -> np.ndarray:
    """float32 [2, 3], picture → crop: (x, y) comes to the crop's middle."""
    angle = np.radians(degrees)
    a, b = scale * np.cos(angle), scale * np.sin(angle)
    turn = np.array([[a, -b], [b, a]])
    return np.c_[turn, side / 2 - turn @ [x, y]].astype(np.float32)


anywhere = {
    "scale": st.floats(0.05, 6),
    "degrees": st.floats(-180, 180),
    "x": st.floats(-40, 140),
    "y": st.floats(-40, 120),
    "seed": st.integers(0, 99),
}


def crop(kernels: HostKernels, image: np.ndarray, matrix: np.ndarray, side: int, norm: Norm, boost: int = 1) -> np.ndarray:
    """float32 [boost², 3, side, side]."""
    face = records.new_faces(1)
    records.set_crop(face, crop_plan(matrix, side * boost, image.shape), norm, side, boost=boost)
    out = Guarded((boost * boost, 3, side, side), np.float32)
    frame = (image, image.shape[1], image.shape[0], image.strides[0])
    run(kernels, "crop_to_tensor", (side * boost, side * boost, 1), *frame, records.words(face), 1, out.array)
    return out.check()


@settings(max_examples=40, deadline=None)
@given(width=st.integers(1, 100), height=st.integers(1, 80), side=st.integers(1, 40), name=st.sampled_from(list(NORMS)), **anywhere)
def test_a_crop_is_the_processors(
    kernels: HostKernels, width: int, height: int, side: int, name: str, scale: float, degrees: float, x: float, y: float, seed: int
) -> None:
    image, matrix, norm = noise(height, width, seed=seed), turned(side, scale, degrees, x, y), NORMS[name]
    wanted = np.empty((3, side, side), np.float32)
    norm.to_tensor(crop_bgr(image, matrix, side), wanted)
    made = crop(kernels, image, matrix, side, norm)[0]
    one_level = 1 / (255 * np.array(norm.std))
    assert (np.abs(made - wanted).max((1, 2)) <= 1.01 * one_level).all()


def test_nearly_all_of_a_crop_is_the_very_same(kernels: HostKernels) -> None:
    """A level is seen only where the two round a half differently."""
    image = noise(200, 300)
    for scale in (0.11, 0.3, 0.6, 1.7):
        matrix, wanted = turned(64, scale, 33, 140, 90), np.empty((3, 64, 64), np.float32)
        UNIT.to_tensor(crop_bgr(image, matrix, 64), wanted)
        assert np.abs(crop(kernels, image, matrix, 64, UNIT)[0] - wanted).mean() < 0.02 / 255


@pytest.mark.parametrize("boost", [1, 2, 3])
def test_a_boosted_crop_is_cut_by_stride(kernels: HostKernels, boost: int) -> None:
    image, matrix = noise(90, 120), turned(16 * boost, 0.8, 20, 60, 40)
    whole = np.empty((3, 16 * boost, 16 * boost), np.float32)
    UNIT.to_tensor(crop_bgr(image, matrix, 16 * boost), whole)
    made = crop(kernels, image, matrix, 16, UNIT, boost)
    for number, picture in enumerate(made):
        np.testing.assert_allclose(picture, whole[:, number // boost :: boost, number % boost :: boost], atol=1.01 / 255)


def test_crops_of_any_sizes_are_taken_at_once(kernels: HostKernels) -> None:
    """Each is the one that is taken alone; pixels are the planes in the order of the picture."""
    image = noise(80, 100)
    asked = [(24, 1, True, 0.2, 20), (9, 2, True, 0.7, 50), (23, 1, False, 2, 90)]
    faces, starts = records.new_faces(3), [0, *np.cumsum([3 * (side * boost) ** 2 for side, boost, *_ in asked])]
    matrices = [turned(side * boost, scale, 30, x, 40) for side, boost, _, scale, x in asked]
    for number, ((side, boost, is_planar, *_), matrix) in enumerate(zip(asked, matrices, strict=True)):
        plan, record = crop_plan(matrix, side * boost, image.shape), faces[number : number + 1]
        records.set_crop(record, plan, IMAGENET, side, boost=boost, is_planar=is_planar, place=starts[number])
    out = Guarded((starts[-1],), np.float32)
    run(kernels, "crop_to_tensor", (24, 24, 3), image, 100, 80, 300, records.words(faces), 3, out.array)
    for number, ((side, boost, is_planar, *_), matrix) in enumerate(zip(asked, matrices, strict=True)):
        made, alone = out.check()[starts[number] : starts[number + 1]], crop(kernels, image, matrix, side, IMAGENET, boost)
        if not is_planar:
            made = made.reshape(side, side, 3)[..., ::-1].transpose(2, 0, 1)
        np.testing.assert_array_equal(made.reshape(alone.shape), alone)


def pasted_by_hand(frame: np.ndarray, planes: np.ndarray, alpha: np.ndarray, matrix: np.ndarray, norm: Norm, opacity: float) -> np.ndarray:
    """The processor's way: planes float32 [3, S, S], alpha uint8 [S, S]."""
    picture, out = np.empty((*alpha.shape, 3), np.uint8), frame.copy()
    norm.to_picture(planes, picture)
    patch = paste(picture, alpha, matrix, frame.shape)
    if patch is not None:
        host.blend(out, patch, opacity)
    return out


@settings(max_examples=40, deadline=None)
@given(width=st.integers(1, 100), height=st.integers(1, 80), side=st.sampled_from([1, 7, 16, 32]), opacity=st.floats(0, 1), **anywhere)
def test_a_paste_is_the_processors_and_touches_its_box_alone(
    kernels: HostKernels, width: int, height: int, side: int, opacity: float, scale: float, degrees: float, x: float, y: float, seed: int
) -> None:
    frame = Guarded.of(noise(height, width, seed=seed))
    before, matrix = frame.array.copy(), turned(side, scale, degrees, x, y)
    planes = np.random.default_rng(seed).uniform(-1.2, 1.2, (1, 3, side, side)).astype(np.float32)
    wanted = pasted_by_hand(before, planes[0], soft_box(side), matrix, SIGNED, opacity)
    plan = paste_plan(matrix, side, frame.array.shape)
    if plan is None:
        np.testing.assert_array_equal(wanted, before)
        return
    face = records.new_faces(1)
    records.set_paste(face, plan, SIGNED, opacity)
    words = records.words(face)
    shape, box = (frame.array, width, height, frame.array.strides[0]), (plan.width, plan.height, 1)
    run(kernels, "paste_planes", box, *shape, words, planes, side, 1, soft_box(side), *6 * (None,))
    assert np.abs(frame.check().astype(int) - wanted).max() <= 1
    outside = np.ones((height, width), bool)
    outside[plan.top : plan.top + plan.height, plan.left : plan.left + plan.width] = False
    np.testing.assert_array_equal(frame.array[outside], before[outside])


def test_a_paste_in_two_steps_is_the_one_in_one(kernels: HostKernels) -> None:
    frame, side = noise(90, 120), 32
    once, twice = frame.copy(), frame.copy()
    planes = np.random.default_rng(1).uniform(0, 1, (4, 3, side, side)).astype(np.float32)
    shown = np.random.default_rng(2).uniform(-0.2, 1.2, (4, side, side)).astype(np.float32)
    shown[1, 3, 4] = np.nan
    plan = paste_plan(turned(2 * side, 0.9, 25, 60, 40), 2 * side, frame.shape)
    assert plan is not None
    levels = noise(plan.height, plan.width, 1)[..., 0].copy()
    face = records.new_faces(1)
    records.set_paste(face, plan, UNIT, 0.7)
    words, box, shape = records.words(face), (plan.width, plan.height, 1), (120, 90, 360)
    source = (planes, side, 2, soft_box(2 * side), shown, levels, *4 * (None,))
    run(kernels, "paste_planes", box, once, *shape, words, *source)
    pixels, alpha = Guarded((plan.height, plan.width, 3)), Guarded((plan.height, plan.width))
    run(kernels, "planes_to_patch", (32 * 48, 48, 1), twice, *shape, words, *source, pixels.array, alpha.array, None)
    run(kernels, "lay_patch", box, twice, *shape, words, pixels.check(), alpha.check(), None, None)
    np.testing.assert_array_equal(once, twice)
    assert (once != frame).any()

    whole = np.empty((3, 2 * side, 2 * side), np.float32)
    seen = np.empty((2 * side, 2 * side), np.float32)
    for number in range(4):
        whole[:, number // 2 :: 2, number % 2 :: 2], seen[number // 2 :: 2, number % 2 :: 2] = planes[number], shown[number]
    crop_alpha = np.minimum(soft_box(2 * side), np.round(255 * np.clip(np.nan_to_num(seen), 0, 1)).astype(np.uint8))
    picture = np.empty((2 * side, 2 * side, 3), np.uint8)
    UNIT.to_picture(whole, picture)
    patch = paste(picture, crop_alpha, turned(2 * side, 0.9, 25, 60, 40), frame.shape)
    assert patch is not None
    assert np.abs(pixels.array.astype(int) - patch.pixels).max() <= 1
    np.minimum(patch.alpha, levels, out=patch.alpha)
    assert np.abs(alpha.array.astype(int) - patch.alpha).max() <= 1
    wanted = frame.copy()
    host.blend(wanted, patch, 0.7)
    assert np.abs(once.astype(int) - wanted).max() <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 20), st.integers(0, 20), st.integers(0, 9), st.floats(0, 1), st.integers(0, 99))
def test_a_patch_is_laid_to_the_bit(kernels: HostKernels, width: int, height: int, left: int, top: int, opacity: float, seed: int) -> None:
    """Integers on both sides."""
    frame = Guarded.of(noise(height + top + 2, width + left + 1, seed=seed))
    patch = Patch(noise(height, width, seed=seed + 1), noise(height, width, 1, seed + 2)[..., 0].copy(), left, top)
    wanted = frame.array.copy()
    host.blend(wanted, patch, opacity)
    face = records.new_faces(1)
    records.set_box(face, left, top, width, height, opacity)
    shape = (frame.array, frame.array.shape[1], frame.array.shape[0], frame.array.strides[0])
    nothing = (None, None)
    run(kernels, "lay_patch", (width, height, 1), *shape, records.words(face), patch.pixels, patch.alpha, *nothing)
    np.testing.assert_array_equal(frame.check(), wanted)


def test_a_small_grid_walks_the_whole_box(kernels: HostKernels, backwards_kernels: HostKernels) -> None:
    """A captured graph has one grid for boxes of every size; and no thread waits for another."""
    frame, patch = noise(70, 90), Patch(noise(60, 80, seed=1), noise(60, 80, 1, 2)[..., 0].copy(), 5, 6)
    wanted = frame.copy()
    host.blend(wanted, patch)
    face = records.new_faces(1)
    records.set_box(face, 5, 6, 80, 60, 1)
    for runner in (kernels, backwards_kernels):
        out = frame.copy()
        run(runner, "lay_patch", (1, 1, 1), out, 90, 70, 270, records.words(face), patch.pixels, patch.alpha, None, None)
        np.testing.assert_array_equal(out, wanted)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 260), st.integers(1, 60), st.integers(0, 20), st.integers(0, 9), st.floats(0, 1), st.integers(0, 99))
def test_what_was_laid_is_sharpened_as_by_the_processor(
    kernels: HostKernels, width: int, height: int, left: int, top: int, amount: float, seed: int
) -> None:
    """To the bit: a level of the blur would be one and a half of what is added."""
    frame = Guarded.of(cv2.GaussianBlur(noise(height + top + 2, width + left + 1, seed=seed), (0, 0), 1))
    patch = Patch(noise(height, width, seed=seed + 1), noise(height, width, 1, seed + 2)[..., 0].copy(), left, top)
    patch.alpha[: height // 2, ::2] = 0
    wanted = frame.array.copy()
    host.blend(wanted, patch)
    host.sharpen(wanted, patch, amount)
    face, finish = records.new_faces(1), np.full(3 + records.RADIUS_MAX, np.nan, np.float32)
    records.set_box(face, left, top, width, height, 1)
    records.set_finish(finish, host.sharpen_sigma(width), round(amount * host.SHARPEN_MOST * 256))
    shape = (frame.array, frame.array.shape[1], frame.array.shape[0], frame.array.strides[0], records.words(face))
    layer, rows = (patch.pixels, patch.alpha, None, None, finish), Guarded((height, width * 3), np.float32, 0)
    run(kernels, "lay_rows", (32, 8, 1), *shape, *layer, rows.array)
    run(kernels, "lay_columns", (32, 8, 1), *shape, *layer, rows.check())
    np.testing.assert_array_equal(frame.check(), wanted)


def test_a_crop_pasted_back_is_the_picture(kernels: HostKernels) -> None:
    """Algebra: a whole shift has no samples between pixels."""
    image, matrix = noise(60, 60), np.array([[1, 0, -10], [0, 1, -20]], np.float32)
    planes = crop(kernels, image, matrix, 30, UNIT)
    face = records.new_faces(1)
    plan = paste_plan(matrix, 30, image.shape)
    assert plan is not None
    assert (plan.left, plan.top) == tuple(np.floor(inverse(matrix)[:, 2] - 0.5).astype(int))
    records.set_paste(face, plan, UNIT, 1)
    out = np.zeros_like(image)
    full = np.full((30, 30), 255, np.uint8)
    run(kernels, "paste_planes", (plan.width, plan.height, 1), out, 60, 60, 180, records.words(face), planes, 30, 1, full, *6 * (None,))
    np.testing.assert_array_equal(out[20:50, 10:40], image[20:50, 10:40])
    out[20:50, 10:40] = 0
    assert not out.any()

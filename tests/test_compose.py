"""The compositor: patches laid over the frame, faces hidden, and not a pixel more."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.mesh import regions
from engines.mesh.topology import topology
from engines.paste import soft_box
from engines.swap.contract import Patch
from rt.compose.host import blend, blur_face
from rt.compose.seam import match_colours
from rt.options import Blending


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def face_at(x: float, y: float, eyes_px: float) -> np.ndarray:
    return (topology().shape * eyes_px + [x, y, 0]).astype(np.float32)


@settings(max_examples=60, deadline=None)  # the first one imports numba
@given(st.integers(0, 30), st.integers(0, 20), st.integers(1, 30), st.integers(1, 20), st.floats(0, 1), st.integers(0, 99))
def test_blend_is_the_weighted_mean_inside_and_nothing_outside(
    left: int, top: int, width: int, height: int, opacity: float, seed: int
) -> None:
    frame, random = noise(40, 60, seed), np.random.default_rng(seed + 1)
    patch = Patch(noise(height, width, seed + 2), random.integers(0, 256, (height, width), np.uint8), left, top)
    before = frame.copy()
    blend(frame, patch, opacity)
    inside = np.s_[top : top + height, left : left + width]
    share = patch.alpha[..., None] / 255 * round(opacity * 256) / 256
    wanted = before[inside] * (1 - share) + patch.pixels * share
    np.testing.assert_allclose(frame[inside], wanted, atol=0.5 + 1e-6)
    frame[inside] = before[inside]
    np.testing.assert_array_equal(frame, before)


def test_blend_writes_through_rows_that_are_wider_than_the_picture() -> None:
    wide = noise(20, 64)
    before = wide.copy()
    blend(wide[:, :50], Patch(np.full((20, 50, 3), 9, np.uint8), np.full((20, 50), 255, np.uint8), 0, 0))
    assert (wide[:, :50] == 9).all()
    np.testing.assert_array_equal(wide[:, 50:], before[:, 50:])


def test_full_alpha_shows_the_patch_and_none_keeps_the_frame() -> None:
    frame, pixels = noise(16, 16), noise(16, 16, 1)
    before = frame.copy()
    alpha = np.zeros((16, 16), np.uint8)
    alpha[:, 8:] = 255
    blend(frame, Patch(pixels, alpha, 0, 0))
    np.testing.assert_array_equal(frame[:, :8], before[:, :8])
    np.testing.assert_array_equal(frame[:, 8:], pixels[:, 8:])


def inside_oval(points: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    mask = np.zeros(shape, np.uint8)
    cv2.fillPoly(mask, [np.round(points[regions.OVAL, :2]).astype(np.int32)], 1)
    return mask.astype(bool)


@pytest.mark.parametrize("eyes_px", [20, 60, 150])
def test_a_hidden_face_has_no_detail_left_and_its_surroundings_are_untouched(eyes_px: float) -> None:
    """White noise holds as much energy at every frequency: averaged to six cells a width, nearly none of it is left."""
    picture, points = noise(480, 640), face_at(320, 240, eyes_px)
    before = picture.copy()
    blur_face(picture, points)
    oval = inside_oval(points, picture.shape[:2])

    def energy(image: np.ndarray) -> float:
        grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).astype(np.float32)
        return float((cv2.Laplacian(grey, cv2.CV_32F)[oval] ** 2).mean())

    assert energy(picture) < 1e-3 * energy(before)
    size = np.ptp(points[:, :2], 0).max()
    left, top = (points[:, :2].min(0) - 0.26 * size - 2).astype(int).clip(0)
    right, bottom = (points[:, :2].max(0) + 0.26 * size + 2).astype(int)
    picture[top:bottom, left:right] = before[top:bottom, left:right]
    np.testing.assert_array_equal(picture, before)


def test_a_hidden_face_cannot_be_told_from_another_with_the_same_cells() -> None:
    """Irreversible: moving brightness about within a cell changes nothing that is shown."""
    points = face_at(200, 200, 96)
    flat = np.full((400, 400, 3), 128, np.uint8)
    checked = flat.copy()
    rows, columns = np.mgrid[:400, :400]
    checked[(rows + columns) % 2 == 0] = 28
    checked[(rows + columns) % 2 == 1] = 228
    blur_face(flat, points)
    blur_face(checked, points)
    oval = inside_oval(points, (400, 400))
    assert np.abs(flat[oval].astype(int) - checked[oval]).max() <= 2


@given(st.floats(-300, 900), st.floats(-300, 700), st.floats(1, 200))
@settings(max_examples=40, deadline=None)
def test_a_face_anywhere_is_hidden_wherever_it_is_in_the_picture(x: float, y: float, eyes_px: float) -> None:
    picture, points = noise(240, 320), face_at(x, y, eyes_px)
    before = picture.copy()
    blur_face(picture, points)
    oval = inside_oval(points, (240, 320))
    if oval.sum() > 50:
        assert (picture[oval] != before[oval]).any(-1).mean() > 0.9


def test_points_that_are_no_numbers_hide_nothing_and_raise_nothing() -> None:
    picture, points = noise(100, 100), face_at(50, 50, 20)
    points[3, 0] = np.nan
    before = picture.copy()
    blur_face(picture, points)
    np.testing.assert_array_equal(picture, before)


@settings(max_examples=30, deadline=None)
@given(st.integers(8, 150), st.integers(8, 150), st.lists(st.integers(-40, 40), min_size=3, max_size=3))
def test_a_patch_of_another_tint_takes_the_frames(width: int, height: int, tint: list[int]) -> None:
    """A step that is the same all along the seam is the same inside: the membrane over a constant is that constant."""
    frame = np.full((160, 160, 3), 120, np.uint8)
    alpha = cv2.resize(soft_box(160), (width, height), interpolation=cv2.INTER_AREA)
    patch = Patch(np.full((height, width, 3), 120 - np.array(tint), np.uint8), alpha, 5, 3)
    match_colours(frame, patch, Blending.SEAMLESS)
    assert np.abs(patch.pixels.astype(int) - 120).max() <= 1


def test_a_step_that_grows_along_the_patch_is_continued_evenly() -> None:
    """A linear function is harmonic: the true membrane inside of a linear seam is that line. Pull and push comes near to it."""
    ramp = np.linspace(-30, 30, 200)[None, :, None]
    frame = np.full((200, 200, 3), 120, np.uint8)
    patch = Patch(np.round(120 - np.broadcast_to(ramp, frame.shape)).astype(np.uint8), soft_box(200).copy(), 0, 0)
    match_colours(frame, patch, Blending.SEAMLESS)
    off = patch.pixels.astype(float)[20:-20, 20:-20] - 120
    assert np.abs(off).max() < 9, "of a step of 60"
    assert np.abs(off).mean() < 4


def test_the_details_of_a_patch_stay() -> None:
    frame, patch = np.full((128, 128, 3), 140, np.uint8), noise(128, 128)
    before = patch.copy()
    match_colours(frame, Patch(patch, soft_box(128).copy(), 0, 0), Blending.SEAMLESS)
    grain = [picture.astype(np.float32) - cv2.GaussianBlur(picture.astype(np.float32), (0, 0), 2) for picture in (before, patch)]
    inside = (before > 60) & (before < 190)
    assert np.corrcoef(grain[0][inside], grain[1][inside])[0, 1] > 0.98


def test_a_patch_without_a_fading_edge_is_left_alone() -> None:
    frame, patch = noise(32, 32), Patch(noise(32, 32, 1), np.full((32, 32), 255, np.uint8), 0, 0)
    before = patch.pixels.copy()
    match_colours(frame, patch, Blending.SEAMLESS)
    np.testing.assert_array_equal(patch.pixels, before)


def test_hair_on_the_seam_does_not_darken_the_face() -> None:
    """A dark bar of the frame lies across the seam on one side: the step there is no light, and the patch's middle keeps its colour."""
    frame = np.full((200, 200, 3), 150, np.uint8)
    frame[:, :40] = 0
    patch = Patch(np.full((160, 160, 3), 150, np.uint8), soft_box(160).copy(), 20, 20)
    match_colours(frame, patch, Blending.SEAMLESS)
    assert np.abs(patch.pixels[80, 80].astype(int) - 150).max() <= 12


def test_a_mirrored_view_is_refused_with_what_to_give_instead() -> None:
    """It would have to be copied, and the copy be blended over."""
    pixels = np.zeros((40, 40, 3), np.uint8)
    patch = Patch(np.full((8, 8, 3), 200, np.uint8), np.full((8, 8), 255, np.uint8), 4, 4)
    with pytest.raises(ValueError, match=r"side by side, as np\.ascontiguousarray makes them"):
        blend(pixels[:, ::-1], patch)
    assert not pixels.any()
    blend(pixels[::-1], patch)  # rows may stand in any order
    assert pixels[-5].any()

"""The square that landmark models look at, and the way back."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.face import Detection, Roi
from engines.landmarks.crop import crop_rgb, roi_matrix, to_picture
from engines.landmarks.facemesh import SIDE, roi_from_detection, roi_from_points

place = st.floats(-500, 2500)
size = st.floats(4, 2000)
turn = st.floats(-math.pi, math.pi)
rois = st.builds(Roi, place, place, size, turn)


def spot(height: int, width: int, x: float, y: float, sigma: float) -> np.ndarray:
    """A soft bright spot on black, its centre at (x, y)."""
    rows, columns = np.mgrid[:height, :width]
    bright = 250 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))
    return np.repeat(bright.astype(np.uint8)[..., None], 3, 2)


def centre_of_light(image: np.ndarray) -> tuple[float, float]:
    light = image[..., 0].astype(np.float64)
    rows, columns = np.mgrid[: light.shape[0], : light.shape[1]]
    return float((columns * light).sum() / light.sum()), float((rows * light).sum() / light.sum())


@given(rois, st.booleans())
def test_the_middle_of_the_crop_is_the_middle_of_the_roi(roi, mirror):
    middle = SIDE / 2 - 1 if mirror else SIDE / 2
    found = to_picture(np.array([[middle, SIDE / 2]], np.float32), roi_matrix(roi, SIDE, mirror))[0]
    np.testing.assert_allclose(found, [roi.x, roi.y], atol=2e-3)


@given(rois)
def test_the_crop_is_as_large_and_as_turned_as_the_roi(roi):
    corners = to_picture(np.array([[0, 0, 0], [SIDE, 0, SIDE]], np.float32), roi_matrix(roi, SIDE))
    x, y, depth = (corners[1] - corners[0]).astype(float)
    assert math.hypot(x, y) == pytest.approx(roi.size, rel=1e-3, abs=5e-3)
    assert depth == pytest.approx(roi.size, rel=1e-4)
    assert math.cos(math.atan2(y, x) - roi.angle) > 0.999


@given(rois)
def test_a_mirrored_crop_has_its_columns_reversed(roi):
    columns = np.stack([np.arange(SIDE), np.full(SIDE, 7)], 1).astype(np.float32)
    plain = to_picture(columns, roi_matrix(roi, SIDE))
    np.testing.assert_allclose(to_picture(columns, roi_matrix(roi, SIDE, True)), plain[::-1], atol=5e-3)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("size_px", [150, 300, 390, 800], ids=lambda px: f"{px}px")
def test_what_the_crop_shows_is_where_the_matrix_says(size_px, mirror):
    """Also where the picture is halved on the way (from twice the crop's side on), to a tenth of a crop pixel."""
    image = spot(900, 1100, 601.3, 410.7, sigma=size_px / 40)
    roi = Roi(580.2, 430.1, size_px, 0.4)
    seen = np.array([centre_of_light(crop_rgb(image, roi, SIDE, mirror))], np.float32)
    found = to_picture(seen, roi_matrix(roi, SIDE, mirror))[0]
    np.testing.assert_allclose(found, [601.3, 410.7], atol=0.1 * size_px / SIDE)


@given(rois)
def test_any_place_and_size_can_be_looked_at(roi):
    image = np.full((40, 60, 3), (10, 120, 230), np.uint8)
    crop = crop_rgb(image, roi, SIDE)
    assert crop.shape == (SIDE, SIDE, 3)
    np.testing.assert_array_equal(crop.reshape(-1, 3), np.tile(np.array([230, 120, 10], np.uint8), (SIDE * SIDE, 1)))


def test_large_faces_are_averaged_not_sampled():
    """White noise: the mean of two by two pixels leaves half of what one pixel has."""
    noise = np.clip(np.random.default_rng(3).normal(128, 40, (900, 900, 1)), 0, 255).astype(np.uint8).repeat(3, 2)
    crop = crop_rgb(noise, Roi(450, 450, 4 * SIDE, 0.0), SIDE)
    matrix = roi_matrix(Roi(450, 450, 4 * SIDE, 0.0), SIDE)
    sampled = cv2.warpAffine(noise, matrix, (SIDE, SIDE), flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP)
    assert crop.std() < 0.55 * sampled.std()


@given(st.floats(-3, 3), st.floats(0.2, 5), st.floats(-800, 800), st.floats(-800, 800))
def test_the_roi_moves_grows_and_turns_with_the_points(angle, scale, x, y):
    base = np.random.default_rng(2).uniform(-100, 100, (468, 2))
    base[33], base[263] = (-60, -20), (60, -20)
    cos, sin = math.cos(angle), math.sin(angle)
    moved = scale * base @ np.array([[cos, sin], [-sin, cos]]) + [x, y]
    before, after = roi_from_points(base.astype(np.float32)), roi_from_points(moved.astype(np.float32))
    expected = scale * np.array([[cos, -sin], [sin, cos]]) @ [before.x, before.y] + [x, y]
    np.testing.assert_allclose([after.x, after.y], expected, atol=0.05)
    assert after.size == pytest.approx(scale * before.size, rel=1e-3)
    assert math.cos(after.angle - angle) > 0.9999


def test_a_detection_gives_one_and_a_half_boxes_turned_by_the_eyes():
    detection = Detection(np.array([10, 20, 110, 100], np.float32), np.array([[40, 40], [80, 80]], np.float32), 0.9)
    roi = roi_from_detection(detection)
    assert (roi.x, roi.y, roi.size, roi.angle) == pytest.approx((60, 60, 150, math.pi / 4))

"""The landmark filter: against the paper written out point by point, and by what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rt.track import smoothing
from rt.track.smoothing import LandmarkFilter

FRAME_NS = 33_333_333


def face(seed: int = 0, count: int = 468, width: float = 200.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    points = random.uniform(-0.5, 0.5, (count, 3)) * width + [320, 240, 0]
    return points.astype(np.float32)


def through(filter_: LandmarkFilter, frames: list[np.ndarray], step_ns: int = FRAME_NS) -> list[np.ndarray]:
    return [filter_(points.astype(np.float32), number * step_ns) for number, points in enumerate(frames)]


def low_pass_gain(cutoff_hz: float, elapsed_s: float) -> float:
    """The paper's alpha: 1 / (1 + tau / Te), tau = 1 / (2 pi fc)."""
    return 1 / (1 + 1 / (2 * math.pi * cutoff_hz) / elapsed_s)


def test_the_shape_is_filtered_as_the_paper_says_point_by_point() -> None:
    random = np.random.default_rng(3)
    shapes = np.cumsum(random.normal(0, 0.01, (12, 5, 3)), 0)
    elapsed_s = 0.04
    wanted, speed = shapes[0].copy(), np.zeros((5, 3))
    for shape in shapes[1:]:
        for point in range(5):
            for axis in range(3):
                moved = (shape[point, axis] - wanted[point, axis]) / elapsed_s
                speed[point, axis] += low_pass_gain(smoothing.SPEED_HZ, elapsed_s) * (moved - speed[point, axis])
            rush = math.hypot(speed[point, 0], speed[point, 1])
            gain = low_pass_gain(smoothing.SHAPE_HZ + smoothing.SHAPE_HZ_PER_SPEED * rush, elapsed_s)
            wanted[point] += gain * (shape[point] - wanted[point])
    # points that keep their centre and size are all shape
    filter_ = LandmarkFilter()
    filter_._restart(np.zeros(3), shapes[0].astype(np.float32), 0)
    for shape in shapes[1:]:
        filter_._filter_shape(shape.astype(np.float32), elapsed_s)
    np.testing.assert_allclose(filter_._shape, wanted, atol=1e-6)


@given(st.integers(0, 1000), st.lists(st.integers(1, 200_000_000), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_strength_zero_changes_nothing(seed: int, steps_ns: list[int]) -> None:
    filter_ = LandmarkFilter(0.0)
    at_ns = 0
    for number, step_ns in enumerate(steps_ns):
        points = face(seed + number)
        at_ns += step_ns
        np.testing.assert_array_equal(filter_(points, at_ns), points)


@given(st.floats(0.5, 4), st.floats(-500, 500), st.floats(-500, 500))
@settings(max_examples=30, deadline=None)
def test_a_face_twice_as_large_or_elsewhere_is_filtered_alike(scale: float, x: float, y: float) -> None:
    random = np.random.default_rng(1)
    frames = [face() + random.normal(0, 1, (468, 3)) for _ in range(6)]
    moved = [points * scale + [x, y, 0] for points in frames]
    plain, other = through(LandmarkFilter(), frames)[-1], through(LandmarkFilter(), moved)[-1]
    np.testing.assert_allclose(other, plain * scale + [x, y, 0], atol=0.02)


def test_a_still_face_in_noise_trembles_half_as_much() -> None:
    random = np.random.default_rng(2)
    frames = [face() + random.normal(0, 0.5, (468, 3)) for _ in range(90)]
    steady = np.stack(through(LandmarkFilter(), frames)[30:])
    trembling = np.sqrt(((steady - steady.mean(0)) ** 2).sum(-1).mean())
    raw = np.sqrt(3) * 0.5
    assert trembling < raw / 2


@pytest.mark.parametrize("fps", [15, 24, 30, 60])
@pytest.mark.parametrize("speed_px_s", [10.0, 60.0, 600.0])
def test_a_moving_face_is_followed_within_a_frame(fps: int, speed_px_s: float) -> None:
    step = speed_px_s / fps
    frames = [face() + [max(0, number - 10) * step, 0, 0] for number in range(60)]
    steadied = through(LandmarkFilter(), frames, round(1e9 / fps))
    late = [(points - shown)[:, 0].mean() / step for points, shown in zip(frames, steadied, strict=True)]
    assert max(late) <= max(1.0, fps / 30)  # a frame, or 33 ms where frames are shorter


@pytest.mark.parametrize("step_px", [2.0, 10.0, 60.0])
def test_a_step_is_taken_within_a_frame(step_px: float) -> None:
    frames = [face() + [step_px * (number >= 20), 0, 0] for number in range(24)]
    shown = through(LandmarkFilter(), frames)
    left = [(points - seen)[:, 0].mean() / step_px for points, seen in zip(frames, shown, strict=True)]
    assert left[20] < 0.5
    assert left[21] < 0.2


def test_a_jump_passes_at_once() -> None:
    elsewhere = face(seed=9) + np.float32([400, 0, 0])
    shown = through(LandmarkFilter(), [face(), face(), elsewhere])
    np.testing.assert_array_equal(shown[-1], elsewhere)


def test_a_long_gap_or_a_clock_that_stands_still_starts_again() -> None:
    filter_ = LandmarkFilter()
    filter_(face(), 0)
    np.testing.assert_array_equal(filter_(face(1), 0), face(1))
    np.testing.assert_array_equal(filter_(face(2), 2_000_000_000), face(2))


@given(st.floats(-1e5, 1e5), st.floats(0, 1e-3))
@settings(max_examples=30, deadline=None)
def test_even_points_that_all_lie_in_one_place_give_finite_results(x: float, spread: float) -> None:
    frames = [np.full((468, 3), x) + np.random.default_rng(n).normal(0, spread, (468, 3)) for n in range(4)]
    assert np.isfinite(np.stack(through(LandmarkFilter(), frames))).all()

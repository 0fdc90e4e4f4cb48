"""Ways to take the colours of what lies below, against algebra, SciPy and NumPy; and the badge. That a device does the same as the
processor is shown in test_kernels_seam.py."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.face import Patch
from engines.paste import soft_box
from rt.compose import host
from rt.compose.kernels.host import HostKernels
from rt.compose.seam import SEAM_CELLS, match_colours, transfer_table
from rt.options import Blending
from tests.kernel_kit import Guarded, noise, run

sizes = {"width": st.integers(1, 90), "height": st.integers(1, 70), "seed": st.integers(0, 99)}
few = {"columns": st.integers(1, SEAM_CELLS), "rows": st.integers(1, SEAM_CELLS), "seed": st.integers(0, 99)}
"""A patch so small that its cells are its pixels."""


def smooth(height: int, width: int, seed: int) -> np.ndarray:
    """As skin is: colours that change slowly, and a little grain."""
    coarse = np.random.default_rng(seed).integers(60, 200, (4, 5, 3), np.uint8)
    grain = np.random.default_rng(seed + 1).integers(-6, 7, (height, width, 3))
    return np.clip(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR) + grain, 0, 255).astype(np.uint8)


def soft(rows: int, columns: int) -> np.ndarray:
    """uint8: an alpha that is 0 at the border."""
    return cv2.resize(soft_box(60), (columns, rows), interpolation=cv2.INTER_AREA).reshape(rows, columns)


def added(frame: np.ndarray, pixels: np.ndarray, alpha: np.ndarray, blending: Blending) -> np.ndarray:
    """What is added to a patch over the whole of ``frame``, levels; a grey frame keeps all of it in range."""
    patch = Patch(pixels.copy(), alpha, 0, 0)
    match_colours(frame, patch, blending)
    return patch.pixels.astype(int) - pixels


# --- as a whole ---


@settings(max_examples=30, deadline=None)
@given(transfer=st.sampled_from([0.5, 1.0]), **few)
def test_mean_and_deviation_become_the_frames(transfer: float, columns: int, rows: int, seed: int) -> None:
    """Against NumPy in double precision; a gain beyond two is cut, and what is flat is not drawn out."""
    frame, patch, alpha = smooth(rows, columns, seed + 3), smooth(rows, columns, seed), noise(rows, columns, 1, seed)
    table = transfer_table(np.dstack([frame, patch, alpha]), transfer).astype(int)
    for c in range(3):
        weights = alpha[..., 0].astype(float)
        if not weights.any():
            np.testing.assert_array_equal(table[:, c], np.arange(256))
            continue
        (under, frame_deviation), (over, deviation) = (
            (mean := np.average(part[..., c], weights=weights), np.sqrt(np.average((part[..., c] - mean) ** 2, weights=weights)))
            for part in (frame, patch)
        )
        if abs(deviation - 1) < 1e-3:
            continue  # which side of flat is a matter of rounding
        gain = 1 if deviation < 1 else np.clip(frame_deviation / deviation, 0.5, 2)
        gain = 1 + transfer * (gain - 1)
        wanted = over + transfer * (under - over) + gain * (np.arange(256) - over)
        assert np.abs(table[:, c] - np.clip(wanted, 0, 255)).max() <= 0.51


def test_a_patch_that_is_the_frame_in_other_light_becomes_the_frame() -> None:
    frame = smooth(60, 80, 1)
    lit = (frame.astype(np.float32) * [0.8, 0.7, 0.6] + [30, 40, 50]).round().astype(np.uint8)
    patch = Patch(lit[5:55, 10:70].copy(), np.full((50, 60), 255, np.uint8), 10, 5)
    match_colours(frame, patch, Blending.SOFT, transfer=1.0)
    assert np.abs(patch.pixels.astype(int) - frame[5:55, 10:70]).max() <= 2  # the patch was rounded before: twice that at most


def test_nothing_is_done_that_was_not_asked_for() -> None:
    pixels = noise(40, 50)
    assert not added(noise(40, 50, seed=1), pixels, soft(40, 50), Blending.SOFT).any()


# --- in bands ---


def expanded(half: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """By hand: pixel x of the fine one is pixel x / 2 of the half, or the mean of two."""
    for axis in (0, 1):
        at = np.arange(shape[axis])
        last = half.shape[axis] - 1
        half = (np.take(half, at // 2, axis) + np.take(half, np.minimum(at // 2 + at % 2, last), axis)) / 2
    return half


def spline_by_hand(below: np.ndarray, patch: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Burt and Adelson's: Laplacian pyramids of both, blended level by level and collapsed. OpenCV's pyrDown, in floats. Coarse alphas are
    drawn in; what is hair or not seen at all is of the usual step."""
    step = patch.astype(np.float32) - below
    ring = (alpha >= 8) & (alpha <= 200)
    middle = np.median(step[ring], axis=0)
    over = below + np.where(alpha[..., None] > 0, np.clip(step, middle - 24, middle + 24), middle).astype(np.float32)
    both, smooth, covers = [[over], [below.astype(np.float32)]], alpha / np.float32(255), [alpha / np.float32(255)]
    while min(smooth.shape) >= 12:
        rows, columns = (-(-size // 2) for size in smooth.shape)
        smooth = cv2.pyrDown(np.pad(smooth, 4))[2 : 2 + rows, 2 : 2 + columns]
        covers.append(np.clip(2 * smooth - 1, 0, 1))
        for pyramid in both:
            pyramid.append(cv2.pyrDown(pyramid[-1]))
    last, result = len(covers) - 1, np.zeros((1, 1, 3))
    for k in range(last, -1, -1):
        bands = [p[k] if k == last else p[k] - expanded(p[k + 1], p[k].shape) for p in both]
        mixed = bands[1] + covers[k][..., None] * (bands[0] - bands[1])
        result = mixed if k == last else expanded(result, mixed.shape) + mixed
    return result + (alpha / 255)[..., None] * (step - over + below)


@settings(max_examples=30, deadline=None)
@given(**few)
def test_bands_are_burt_and_adelsons(columns: int, rows: int, seed: int) -> None:
    """Where the patch is seen enough for a byte to hold what is to be added to it."""
    frame, pixels, alpha = smooth(rows, columns, seed + 3), smooth(rows, columns, seed), soft(rows, columns)
    if not ((alpha >= 8) & (alpha <= 200)).any():
        return
    wanted, patch = spline_by_hand(frame, pixels, alpha), Patch(pixels.copy(), alpha, 0, 0)
    match_colours(frame, patch, Blending.MULTIBAND)
    clear = (alpha[..., None] > 0) & (patch.pixels > 0) & (patch.pixels < 255) & (np.abs(patch.pixels.astype(int) - pixels) < 127)
    made = frame + (alpha / 255.0)[..., None] * (patch.pixels.astype(float) - frame)
    assert not clear.any() or np.abs(made - wanted)[clear].max() <= 0.51


def test_what_is_opaque_everywhere_is_shown_as_it_is() -> None:
    """Algebra: the bands add up to the picture again."""
    frame, pixels = noise(48, 40), noise(48, 40, seed=1)
    assert np.abs(added(frame, pixels, np.full((48, 40), 255, np.uint8), Blending.MULTIBAND)).max() <= 1


def test_a_step_fades_further_inside_than_the_edge_and_detail_stays() -> None:
    """A face twenty levels darker than what lies around it: where alpha has laid all of it, the step is still fading, and nowhere steeper
    than by alpha; the middle keeps its colour, which a seam that is matched takes away."""
    grain = np.random.default_rng(2).integers(-6, 7, (240, 240, 1))
    frame, pixels = np.full((240, 240, 3), 140, np.uint8), np.broadcast_to(120 + grain, (240, 240, 3)).astype(np.uint8)
    alpha = soft_box(240).copy()
    bands, seam = (added(frame, pixels, alpha, way).astype(float) for way in (Blending.MULTIBAND, Blending.SEAMLESS))
    laid = ((bands - 20) * alpha[..., None] / 255)[110:130].mean((0, 2))[:120]
    assert alpha[120, 30] == 255
    assert laid[30] > -12
    assert -21 < laid[110] < -15
    assert laid.max() < 0.5
    plain = -20 * (alpha[120, :120] / 255)
    assert (laid[5:] - laid[:-5]).min() > 0.7 * (plain[5:] - plain[:-5]).min()
    assert seam[100:140, 100:140].mean() > 18
    assert np.std(bands[100:140, 100:140]) < 1, "what is finer than a cell is added nowhere"


# --- by gradients ---


def poisson_by_hand(cells: np.ndarray) -> np.ndarray:
    """The sparse system solved by SciPy: u inside, the frame outside, gradients mixed by alpha between neighbours."""
    from scipy.sparse import lil_matrix
    from scipy.sparse.linalg import spsolve

    rows, columns = cells.shape[:2]
    step = cells[..., :3].astype(float) - cells[..., 3:6]
    ring = (cells[..., 6] >= 8) & (cells[..., 6] <= 200)
    middle = np.median(step[ring], axis=0)
    step = np.where(cells[..., 6:] > 0, np.clip(step, middle - 24, middle + 24), middle)
    step = np.pad(step, ((1, 1), (1, 1), (0, 0)), mode="edge")
    alpha = np.pad(cells[..., 6] / 255.0, 1)
    system, right = lil_matrix((rows * columns,) * 2), np.zeros((rows * columns, 3))
    for y in range(rows):
        for x in range(columns):
            at = y * columns + x
            system[at, at] = -4
            for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
                there = (y + 1 + dy, x + 1 + dx)
                if 0 <= y + dy < rows and 0 <= x + dx < columns:
                    system[at, at + dy * columns + dx] = 1
                rise = alpha[there] - alpha[y + 1, x + 1]
                right[at] += rise * (step[there] + step[y + 1, x + 1]) / 2
    smooth_part = np.stack([spsolve(system.tocsr(), right[:, c]) for c in range(3)], 1).reshape(rows, columns, 3)
    inside = np.s_[1:-1, 1:-1]
    return np.clip(smooth_part + (1 - alpha[inside])[..., None] * step[inside], -128, 127)


@settings(max_examples=20, deadline=None)
@given(**few)
def test_gradients_are_pasted_as_the_sparse_system_says(columns: int, rows: int, seed: int) -> None:
    frame, pixels, alpha = smooth(rows, columns, seed), smooth(rows, columns, seed + 7), soft(rows, columns)
    made = added(frame, pixels, alpha, Blending.POISSON)
    if not ((alpha >= 8) & (alpha <= 200)).any():
        assert not made.any()
        return
    wanted = poisson_by_hand(np.dstack([frame, pixels, alpha]))
    inside = (pixels + wanted > 1) & (pixels + wanted < 254)
    assert np.abs(made - wanted)[inside].max() <= 1


@pytest.mark.parametrize("step", [-30, 0, 55])
def test_a_patch_that_differs_by_one_colour_becomes_the_frame(step: int) -> None:
    """Its gradients are the frame's: whatever alpha is, the step is taken away wholly."""
    frame = smooth(30, 40, 2)
    made = added(frame, (frame.astype(int) - step).astype(np.uint8), soft(30, 40), Blending.POISSON)
    np.testing.assert_array_equal(made, np.full((30, 40, 3), step))


# --- the badge ---


@settings(max_examples=40, deadline=None)
@given(left=st.integers(-30, 50), top=st.integers(-30, 40), opacity=st.integers(0, 256), **sizes)
def test_a_badge_is_blended_and_cut_at_the_border(
    kernels: HostKernels, left: int, top: int, opacity: int, width: int, height: int, seed: int
) -> None:
    frame, badge = Guarded.of(noise(30, 41, seed=seed)), noise(height, width, 4, seed + 1)
    wanted = frame.array.copy()
    near_x, near_y, far_x, far_y = max(left, 0), max(top, 0), min(left + width, 41), min(top + height, 30)
    if near_x < far_x and near_y < far_y:
        part = np.ascontiguousarray(badge[near_y - top : far_y - top, near_x - left : far_x - left])
        host.blend(wanted, Patch(part[..., :3].copy(), part[..., 3].copy(), near_x, near_y), opacity / 256)
    shape = (frame.array, 41, 30, frame.array.strides[0])
    run(kernels, "paint_badge", (width, height, 1), *shape, badge, width, height, left, top, opacity)
    np.testing.assert_array_equal(frame.check(), wanted)

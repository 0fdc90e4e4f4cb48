"""Colour transfer, blending in bands and by gradients, and the badge: against algebra, SciPy and OpenCV. The processor has none of them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.face import Patch
from engines.paste import soft_box
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.host import HostKernels
from tests.kernel_kit import Guarded, noise, run

sizes = {"width": st.integers(1, 90), "height": st.integers(1, 70), "seed": st.integers(0, 99)}


def smooth(height: int, width: int, seed: int) -> np.ndarray:
    """As skin is: colours that change slowly, and a little grain."""
    few = np.random.default_rng(seed).integers(60, 200, (4, 5, 3), np.uint8)
    grain = np.random.default_rng(seed + 1).integers(-6, 7, (height, width, 3))
    return np.clip(cv2.resize(few, (width, height), interpolation=cv2.INTER_LINEAR) + grain, 0, 255).astype(np.uint8)


class Box:
    """A frame, guarded, and a box of it in which a patch lies."""

    def __init__(self, kernels: HostKernels, patch: Patch, frame: np.ndarray, opacity: float = 1) -> None:
        self.frame, self.patch, self._kernels = Guarded.of(frame), patch, kernels
        self.height, self.width = patch.alpha.shape
        face = records.new_faces(1)
        records.set_box(face, patch.left, patch.top, self.width, self.height, opacity)
        pixels = self.frame.array
        self.shape = (pixels, pixels.shape[1], pixels.shape[0], pixels.strides[0], records.words(face))

    def run(self, name: str, *args: object, size: tuple[int, int] | None = None) -> None:
        width, height = size or (self.width, self.height)
        run(self._kernels, name, (width, height, 1), *args)

    @property
    def below(self) -> np.ndarray:
        """What of the frame lies under the patch."""
        return self.frame.array[self.patch.top : self.patch.top + self.height, self.patch.left : self.patch.left + self.width]


def fit_of(kernels: HostKernels, box: Box, limit: np.ndarray | None, strength: float, blocks: int = 3) -> np.ndarray:
    sums, fit = Guarded((blocks, 13), np.float32, 0), Guarded((6,), np.float32)
    run(kernels, "match_sums", (256 * blocks, 1, 1), *box.shape, box.patch.pixels, box.patch.alpha, limit, sums.array)
    run(kernels, "match_fit", (3, 1, 1), sums.check(), blocks, strength, fit.array)
    return fit.check()


@settings(max_examples=30, deadline=None)
@given(limited=st.booleans(), **sizes)
def test_mean_and_deviation_become_the_frames(kernels: HostKernels, limited: bool, width: int, height: int, seed: int) -> None:
    """Against NumPy in double precision; a gain beyond two is cut."""
    patch = Patch(smooth(height, width, seed), noise(height, width, 1, seed)[..., 0].copy(), 2, 3)
    box = Box(kernels, patch, smooth(height + 5, width + 4, seed + 3))
    limit = noise(height, width, 1, seed + 1)[..., 0].copy() if limited else None
    fit = fit_of(kernels, box, limit, 1.0)
    weight = (patch.alpha if limit is None else np.minimum(patch.alpha, limit)).astype(float)
    if not weight.any():
        np.testing.assert_array_equal(fit, [1, 1, 1, 0, 0, 0])
        return
    means, deviations = [], []
    for part in (box.below, patch.pixels):
        mean = np.average(part, (0, 1), np.repeat(weight[..., None], 3, 2))
        means.append(mean)
        deviations.append(np.sqrt(np.average((part - mean) ** 2, (0, 1), np.repeat(weight[..., None], 3, 2))))
    gain = np.where(deviations[1] < 1, 1, np.clip(deviations[0] / np.maximum(deviations[1], 1e-9), 0.5, 2))
    clear = np.abs(deviations[1] - 1) > 0.05  # on the edge of what is flat float32 may decide otherwise
    np.testing.assert_allclose(fit[:3][clear], gain[clear], atol=0.01)
    np.testing.assert_allclose((fit[:3] * means[1] + fit[3:])[clear], means[0][clear], atol=0.05)


def test_a_patch_that_is_the_frame_in_other_light_becomes_the_frame(kernels: HostKernels) -> None:
    frame = smooth(60, 80, 1)
    lit = (frame.astype(np.float32) * [0.8, 0.7, 0.6] + [30, 40, 50]).round().astype(np.uint8)
    patch = Patch(lit[5:55, 10:70].copy(), np.full((50, 60), 255, np.uint8), 10, 5)
    box = Box(kernels, patch, frame)
    fit = fit_of(kernels, box, None, 1.0)
    run(kernels, "lay_patch", (60, 50, 1), *box.shape, patch.pixels, patch.alpha, fit, None)
    assert np.abs(box.frame.check().astype(int) - frame).max() <= 2  # the patch was rounded before: twice that at most


def test_a_share_of_the_way_and_none_of_it(kernels: HostKernels) -> None:
    patch, frame = Patch(smooth(30, 40, 4), np.full((30, 40), 200, np.uint8), 0, 0), smooth(30, 40, 9)
    nothing, half, whole = (fit_of(kernels, Box(kernels, patch, frame), None, strength) for strength in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(nothing, [1, 1, 1, 0, 0, 0], atol=1e-4)
    means = [fit[:3] * patch.pixels.mean((0, 1)) + fit[3:] for fit in (nothing, half, whole)]
    np.testing.assert_allclose(means[1], (means[0] + means[2]) / 2, atol=1e-3)
    np.testing.assert_allclose(half[:3], (1 + whole[:3]) / 2, rtol=1e-5)


# --- bands ---


def laid_in_bands(kernels: HostKernels, box: Box, limit: np.ndarray | None = None, levels: int = 3) -> np.ndarray:
    """The frame, with the patch of ``box`` in so many levels above the first."""
    shapes = [(-(-box.height // 2**k), -(-box.width // 2**k)) for k in range(levels + 1)]
    bands = [Guarded((4 * rows, columns), np.float32, 0) for rows, columns in shapes]
    sums = [Guarded((3 * rows, columns), np.float32, 0) for rows, columns in shapes]
    own, face = (box.patch.pixels, box.patch.alpha, limit), box.shape[4]
    box.run("bands_begin", *box.shape, *own, bands[1].array)
    for k in range(1, levels):
        box.run("bands_halve", face, bands[k].check(), k, bands[k + 1].array)
    for k in range(levels, 0, -1):
        above = (None, None) if k == levels else (bands[k + 1].check(), sums[k + 1].check())
        box.run("bands_sum", face, bands[k].check(), *above, k, sums[k].array)
    box.run("bands_lay", *box.shape, *own, bands[1].check(), sums[1].check())
    return box.frame.check()


def expanded(half: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """By hand: pixel x of the fine one is pixel x / 2 of the half, or the mean of two."""
    for axis in (0, 1):
        at = np.arange(shape[axis])
        last = half.shape[axis] - 1
        half = (np.take(half, at // 2, axis) + np.take(half, np.minimum(at // 2 + at % 2, last), axis)) / 2
    return half


def by_hand(below: np.ndarray, patch: np.ndarray, alpha: np.ndarray, levels: int) -> np.ndarray:
    """Burt and Adelson's: Laplacian pyramids of both, blended level by level and collapsed. OpenCV's pyrDown, in floats."""
    share = (alpha / 255).astype(np.float32)
    both = [np.where(alpha[..., None] > 0, patch, below).astype(np.float32), below.astype(np.float32)]
    gauss = [[picture] for picture in (*both, share)]
    for _ in range(levels):
        for pyramid in gauss:
            pyramid.append(cv2.pyrDown(pyramid[-1]))
    result = None
    for k in range(levels, -1, -1):
        bands = [p[k] if k == levels else p[k] - expanded(p[k + 1], p[k].shape) for p in gauss[:2]]
        mixed = bands[1] + gauss[2][k][..., None] * (bands[0] - bands[1])
        result = mixed if result is None else expanded(result, mixed.shape) + mixed
    assert result is not None
    return np.clip(result, 0, 255)


@settings(max_examples=30, deadline=None)
@given(levels=st.integers(1, 4), limited=st.booleans(), **sizes)
def test_bands_are_burt_and_adelsons(kernels: HostKernels, levels: int, limited: bool, width: int, height: int, seed: int) -> None:
    alpha = cv2.resize(soft_box(60), (width, height), interpolation=cv2.INTER_AREA).reshape(height, width)
    patch = Patch(noise(height, width, seed=seed), alpha, 1, 2)
    box = Box(kernels, patch, smooth(height + 4, width + 3, seed + 3))
    limit = noise(height, width, 1, seed + 1)[..., 0].copy() if limited else None
    wanted = by_hand(box.below.copy(), patch.pixels, alpha if limit is None else np.minimum(alpha, limit), levels)
    laid_in_bands(kernels, box, limit, levels)
    assert np.abs(box.below - wanted).max() <= 1


@settings(max_examples=20, deadline=None)
@given(opacity=st.floats(0, 1), **sizes)
def test_what_is_opaque_everywhere_is_shown_and_what_is_not_is_not(
    kernels: HostKernels, opacity: float, width: int, height: int, seed: int
) -> None:
    """Algebra: with an alpha that is the same everywhere the bands add up to the picture again."""
    frame = noise(height + 2, width + 5, seed=seed)
    for alpha in (0, 255):
        patch = Patch(noise(height, width, seed=seed + 1), np.full((height, width), alpha, np.uint8), 4, 1)
        box, wanted = Box(kernels, patch, frame, opacity), frame.copy()
        host.blend(wanted, patch, opacity)
        assert np.abs(laid_in_bands(kernels, box).astype(int) - wanted).max() <= 1


# --- gradients ---


def cells_of(alpha: np.ndarray, frame: np.ndarray, patch: np.ndarray) -> np.ndarray:
    return np.dstack([frame, patch, alpha]).astype(np.uint8)


def membrane_of(kernels: HostKernels, cells: np.ndarray) -> np.ndarray:
    rows, columns = cells.shape[:2]
    scratch, membrane = Guarded((4 * 4096,), np.float32), Guarded((rows, columns, 3))
    face = records.new_faces(1)
    records.set_box(face, 0, 0, columns, rows, 1)  # of a patch so small that its cells are its pixels
    run(kernels, "seam_poisson", (512, 1, 1), cells, records.words(face), 1.0, scratch.array, membrane.array)
    scratch.check()
    return membrane.check().astype(int) - 128


def poisson_by_hand(cells: np.ndarray) -> np.ndarray:
    """The sparse system solved by SciPy: u inside, the frame outside, gradients mixed by alpha between neighbours."""
    from scipy.sparse import lil_matrix
    from scipy.sparse.linalg import spsolve

    rows, columns = cells.shape[:2]
    step = cells[..., :3].astype(float) - cells[..., 3:6]
    ring = (cells[..., 6] >= 8) & (cells[..., 6] <= 200)
    middle = np.median(step[ring], axis=0)
    step = np.pad(np.clip(step, middle - 24, middle + 24), ((1, 1), (1, 1), (0, 0)), mode="edge")
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
@given(st.integers(1, 48), st.integers(1, 48), st.integers(0, 99))
def test_gradients_are_pasted_as_the_sparse_system_says(kernels: HostKernels, columns: int, rows: int, seed: int) -> None:
    alpha = cv2.resize(soft_box(60), (columns, rows), interpolation=cv2.INTER_AREA).reshape(rows, columns)
    cells = cells_of(alpha, smooth(rows, columns, seed), smooth(rows, columns, seed + 7))
    if not ((alpha >= 8) & (alpha <= 200)).any():
        assert not membrane_of(kernels, cells).any()
        return
    assert np.abs(membrane_of(kernels, cells) - poisson_by_hand(cells)).max() <= 1


@pytest.mark.parametrize("step", [-30, 0, 55])
def test_a_patch_that_differs_by_one_colour_becomes_the_frame(kernels: HostKernels, step: int) -> None:
    """Its gradients are the frame's: whatever alpha is, the step is taken away wholly."""
    frame = smooth(30, 40, 2)
    cells = cells_of(cv2.resize(soft_box(60), (40, 30)), frame, (frame.astype(int) - step).astype(np.uint8))
    np.testing.assert_array_equal(membrane_of(kernels, cells), np.full((30, 40, 3), step))


def test_no_thread_waits_for_another(kernels: HostKernels, backwards_kernels: HostKernels) -> None:
    cells = cells_of(cv2.resize(soft_box(60), (45, 31)), smooth(31, 45, 2), smooth(31, 45, 3))
    np.testing.assert_array_equal(membrane_of(kernels, cells), membrane_of(backwards_kernels, cells))
    patch = Patch(noise(50, 60, seed=2), cv2.resize(soft_box(60), (60, 50)), 3, 3)
    one, other = (laid_in_bands(runner, Box(runner, patch, noise(60, 70))) for runner in (kernels, backwards_kernels))
    np.testing.assert_array_equal(one, other)
    first, second = (fit_of(runner, Box(runner, patch, noise(60, 70)), None, 1.0) for runner in (kernels, backwards_kernels))
    np.testing.assert_array_equal(first, second)


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

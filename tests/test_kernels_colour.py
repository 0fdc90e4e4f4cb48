"""Colours on the device against FFmpeg's scaler, which is told to be exact: every pixel within one level, and nothing beside it.

Without chroma interpolation (POINT) on the way in and with the mean of its pixels (AREA) on the way out, which is what the kernels say
they do; the largest difference seen is 1, where the two round a half differently. swscale's full-range chroma is half a unit lower than
H.273's, which is why it may not be less.
"""

from __future__ import annotations

import av
import numpy as np
import pytest
from av.video.reformatter import ColorRange, Colorspace, Interpolation
from hypothesis import given, settings
from hypothesis import strategies as st

from rt.compose.kernels.host import HostKernels
from tests.kernel_kit import Guarded, noise, run

EXACT = int(Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT | Interpolation.FULL_CHR_H_INP)
MATRICES = {601: Colorspace.ITU601, 709: Colorspace.ITU709}
RANGES = {0: ColorRange.MPEG, 1: ColorRange.JPEG}

standards = pytest.mark.parametrize("standard", [601, 709])
ranges = pytest.mark.parametrize("full", [0, 1])
biplanar = pytest.mark.parametrize("name", ["nv12", "p010"])


def scaled(frame: av.VideoFrame, to: str, standard: int, full_in: int, full_out: int, how: Interpolation) -> av.VideoFrame:
    colours = {"src_colorspace": MATRICES[standard], "dst_colorspace": MATRICES[standard]}
    between = {"src_color_range": RANGES[full_in], "dst_color_range": RANGES[full_out]}
    return frame.reformat(format=to, interpolation=int(how) | EXACT, **colours, **between)


def planes_of(frame: av.VideoFrame, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Luma [H, W] and chroma [H / 2, W] codes of a biplanar frame."""
    dtype = np.uint16 if name == "p010" else np.uint8
    width, height = frame.width, frame.height
    luma, chroma = (np.frombuffer(plane, dtype).reshape(-1, plane.line_size // np.dtype(dtype).itemsize) for plane in frame.planes)
    return luma[:height, :width], chroma[: height // 2, :width]


def as_bytes(codes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(codes).view(np.uint8)


@standards
@ranges
@biplanar
def test_biplanar_to_bgr_and_planes(kernels: HostKernels, name: str, full: int, standard: int) -> None:
    width, height = 70, 38
    picture = av.VideoFrame.from_ndarray(noise(height, width), format="bgr24")
    frame = scaled(picture, "nv12" if name == "nv12" else "p010le", standard, 1, full, Interpolation.AREA)
    wanted = scaled(frame, "bgr24", standard, full, 1, Interpolation.POINT).to_ndarray()
    luma, chroma = (as_bytes(plane) for plane in planes_of(frame, name))
    out, planes = Guarded((height, width, 3), row_guard=3), Guarded((3 * height, width), np.float32, row_guard=2)
    given_planes = (luma, luma.strides[0], chroma, chroma.strides[0], width, height, standard, full)
    run(kernels, f"{name}_to_bgr", (width, height, 1), *given_planes, out.array, out.array.strides[0])
    run(kernels, f"{name}_to_planes", (width, height, 1), *given_planes, planes.array, width + 2)
    # Ten bits are turned to eight at once here; swscale rounds twice.
    assert np.abs(out.check().astype(int) - wanted).max() <= 1
    rgb = planes.check().reshape(3, height, width)
    assert np.abs(np.clip(rgb[::-1].transpose(1, 2, 0) * 255, 0, 255) - wanted).max() <= 1.5, "not rounded, so half a level more"


@standards
@ranges
@biplanar
def test_bgr_and_planes_to_biplanar(kernels: HostKernels, name: str, full: int, standard: int) -> None:
    width, height = 70, 38
    pixels = noise(height, width)
    frame = av.VideoFrame.from_ndarray(pixels, format="bgr24")
    wanted = planes_of(scaled(frame, "nv12" if name == "nv12" else "p010le", standard, 1, full, Interpolation.AREA), name)
    shift, size = (6, 2) if name == "p010" else (0, 1)
    planes = np.ascontiguousarray(pixels[..., ::-1].transpose(2, 0, 1)) / np.float32(255)
    for kind, source, pitch in (("bgr", pixels, 3 * width), ("planes", planes, width)):
        luma, chroma = Guarded((height, width * size), row_guard=4), Guarded((height // 2, width * size), row_guard=4)
        targets = (luma.array, luma.array.strides[0], chroma.array, chroma.array.strides[0])
        run(kernels, f"{kind}_to_{name}", (width // 2, height // 2, 1), source, pitch, width, height, standard, full, *targets)
        for made, reference in zip((luma, chroma), wanted, strict=True):
            codes = as_bytes(made.check()).view(reference.dtype) >> shift
            assert np.abs(codes.astype(int) - (reference >> shift)).max() <= 1


@standards
@ranges
def test_yuy2_both_ways(kernels: HostKernels, full: int, standard: int) -> None:
    width, height = 70, 37
    pixels = noise(height, width)
    frame = scaled(av.VideoFrame.from_ndarray(pixels, format="bgr24"), "yuyv422", standard, 1, full, Interpolation.AREA)
    wanted = np.frombuffer(frame.planes[0], np.uint8).reshape(height, -1)[:, : 2 * width]
    codes = Guarded((height, 2 * width), row_guard=6)
    run(kernels, "bgr_to_yuy2", (width // 2, height, 1), pixels, 3 * width, width, height, standard, full, codes.array, 2 * width + 6)
    assert np.abs(codes.check().astype(int) - wanted).max() <= 1

    planes = np.ascontiguousarray(pixels[..., ::-1].transpose(2, 0, 1)) / np.float32(255)
    from_planes = Guarded((height, 2 * width))
    run(kernels, "planes_to_yuy2", (width // 2, height, 1), planes, width, width, height, standard, full, from_planes.array, 2 * width)
    assert np.abs(from_planes.check().astype(int) - codes.array).max() <= 1

    back = scaled(frame, "bgr24", standard, full, 1, Interpolation.POINT).to_ndarray()
    out, tensor = Guarded((height, width, 3), row_guard=3), Guarded((3 * height, width), np.float32)
    given_codes = (np.ascontiguousarray(wanted), 2 * width, width, height, standard, full)
    run(kernels, "yuy2_to_bgr", (width, height, 1), *given_codes, out.array, out.array.strides[0])
    run(kernels, "yuy2_to_planes", (width, height, 1), *given_codes, tensor.array, width)
    assert np.abs(out.check().astype(int) - back).max() <= 1
    rgb = tensor.check().reshape(3, height, width)
    assert np.abs(np.clip(rgb[::-1].transpose(1, 2, 0) * 255, 0, 255) - back).max() <= 1.5


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 1), st.integers(0, 99))
def test_bytes_to_planes_and_back_is_nothing(kernels: HostKernels, width: int, height: int, rgb: int, seed: int) -> None:
    pixels = noise(height, width, seed=seed)
    planes, out = Guarded((3, height, width), np.float32), Guarded((height, width, 3), row_guard=2)
    run(kernels, "bgr_to_planes", (width, height, 1), pixels, 3 * width, width, height, rgb, planes.array, width)
    run(kernels, "planes_to_bgr", (width, height, 1), planes.array, width, width, height, rgb, out.array, 3 * (width + 2))
    np.testing.assert_array_equal(out.check(), pixels)
    order = pixels if rgb else pixels[..., ::-1]
    np.testing.assert_allclose(planes.check(), order.transpose(2, 0, 1) / np.float32(255), atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([601, 709]), st.integers(0, 1), st.integers(0, 255))
def test_grey_stays_grey_at_every_size(kernels: HostKernels, width: int, height: int, standard: int, full: int, level: int) -> None:
    """Odd sizes too: the last column and row have chroma of their own."""
    pixels = np.full((height, width, 3), level, np.uint8)
    columns, rows = (width + 1) // 2, (height + 1) // 2
    luma, chroma, out = Guarded((height, width)), Guarded((rows, 2 * columns)), Guarded((height, width, 3))
    codes = (luma.array, width, chroma.array, 2 * columns)
    run(kernels, "bgr_to_nv12", (columns, rows, 1), pixels, 3 * width, width, height, standard, full, *codes)
    run(kernels, "nv12_to_bgr", (width, height, 1), *codes, width, height, standard, full, out.array, 3 * width)
    assert (chroma.check() == 128).all()
    luma.check()
    assert np.abs(out.check().astype(int) - level).max() <= (0 if full else 1), "limited range has 220 levels for 256"
    assert np.ptp(out.array) == 0


def test_what_is_no_number_becomes_black(kernels: HostKernels) -> None:
    out = Guarded((2, 2, 3))
    run(kernels, "planes_to_bgr", (2, 2, 1), np.full((3, 2, 2), np.nan, np.float32), 2, 2, 2, 0, out.array, 6)
    assert (out.check() == 0).all()

"""The time code survives what encoders, cameras' noise and scaling do to a picture, and is not seen where there is none."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rt import timecode

values = st.integers(0, (1 << timecode.VALUE_BITS) - 1)
sizes = st.tuples(st.integers(320, 2000), st.integers(180, 1200))


def picture(width: int, height: int, seed: int = 0) -> np.ndarray:
    """uint8 [height, width, 3]: smooth colours, as a photo has them."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


@given(values, sizes)
@settings(deadline=None, max_examples=60)
def test_any_value_in_any_size_comes_back(value: int, size: tuple[int, int]) -> None:
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    timecode.burn(pixels, value)
    assert timecode.read(pixels) == value


@given(values, sizes)
@settings(deadline=None, max_examples=30)
def test_nothing_above_the_strip_is_touched(value: int, size: tuple[int, int]) -> None:
    before = picture(*size)
    after = before.copy()
    timecode.burn(after, value)
    rows = timecode.strip_height(size[1])
    assert np.array_equal(after[:-rows], before[:-rows])


@given(values, sizes, st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_it_survives_noise(value: int, size: tuple[int, int], seed: int) -> None:
    pixels = picture(*size, seed)
    timecode.burn(pixels, value)
    noise = np.random.default_rng(seed).normal(0, 10, pixels.shape)
    assert timecode.read(np.clip(pixels + noise, 0, 255).astype(np.uint8)) == value


@given(values, sizes, st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_it_survives_jpeg_at_quality_40(value: int, size: tuple[int, int], seed: int) -> None:
    pixels = picture(*size, seed)
    timecode.burn(pixels, value)
    _, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 40])
    assert timecode.read(cv2.imdecode(data, cv2.IMREAD_COLOR)) == value


@given(values, st.sampled_from([(640, 360), (854, 480), (1920, 1080), (960, 540)]))
@settings(deadline=None, max_examples=20)
def test_it_survives_scaling(value: int, size: tuple[int, int]) -> None:
    pixels = picture(1280, 720)
    timecode.burn(pixels, value)
    assert timecode.read(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)) == value


def test_it_survives_h264_at_a_low_bitrate() -> None:
    burnt = [123_456_789_012 + 33_333 * k for k in range(20)]
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(30), options={"preset": "ultrafast", "tune": "zerolatency"})
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 1280, 720, "yuv420p", 500_000
        for k, value in enumerate(burnt):
            pixels = np.roll(picture(1280, 720), 8 * k, axis=1)
            timecode.burn(pixels, value)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="bgr24")))
        container.mux(stream.encode(None))
    file.seek(0)
    with av.open(file) as container:
        read = [timecode.read(frame.to_ndarray(format="bgr24")) for frame in container.decode(video=0)]
    assert read == burnt


def test_grey_pictures_are_read_too() -> None:
    pixels = picture(640, 360)
    timecode.burn(pixels, 42)
    assert timecode.read(np.ascontiguousarray(pixels[..., 1])) == 42


@pytest.mark.parametrize("seed", range(20))
def test_a_picture_without_one_has_none(seed: int) -> None:
    assert timecode.read(picture(1280, 720, seed)) is None


@pytest.mark.parametrize("level", [0, 128, 255])
def test_an_even_picture_has_none(level: int) -> None:
    assert timecode.read(np.full((720, 1280, 3), level, np.uint8)) is None


@given(values, st.integers(0, timecode.VALUE_BITS - 1))
@settings(deadline=None, max_examples=40)
def test_one_wrong_cell_is_noticed(value: int, bit: int) -> None:
    pixels = np.zeros((360, 640, 3), np.uint8)
    timecode.burn(pixels, value)
    other = np.zeros_like(pixels)
    timecode.burn(other, value ^ (1 << bit))
    cell = 4 + timecode.VALUE_BITS - 1 - bit
    left, right = -(-cell * 640 // 52), -(-(cell + 1) * 640 // 52)
    pixels[:, left:right] = other[:, left:right]
    assert timecode.read(pixels) is None


def test_too_narrow_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="155"):
        timecode.burn(np.zeros((100, 155, 3), np.uint8), 1)


@given(values, st.integers(0, 10**9))
def test_age_knows_about_the_wrap(value: int, age: int) -> None:
    assert timecode.age_us(value + age, value) == age

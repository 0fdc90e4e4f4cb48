"""Mirrored, turned, cropped: pixels against NumPy, sizes by rules, live on the synthetic camera and a file."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from conftest import HOPPER
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app import build
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, Settings, SourceSettings
from app.studio import Studio, StudioState
from rt.audio import AudioBus
from rt.capture.framing import TURNS, Framing
from rt.clock import MonotonicClock
from rt.errors import OptionError
from rt.frame import Frame
from rt.options import CropFit

shares = st.floats(0, 0.47)
crops = st.tuples(shares, shares, shares, shares)
framings = st.builds(Framing, mirror=st.booleans(), turn=st.sampled_from(TURNS), crop=crops, fit=st.sampled_from(CropFit))
sides = st.integers(40, 130)


def noise(width: int, height: int) -> np.ndarray:
    return np.random.default_rng(width * height).integers(0, 256, (height, width, 3), np.uint8)


def framed(framing: Framing, picture: np.ndarray) -> np.ndarray:
    width, height = framing.size(picture.shape[1], picture.shape[0])
    into = np.full((height, width, 3), 77, np.uint8)
    framing.apply(picture, into)
    return into


def turned(framing: Framing, picture: np.ndarray) -> np.ndarray:
    """NumPy turns against the clock."""
    seen = np.rot90(picture, -framing.turn // 90)
    return seen[:, ::-1] if framing.mirror else seen


@given(mirror=st.booleans(), turn=st.sampled_from(TURNS), width=sides, height=sides)
def test_turned_and_mirrored_are_numpys(mirror: bool, turn: int, width: int, height: int) -> None:
    framing, picture = Framing(mirror, turn), noise(width, height)
    assert np.array_equal(framed(framing, picture), turned(framing, picture))


@given(framing=framings, width=sides, height=sides)
@settings(max_examples=200)
def test_a_part_is_a_slice_and_a_fill_keeps_the_size_and_the_shape(framing: Framing, width: int, height: int) -> None:
    picture = noise(width, height)
    left, top, right, bottom = framing.box(width, height)
    seen, got = turned(framing, picture), framed(framing, picture)
    assert 0 <= left < right <= seen.shape[1]
    assert 0 <= top < bottom <= seen.shape[0]
    if framing.fit is CropFit.PART:
        assert np.array_equal(got, seen[top:bottom, left:right])
        if any(framing.crop):
            assert got.shape[0] % 2 == 0
            assert got.shape[1] % 2 == 0
    else:
        assert got.shape == seen.shape
        assert abs((right - left) - seen.shape[1] * (bottom - top) / seen.shape[0]) <= 1.5 * max(1, seen.shape[1] / seen.shape[0])


@given(before=framings, after=framings, width=sides, height=sides)
def test_what_is_said_to_keep_the_size_keeps_it(before: Framing, after: Framing, width: int, height: int) -> None:
    if before.keeps_size(after):
        assert before.size(width, height) == after.size(width, height)


def test_most_changes_keep_the_size() -> None:
    """…so that nothing is started anew for them."""
    assert Framing().keeps_size(Framing(mirror=True, turn=180, crop=(0.2, 0, 0.3, 0)))
    assert not Framing().keeps_size(Framing(turn=90))
    assert not Framing().keeps_size(Framing(crop=(0.2, 0, 0, 0), fit=CropFit.PART))


def test_a_fill_shows_what_the_box_holds() -> None:
    """A ramp stays a ramp, from the box's one side to its other."""
    ramp = np.repeat(np.linspace(0, 250, 251, dtype=np.uint8)[None, :, None], 141, 0).repeat(3, 2)
    framing = Framing(crop=(0.5, 0, 0, 0))
    left, _, right, _ = framing.box(251, 141)
    row = framed(framing, ramp)[70, :, 0].astype(int)
    assert (left, right) == (126, 251)
    assert abs(row[0] - left) <= 1
    assert abs(row[-1] - (right - 1)) <= 1
    assert (np.diff(row) >= 0).all()


@pytest.mark.parametrize("wrong", [{"turn": 45}, {"crop": (0.5, 0, 0.5, 0)}, {"crop": (-0.1, 0, 0, 0)}])
def test_what_cannot_be_is_told(wrong: dict) -> None:
    with pytest.raises(OptionError, match="was given"):
        Framing(**wrong)


def test_settings_refuse_the_same() -> None:
    for wrong in ({"rotate": 45}, {"crop": (0.6, 0, 0.6, 0)}, {"crop": (0, -1, 0, 0)}, {"exposure_ms": -1}):
        with pytest.raises(ValidationError):
            InputSettings(**wrong)


def test_a_crop_that_leaves_too_little_is_told() -> None:
    spec = "synthetic:size=160x90"
    source = build.source(Settings(input=InputSettings(spec=spec, crop=(0.9, 0, 0, 0), crop_fit=CropFit.PART)), MonotonicClock())
    source.open(threading.Event(), AudioBus())  # sixteen columns are left
    source.close()
    source = build.source(Settings(input=InputSettings(spec=spec, crop=(0, 0.9, 0, 0), crop_fit=CropFit.PART)), MonotonicClock())
    with pytest.raises(OptionError, match="the crop leaves 160x"):
        source.open(threading.Event(), AudioBus())
    source.close()


# --- the line ---


class Seen:
    """The newest picture, and when each size was seen."""

    def __init__(self) -> None:
        self.picture = np.empty(0, np.uint8)
        self.count = 0

    def before(self, frame: Frame) -> None:
        self.picture = frame.pixels.copy()
        self.count += 1

    def after(self, frame: Frame) -> None:
        pass


def halves(path: Path) -> Path:
    """A clip: red on the left, blue on the right, its upper fifth green."""
    picture = np.zeros((96, 160, 3), np.uint8)
    picture[:, :80, 2] = picture[:, 80:, 0] = 200
    picture[:19] = (0, 200, 0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 160, 96, "yuv420p", 4_000_000
        for k in range(30):
            frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
            frame.pts, frame.time_base = k, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def colour_at(picture: np.ndarray, x: float, y: float) -> str:
    pixel = picture[int(y * picture.shape[0]), int(x * picture.shape[1])].astype(int)
    return "bgr"[int(pixel.argmax())] if pixel.max() > 120 else "?"


@pytest.mark.parametrize(
    ("wanted", "size", "corners"),
    [
        ({}, (160, 96), "gg rb"),
        ({"mirror": True}, (160, 96), "gg br"),
        ({"rotate": 180}, (160, 96), "br gg"),
        ({"rotate": 90}, (96, 160), "rg bg"),
        ({"rotate": 90, "mirror": True}, (96, 160), "gr gb"),
        ({"crop": (0, 0.25, 0, 0)}, (160, 96), "rb rb"),
        ({"crop": (0.5, 0.25, 0, 0), "crop_fit": "part"}, (80, 72), "bb bb"),
    ],
)
def test_a_file_is_framed(tmp_path: Path, wanted: dict, size: tuple[int, int], corners: str) -> None:
    seen = Seen()
    clip = InputSettings(spec=str(halves(tmp_path / "halves.mp4")), loop=True, **wanted)
    session = LiveSession(Settings(input=clip, output=OutputSettings(null=True)), witness=seen)
    session.start()
    try:
        while seen.count < 3:
            assert not session.wait(0.01), session.line.error
    finally:
        session.close()
    assert seen.picture.shape[1::-1] == size
    found = "".join(colour_at(seen.picture, x, y) for y in (0.08, 0.9) for x in (0.1, 0.9))
    assert found == corners.replace(" ", "")
    assert (session.report()["input"].get("framing") is not None) == bool(wanted)


def synthetic(**wanted: object) -> Settings:
    return Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=320x180,fps=30,motion=0", **wanted),  # type: ignore[arg-type]
        output=OutputSettings(null=True),
    )


def test_a_camera_is_mirrored_and_cropped_while_live() -> None:
    """…on the same line, within two frames, and a turn to the side by a new one."""
    seen = Seen()
    studio = Studio(synthetic(), witness=seen)
    studio.start()
    try:
        session, plain = studio.session, studio_picture(studio, seen, 3)
        for wanted, expected in (
            ({"mirror": True}, plain[:, ::-1]),
            ({"rotate": 180}, plain[::-1, ::-1]),
            ({"mirror": True, "rotate": 180}, plain[::-1]),
            ({}, plain),
        ):
            studio.change(synthetic(**wanted))
            assert np.array_equal(studio_picture(studio, seen, 3), expected), wanted
        studio.change(synthetic(crop=(0.25, 0.25, 0.25, 0.25)))
        zoomed = studio_picture(studio, seen, 3)
        assert zoomed.shape == plain.shape
        assert np.abs(zoomed[::2, ::2].astype(int) - plain[45:135, 80:240]).mean() < 6
        assert studio.session is session
        studio.change(synthetic(rotate=90))
        assert np.array_equal(studio_picture(studio, seen, 3), np.rot90(plain, -1))
        assert studio.session is not session
        assert studio.state is StudioState.LIVE
    finally:
        studio.stop()


def studio_picture(studio: Studio, seen: Seen, frames: int) -> np.ndarray:
    """After so many further frames: two may have been under way."""
    target = seen.count + frames
    while seen.count < target:
        assert not studio.wait(0.01), studio.error
    return seen.picture

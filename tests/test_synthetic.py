"""The synthetic camera: paced like a camera, the same picture for the same instant, and a face that a detector finds."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.detect import detectors
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from rt import timecode
from rt.audio import AudioBus
from rt.capture import open_spec
from rt.capture.request import CaptureRequest
from rt.capture.synthetic import AnimatedPortrait, Parameters
from rt.clock import ManualClock
from rt.errors import OptionError, SourceError

MS = 1_000_000


class JumpingClock(ManualClock):
    """Waiting takes no time: the clock jumps to the deadline."""

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        self.advance(max(0, deadline_ns - self.now_ns()))
        return not stop.is_set()


@pytest.fixture(scope="module")
def portrait() -> AnimatedPortrait:
    return AnimatedPortrait(Parameters().portrait, 1280, 720)


def picture(portrait: AnimatedPortrait, seconds: float) -> np.ndarray:
    into = np.empty((720, 1280, 3), np.uint8)
    portrait.draw(seconds, into)
    return into


def landmarks(portrait: AnimatedPortrait, seconds: float) -> np.ndarray:
    """float32 [468, 2] of the one face that is found."""
    faces = find_faces(picture(portrait, seconds), detectors["blazeface-full"](), FaceMesh())
    assert len(faces) == 1
    return faces[0].points[:, :2]


# --- pace ---


def opened(spec: str) -> tuple[JumpingClock, object]:
    clock = JumpingClock(7 * MS)
    source = open_spec(spec, CaptureRequest(), clock)
    source.open(threading.Event(), AudioBus())
    return clock, source


def test_pictures_come_at_the_rate_asked_for() -> None:
    clock, source = opened("synthetic:size=320x180,fps=50,frames=5")
    grabs = []
    while (grab := source.grab()) is not None:
        assert clock.now_ns() == grab.captured_ns
        grabs.append(grab)
    assert [grab.media_ns for grab in grabs] == [k * 20 * MS for k in range(5)]
    assert [grab.captured_ns - 7 * MS for grab in grabs] == [k * 20 * MS for k in range(5)]


def test_what_nobody_fetched_in_time_is_gone() -> None:
    clock, source = opened("synthetic:size=320x180,fps=50")
    source.grab()
    clock.advance(110 * MS)
    grab = source.grab()
    assert grab is not None
    assert grab.media_ns == 100 * MS
    assert source.describe()["missed"] == 4


def test_it_stalls_when_told_to() -> None:
    _, source = opened("synthetic:size=320x180,fps=10,stall=0.3:1,frames=16")
    times = []
    while (grab := source.grab()) is not None:
        times.append(grab.media_ns // MS)
    assert times == [0, 100, 200, 1300, 1400, 1500]


def test_stop_ends_the_wait() -> None:
    stop = threading.Event()
    source = open_spec("synthetic:size=320x180,fps=1", CaptureRequest(), ManualClock())
    source.open(stop, AudioBus())
    assert source.grab() is not None
    stop.set()
    assert source.grab() is None


def test_the_time_code_is_the_capture_time() -> None:
    _, source = opened("synthetic:size=640x360,fps=30,timecode=on")
    into = np.empty((360, 640, 3), np.uint8)
    for _ in range(5):
        grab = source.grab()
        source.retrieve(into)
        assert timecode.read(into) == grab.captured_ns // 1000


# --- picture ---


@given(st.floats(0, 3600))
@settings(deadline=None, max_examples=15)
def test_an_instant_can_be_drawn_again(seconds: float) -> None:
    portrait = AnimatedPortrait(Parameters().portrait, 320, 180)
    first, second = np.empty((180, 320, 3), np.uint8), np.zeros((180, 320, 3), np.uint8)
    portrait.draw(seconds, first)
    portrait.draw(seconds, second)
    assert np.array_equal(first, second)


def test_the_face_has_the_height_promised(portrait: AnimatedPortrait) -> None:
    points = landmarks(portrait, 0.5)
    assert 260 < np.ptp(points[:, 1]) < 340


def test_the_head_moves(portrait: AnimatedPortrait) -> None:
    noses = np.array([landmarks(portrait, seconds)[1] for seconds in np.arange(0, 6, 0.75)])
    assert np.ptp(noses[:, 0]) > 15
    assert np.ptp(noses[:, 1]) > 8


def test_motion_is_smooth(portrait: AnimatedPortrait) -> None:
    """From one picture to the next at 30 a second the nose goes no further than a moving head's does: 4 % of its height."""
    noses = np.array([landmarks(portrait, 2 + k / 30)[1] for k in range(20)])
    assert np.linalg.norm(np.diff(noses, axis=0), axis=1).max() < 12


def test_the_mouth_opens_and_the_lids_close(portrait: AnimatedPortrait) -> None:
    """Lips 13 and 14, lids 159 and 145, of the FaceMesh topology. At 2.4 s and a hundred milliseconds later a blink is at its height."""
    gaps = np.array([np.linalg.norm(np.subtract(*landmarks(portrait, s)[[13, 14]])) for s in np.arange(0.5, 1.2, 0.08)])
    assert np.ptp(gaps) > 3
    wide, shut = (np.linalg.norm(np.subtract(*landmarks(portrait, s)[[159, 145]])) for s in (2.2, 2.5))
    assert shut < 0.85 * wide


def test_no_motion_is_a_still_picture() -> None:
    still = AnimatedPortrait(Parameters().portrait, 320, 180, motion=0)
    first, later = np.empty((180, 320, 3), np.uint8), np.empty((180, 320, 3), np.uint8)
    still.draw(0, first)
    still.draw(2.5, later)
    assert np.array_equal(first, later)


# --- SPEC ---


def test_every_option_is_understood() -> None:
    spec = "synthetic:size=640x360,fps=25,timecode=on,stall=2:0.5,frames=9,face=120,motion=0.5"
    parameters = Parameters.parse(spec, CaptureRequest())
    assert (parameters.video.width, parameters.video.height, parameters.video.fps) == (640, 360, 25)
    assert (parameters.timecode, parameters.stall_s, parameters.frames) == (True, (2, 0.5), 9)
    assert (parameters.face_px, parameters.motion) == (120, 0.5)


def test_what_was_asked_beside_the_spec_counts_where_the_spec_is_silent() -> None:
    parameters = Parameters.parse("synthetic:fps=25", CaptureRequest(width=640, height=360, fps=60))
    assert (parameters.video.width, parameters.video.height, parameters.video.fps) == (640, 360, 25)


@pytest.mark.parametrize(
    "spec",
    [
        "synthetic:speed=2",
        "synthetic:size=big",
        "synthetic:fps=0",
        "synthetic:timecode=maybe",
        "synthetic:stall=3",
        "synthetic:x",
    ],
)
def test_what_is_accepted_is_said(spec: str) -> None:
    with pytest.raises(OptionError, match=r"size=WIDTHxHEIGHT.*stall=AT_S:LENGTH_S"):
        open_spec(spec, CaptureRequest(), ManualClock())


def test_a_portrait_that_is_missing_says_so() -> None:
    source = open_spec("synthetic:portrait=nobody.png", CaptureRequest(), ManualClock())
    with pytest.raises(SourceError, match=r"nobody\.png"):
        source.open(threading.Event(), AudioBus())


def test_it_fails_once_it_is_unplugged() -> None:
    _, source = opened("synthetic:size=320x180,fps=10,unplug=0.3")
    numbers = [grab.media_ns // 10**8 for grab in (source.grab() for _ in range(3)) if grab is not None]
    assert numbers == [0, 1, 2]
    with pytest.raises(SourceError, match="unplugged"):
        source.grab()

"""A camera that was unplugged is waited for, found again and shown again; nobody stands still in the picture meanwhile."""

from __future__ import annotations

import logging
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from conftest import HOPPER
from hypothesis import given, settings
from hypothesis import strategies as st
from test_capture_media import numbered, write_clip

from app import build
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, RunSettings, Settings, SourceSettings
from engines.detect import detectors
from rt.audio import AudioBus
from rt.capture import open_spec
from rt.capture.contract import Grab, Source
from rt.capture.reconnect import WAITS_S, ReconnectingSource, fill
from rt.capture.request import CaptureRequest
from rt.clock import ManualClock, MonotonicClock
from rt.errors import OptionError, SourceError, SourceLostError
from rt.frame import Frame, VideoFormat
from rt.options import OnLost

SECOND_NS = 1_000_000_000


class JumpingClock(ManualClock):
    """Waiting takes no time: the clock jumps to the deadline."""

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        self.advance(max(0, deadline_ns - self.now_ns()))
        return not stop.is_set()


@dataclass
class Seen:
    """What came of a source that was asked for pictures until it ended."""

    grabs: list[Grab] = field(default_factory=list)
    pictures: list[np.ndarray] = field(default_factory=list)
    error: SourceError | None = None

    @property
    def standing_in(self) -> list[np.ndarray]:
        return [picture for grab, picture in zip(self.grabs, self.pictures, strict=True) if grab.stands_in]


def watched(source: Source, count: int = 100_000) -> Seen:
    seen = Seen()
    try:
        video = source.open(threading.Event(), AudioBus())
        while len(seen.grabs) < count and (grab := source.grab()) is not None:
            seen.grabs.append(grab)
            seen.pictures.append(np.empty((video.height, video.width, 3), np.uint8))
            source.retrieve(seen.pictures[-1])
    except SourceError as error:
        seen.error = error
    finally:
        source.close()
    return seen


def synthetic(options: str, patience_s: float | None = None) -> ReconnectingSource:
    clock = JumpingClock(5 * SECOND_NS)
    return ReconnectingSource(open_spec(f"synthetic:size=320x180,fps=10,{options}", CaptureRequest(), clock), clock, patience_s)


# --- the camera comes back by itself ---


def test_a_camera_that_was_plugged_in_again_goes_on() -> None:
    source = synthetic("frames=80,unplug=2,replug=5")
    seen = watched(source)
    assert seen.error is None
    at_s = [(grab.captured_ns - 5 * SECOND_NS) / 1e9 for grab in seen.grabs]
    away = [at for at, grab in zip(at_s, seen.grabs, strict=True) if grab.stands_in]
    assert min(away) == pytest.approx(2.0, abs=0.11)
    assert 5.0 <= max(away) + 0.1 <= 5.0 + WAITS_S[3]  # it is found at the try after it is there
    assert at_s[-1] == pytest.approx(7.9)
    (outage,) = source.describe()["outages"]
    assert outage["at_s"] == pytest.approx(2.0, abs=0.11)
    assert outage["back_s"] == pytest.approx(max(away) + 0.1, abs=0.11)
    assert "unplugged" in outage["why"]
    assert "lost" not in source.describe()


@settings(max_examples=25, deadline=None)
@given(out=st.integers(0, 40), away=st.integers(1, 150), fps=st.sampled_from([7, 10, 30]))
def test_time_only_rises_and_no_gap_is_longer_than_two_pictures(out: int, away: int, fps: int) -> None:
    clock = JumpingClock(5 * SECOND_NS)
    spec = f"synthetic:size=32x18,fps={fps},motion=0,frames={fps * 25},unplug={out / 10},replug={(out + away) / 10}"
    source = ReconnectingSource(open_spec(spec, CaptureRequest(), clock), clock)
    seen = watched(source)
    captured, media = (np.array([getattr(grab, name) for grab in seen.grabs]) for name in ("captured_ns", "media_ns"))
    for times in (captured, media):
        assert (np.diff(times) > 0).all()
        assert np.diff(times).max() <= 2.01e9 / fps
    assert np.abs(np.diff(captured) - np.diff(media)).max() <= 1e9 / fps


def test_waits_grow(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        watched(synthetic("unplug=1"), count=400)
    waits = [record.facts["retry_in_s"] for record in caplog.records if hasattr(record, "facts")]
    assert waits == [*WAITS_S, *[WAITS_S[-1]] * (len(waits) - len(WAITS_S))]
    assert [record.levelno for record in caplog.records if hasattr(record, "facts")][:2] == [logging.WARNING, logging.INFO]


def test_while_it_is_away_that_is_told() -> None:
    source = synthetic("unplug=1")
    watched(source, count=17)  # 0.7 s after the cable was pulled out: the second try is due a second after the first
    lost = source.describe()["lost"]
    assert lost["tries"] == 1
    assert 0 < lost["retry_in_s"] <= 1
    assert "unplugged" in lost["why"]


def test_patience_ends_the_line_with_what_happened() -> None:
    seen = watched(synthetic("unplug=1", patience_s=2.5))
    assert str(seen.error).endswith("leave unplug out; it did not come back within 2.5 s")
    assert seen.grabs[-1].captured_ns - 5 * SECOND_NS == pytest.approx(3.5e9, abs=2e8)


def test_without_patience_it_ends_at_once() -> None:
    source = build.source(Settings(input=InputSettings(spec="synthetic:size=320x180,fps=10,unplug=0.5", reconnect_s=0)), JumpingClock())
    seen = watched(source)
    assert isinstance(seen.error, SourceLostError)
    assert len(seen.grabs) == 5


def test_a_camera_that_is_not_there_at_the_start_is_not_waited_for() -> None:
    clock = JumpingClock()
    source = ReconnectingSource(open_spec("synthetic:portrait=nobody.png", CaptureRequest(), clock), clock)
    with pytest.raises(SourceError, match=r"nobody\.png"):
        source.open(threading.Event(), AudioBus())


def test_a_stop_ends_the_waiting() -> None:
    clock, stop = MonotonicClock(), threading.Event()
    source = ReconnectingSource(open_spec("synthetic:size=320x180,fps=10,unplug=0", CaptureRequest(), clock), clock)
    source.open(stop, AudioBus())
    assert source.grab() is not None
    threading.Timer(0.3, stop.set).start()
    while source.grab() is not None:
        pass
    source.close()


# --- what stands in shows nobody ---


def test_nobody_is_known_in_what_stands_in() -> None:
    clock = JumpingClock()
    spec = "synthetic:size=640x360,fps=10,frames=20,face=330,motion=0,unplug=1,replug=1.4"  # a face that nearly fills the picture
    seen = watched(ReconnectingSource(open_spec(spec, CaptureRequest(), clock), clock))
    stand_in, filmed = seen.standing_in[0], seen.pictures[0]
    finds = detectors["blazeface-full"]()
    assert finds.detect(filmed)
    assert not finds.detect(stand_in)
    brightened = np.clip(stand_in.astype(np.int16) * 2, 0, 255).astype(np.uint8)
    gradients = [np.abs(np.diff(picture.astype(int), axis=1)).max() for picture in (brightened, filmed)]
    assert gradients[0] < 12 < gradients[1]  # no edge is left
    assert all(np.array_equal(stand_in, other) for other in seen.standing_in)


@dataclass
class Kept:
    """A sink that keeps what it gets."""

    name: str = "kept"
    lossless: bool = True
    frames: list[tuple[bool, bool, np.ndarray]] = field(default_factory=list)
    """Stands in, was shown before, picture."""

    def open(self, video: VideoFormat) -> None:
        pass

    def write(self, frame: Frame) -> None:
        self.frames.append((frame.stands_in, frame.repeated, frame.pixels[::4, ::4].copy()))

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        pass

    def close(self) -> None:
        pass

    def statistics(self) -> dict[str, object]:
        return {}


def run_through_an_outage(policy: OnLost) -> tuple[Kept, dict[str, object]]:
    sink = Kept()
    wanted = Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=640x360,fps=20,motion=0,frames=80,unplug=1,replug=2"),
        look=LookSettings(on_lost=policy),
        output=OutputSettings(null=True),
        run=RunSettings(budget_ms=0),
    )
    session = LiveSession(wanted, further_sinks=(sink,))
    session.start()
    try:
        assert session.wait(60)
    finally:
        session.close()
    return sink, session.report()


@pytest.mark.parametrize("policy", [OnLost.HOLD, OnLost.BLUR, OnLost.SHOW])
def test_the_line_goes_on_and_the_face_does_not_stand_still(policy: OnLost) -> None:
    sink, report = run_through_an_outage(policy)
    away = [picture for stands_in, _, picture in sink.frames if stands_in]
    assert len(away) >= 10
    assert report["error"] is None
    worn = next(picture for stands_in, _, picture in reversed(sink.frames) if not stands_in)
    assert all(np.abs(picture.astype(int) - worn).mean() > 20 for picture in away)
    assert not sink.frames[-1][0]  # and the line has gone on with the camera
    assert report["lost_frames"] == 0
    assert report["faces"] == 1  # the same face as before
    assert len(report["input"]["outages"]) == 1  # type: ignore[index]
    assert report["stood_in"] == len(away)
    assert report["frames_in"] < report["frames_out"]  # type: ignore[operator]


def test_who_chose_to_freeze_sees_the_last_good_picture() -> None:
    sink, report = run_through_an_outage(OnLost.FREEZE)
    before = [picture for stands_in, _, picture in sink.frames if not stands_in]
    away = [(repeated, picture) for stands_in, repeated, picture in sink.frames if stands_in or repeated]
    assert len(away) >= 10
    assert all(repeated for repeated, _ in away)
    assert min(np.abs(away[-1][1].astype(int) - picture).mean() for picture in before) == 0
    assert report["error"] is None


# --- another mode, an address ---


class Shrinking:
    """A camera that grants less after it was plugged in again, and another level of grey."""

    live = True

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self.opened, self._left = clock, 0, 0

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self.opened += 1
        self._left = 3
        return VideoFormat(64, 36, 10) if self.opened == 1 else VideoFormat(32, 24, 10)

    def grab(self) -> Grab | None:
        self._clock.advance(100_000_000)
        self._left -= 1
        if self._left < 0:
            if self.opened > 1:
                return None
            raise SourceLostError("gone")
        return Grab(self._clock.now_ns(), (3 - self._left) * 100_000_000)

    def retrieve(self, into: np.ndarray) -> None:
        assert into.shape == ((36, 64, 3) if self.opened == 1 else (24, 32, 3))
        into[:] = 50 * self.opened

    def close(self) -> None:
        pass

    def describe(self) -> dict[str, object]:
        return {"granted": str(self.opened)}


def test_a_camera_that_comes_back_smaller_fills_the_picture() -> None:
    clock = JumpingClock()
    seen = watched(ReconnectingSource(Shrinking(clock), clock))
    assert {picture.shape for picture in seen.pictures} == {(36, 64, 3)}
    filmed = [int(picture.mean()) for grab, picture in zip(seen.grabs, seen.pictures, strict=True) if not grab.stands_in]
    assert filmed == [50] * 3 + [100] * 3


def test_what_fills_is_the_middle() -> None:
    picture = np.zeros((24, 32, 3), np.uint8)
    picture[3:21] = 200  # 32 by 18, the shape of what is to be filled
    into = np.empty((36, 64, 3), np.uint8)
    fill(picture, into)
    assert (into == 200).all()


def serve_twice(clip: Path, listener: socket.socket) -> threading.Thread:
    """Sends ``clip`` to the first who asks and to the second, as a server that was started again."""

    def serve() -> None:
        for _ in range(2):
            with listener.accept()[0] as connection:
                connection.sendall(clip.read_bytes())

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_an_address_that_went_off_the_air_is_opened_again(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "c.ts", numbered(30), [40 * k for k in range(30)], codec="libx264")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = serve_twice(clip, listener)
        clock = MonotonicClock()
        spec = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        source = ReconnectingSource(open_spec(spec, CaptureRequest(reconnect=True), clock), clock)
        stop = threading.Event()
        video = source.open(stop, AudioBus())
        into = np.empty((video.height, video.width, 3), np.uint8)
        kinds: list[bool] = []
        while len(outages := source.describe().get("outages", [])) < 2:
            grab = source.grab()
            assert grab is not None
            source.retrieve(into)
            kinds.append(grab.stands_in)
        source.close()
        thread.join()
    assert "went off the air" in outages[0]["why"]
    assert outages[0]["back_s"] is not None
    turns = [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before]
    assert turns[:3] == [False, True, False]


def test_a_web_camera_that_breaks_off_in_the_middle_is_opened_again(tmp_path: Path) -> None:
    """By HTTP an end is an end; less than was promised is none."""
    clip = write_clip(tmp_path / "c.ts", numbered(20), [40 * k for k in range(20)], codec="libx264")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nContent-Length: 9999999\r\n\r\n"
    (tmp_path / "answer").write_bytes(head + clip.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = serve_twice(tmp_path / "answer", listener)
        clock = MonotonicClock()
        spec = f"http://127.0.0.1:{listener.getsockname()[1]}/camera.ts"
        source = ReconnectingSource(open_spec(spec, CaptureRequest(reconnect=True), clock), clock)
        source.open(threading.Event(), AudioBus())
        while len(source.describe().get("outages", [])) < 2:
            assert source.grab() is not None
        source.close()
        thread.join()


def test_an_address_ends_at_its_end_where_nobody_waits(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "c.ts", numbered(30), [40 * k for k in range(30)], codec="libx264")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = serve_twice(clip, listener)
        spec = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        for _ in range(2):
            wanted = InputSettings(spec=spec, reconnect_s=0)
            assert watched(build.source(Settings(input=wanted), MonotonicClock())).error is None
        thread.join()


def test_replug_is_told_among_what_is_accepted() -> None:
    with pytest.raises(OptionError, match="replug=AT_S"):
        open_spec("synthetic:plug=1", CaptureRequest(), ManualClock())

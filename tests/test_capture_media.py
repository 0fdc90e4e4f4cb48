"""Files play with their own time stamps, turned, coloured and paced as they say themselves."""

from __future__ import annotations

import logging
import shutil
import socket
import struct
import subprocess
import threading
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest
from av.video.reformatter import ColorRange, Colorspace

from rt.audio import AudioBus, AudioChunk
from rt.capture import open_spec
from rt.capture.contract import Grab, Source
from rt.capture.media import MediaSource
from rt.capture.opening import Opening
from rt.capture.request import CaptureRequest
from rt.clock import ManualClock, MonotonicClock
from rt.errors import NoVideoError, SourceError

START_NS = 5_000_000_000


class JumpingClock(ManualClock):
    """Waiting takes no time: the clock jumps to the deadline, so what is due when is seen exactly."""

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        self.advance(max(0, deadline_ns - self.now_ns()))
        return not stop.is_set()


class Played:
    """A source opened and played for ``count`` pictures at most."""

    def __init__(self, spec: str | Path, count: int = 10_000, **request: bool) -> None:
        clock, bus = JumpingClock(START_NS), AudioBus()
        queue = bus.subscribe(100_000)
        source: Source = open_spec(str(spec), CaptureRequest(**request), clock)
        self.grabs: list[Grab] = []
        self.now_ns: list[int] = []
        self.pictures: list[np.ndarray] = []
        try:
            self.video = source.open(threading.Event(), bus)
            while len(self.grabs) < count and (grab := source.grab()) is not None:
                self.grabs.append(grab)
                self.now_ns.append(clock.now_ns())
                self.pictures.append(np.empty((self.video.height, self.video.width, 3), np.uint8))
                source.retrieve(self.pictures[-1])
        finally:
            source.close()
        self.said = source.describe()
        self.sound: list[AudioChunk] = queue.take_all()

    @property
    def media_ms(self) -> list[int]:
        return [round(grab.media_ns / 1e6) for grab in self.grabs]


def write_clip(
    path: Path,
    pictures: list[av.VideoFrame],
    pts_ms: list[int],
    codec: str = "ffv1",
    sound_s: float = 0.0,
    **of_stream: int,
) -> Path:
    """A clip whose pictures have exactly these time stamps; a 440 Hz tone beside them where ``sound_s`` says so."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = pictures[0].width, pictures[0].height, pictures[0].format.name
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for name, value in of_stream.items():
            setattr(stream.codec_context, name, value)
        tone = container.add_stream("pcm_s16le", rate=44_100, layout="mono") if sound_s else None
        if tone is not None:
            wave = np.sin(2 * np.pi * 440 * np.arange(round(sound_s * 44_100)) / 44_100)
            for start in range(0, len(wave), 1024):
                part = (wave[None, start : start + 1024] * 16_000).astype(np.int16)
                samples = av.AudioFrame.from_ndarray(part, format="s16", layout="mono")
                samples.sample_rate, samples.pts, samples.time_base = 44_100, start, Fraction(1, 44_100)
                container.mux(tone.encode(samples))
            container.mux(tone.encode(None))
        for frame, at_ms in zip(pictures, pts_ms, strict=True):
            frame.pts, frame.time_base = at_ms, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def yuv(y: int, u: int, v: int, width: int = 64, height: int = 48, format: str = "yuv420p") -> av.VideoFrame:
    """A picture of one colour, by its stored numbers."""
    frame = av.VideoFrame(width, height, format)
    for plane, level in zip(frame.planes, (y, u, v), strict=True):
        wide = plane.line_size * plane.height
        plane.update(np.full(wide // 2, level, "<u2").tobytes() if "10le" in format else bytes([level]) * wide)
    return frame


def numbered(count: int, width: int = 64, height: int = 48) -> list[av.VideoFrame]:
    return [yuv(20 + 4 * k, 128, 128, width, height) for k in range(count)]


@pytest.fixture
def ffmpeg() -> str:
    """The ffmpeg command, as a second opinion."""
    return shutil.which("ffmpeg") or pytest.skip("the ffmpeg command is not installed")


def run_ffmpeg(ffmpeg: str, *arguments: str) -> bytes:
    return subprocess.run([ffmpeg, "-v", "error", "-nostdin", *arguments], check=True, capture_output=True).stdout


def ffmpeg_bgr(ffmpeg: str, path: Path, width: int, height: int) -> np.ndarray:
    """int [height, width, 3]: the first picture of ``path``."""
    raw = run_ffmpeg(ffmpeg, "-i", str(path), "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "bgr24", "-")
    return np.frombuffer(raw, np.uint8).reshape(height, width, 3).astype(int)


# --- time ---


def test_variable_frame_rate_keeps_its_time_stamps(tmp_path: Path) -> None:
    pts = [0, 40, 47, 180, 200, 1000, 1001, 1500]
    played = Played(write_clip(tmp_path / "vfr.mkv", numbered(len(pts)), pts))
    assert played.media_ms == pts


def test_each_picture_is_handed_over_when_it_is_due(tmp_path: Path) -> None:
    pts = [0, 40, 250, 260]
    played = Played(write_clip(tmp_path / "clip.mkv", numbered(4), pts))
    assert [round((now - START_NS) / 1e6) for now in played.now_ns] == pts
    assert [grab.captured_ns for grab in played.grabs] == played.now_ns


def test_no_picture_is_lost_that_the_decoder_holds_back(tmp_path: Path) -> None:
    """B-frames: the decoder gives out its last pictures only when it is told that nothing follows."""
    path = write_clip(tmp_path / "b.mp4", numbered(40), [40 * k for k in range(40)], codec="libx264", max_b_frames=3)
    assert Played(path).media_ms == [40 * k for k in range(40)]


def test_a_loop_goes_on_in_time(tmp_path: Path) -> None:
    played = Played(write_clip(tmp_path / "loop.mkv", numbered(4), [0, 40, 80, 120]), count=11, loop=True)
    assert played.media_ms == [40 * k for k in range(11)]
    assert np.array_equal(played.pictures[1], played.pictures[5])
    assert not np.array_equal(played.pictures[1], played.pictures[2])


def test_offline_waits_for_nothing(tmp_path: Path) -> None:
    played = Played(write_clip(tmp_path / "clip.mkv", numbered(3), [0, 40, 900]), realtime=False)
    assert played.media_ms == [0, 40, 900]
    assert [grab.captured_ns - START_NS for grab in played.grabs] == [0, 40_000_000, 900_000_000]
    assert set(played.now_ns) == {START_NS}


def test_stop_ends_the_wait_for_the_next_picture(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "slow.mkv", numbered(2), [0, 3_600_000])
    stop = threading.Event()
    source = open_spec(str(path), CaptureRequest(), ManualClock(START_NS))
    source.open(stop, AudioBus())
    assert source.grab() is not None
    threading.Timer(0.05, stop.set).start()
    assert source.grab() is None
    source.close()


# --- shape ---


@pytest.mark.parametrize(("matrix", "quarter_turns"), [((0, 1, -1, 0), 3), ((-1, 0, 0, -1), 2), ((0, -1, 1, 0), 1), ((1, 0, 0, 1), 0)])
def test_the_display_matrix_is_obeyed(tmp_path: Path, matrix: tuple[int, int, int, int], quarter_turns: int) -> None:
    """``matrix``: a, b, c, d of ISO/IEC 14496-12, 8.3.2.3: x' = ax + cy, y' = bx + dy, y downwards."""
    stored = yuv(40, 128, 128)
    luma = np.full((48, stored.planes[0].line_size), 40, np.uint8)
    luma[:24, :32] = 235
    stored.planes[0].update(luma.tobytes())
    path = write_clip(tmp_path / "turned.mp4", [stored, stored], [0, 40], codec="mpeg4")
    unturned = Played(path).pictures[0]
    set_display_matrix(path, *matrix)
    assert np.array_equal(Played(path).pictures[0], np.rot90(unturned, quarter_turns))


def set_display_matrix(path: Path, a: int, b: int, c: int, d: int) -> None:
    """Writes the matrix into the track header, in place of the identity."""
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4 + 40  # version and flags, times, id, duration, layer, group, volume
    one = 1 << 16
    assert struct.unpack_from(">9i", data, start) == (one, 0, 0, 0, one, 0, 0, 0, 1 << 30)
    struct.pack_into(">9i", data, start, a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)
    path.write_bytes(data)


def test_odd_sizes_keep_every_row_and_column(tmp_path: Path) -> None:
    played = Played(write_clip(tmp_path / "odd.mkv", numbered(2, 61, 47), [0, 40]))
    assert (played.video.width, played.video.height) == (61, 47)
    assert played.pictures[0].std() == 0


# --- colour ---


def bgr_of(y: float, u: float, v: float, kr: float, kb: float, full: bool) -> np.ndarray:
    """ITU-T H.273, equations 38 to 46 undone: stored 8-bit numbers to full-range BGR."""
    luma = y / 255 if full else (y - 16) / 219
    blue, red = ((c - 128) / (255 if full else 224) for c in (u, v))
    r, b = luma + 2 * (1 - kr) * red, luma + 2 * (1 - kb) * blue
    g = (luma - kr * r - kb * b) / (1 - kr - kb)
    return np.clip(np.array([b, g, r]) * 255, 0, 255)


BT601, BT709, BT2020 = (0.299, 0.114), (0.2126, 0.0722), (0.2627, 0.0593)
COLOURS = [(81, 90, 200), (145, 54, 80), (60, 180, 120), (180, 128, 128), (16, 128, 128), (235, 128, 128)]


@pytest.mark.parametrize("stored", COLOURS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("space", "weights"), [(Colorspace.ITU709, BT709), (Colorspace.ITU601, BT601), (Colorspace.BT2020, BT2020)])
def test_matrix_and_range_are_the_files_own(
    tmp_path: Path, stored: tuple[int, int, int], full: bool, space: Colorspace, weights: tuple[float, float]
) -> None:
    range_ = ColorRange.JPEG if full else ColorRange.MPEG
    path = write_clip(tmp_path / "c.mkv", [yuv(*stored)], [0], colorspace=int(space), color_range=int(range_))
    wanted = bgr_of(*stored, *weights, full=full)
    assert np.abs(Played(path).pictures[0].reshape(-1, 3).mean(0) - wanted).max() <= 2.5


@pytest.mark.parametrize(("height", "weights"), [(576, BT601), (720, BT709)])
def test_a_file_that_names_no_matrix_is_taken_by_its_height(tmp_path: Path, height: int, weights: tuple[float, float]) -> None:
    path = write_clip(tmp_path / "c.mkv", [yuv(81, 90, 200, 1280, height)], [0])
    assert np.abs(Played(path).pictures[0][10, 10] - bgr_of(81, 90, 200, *weights, full=False)).max() <= 2.5


def test_ten_bits_lose_nothing_but_the_last_two(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "ten.mkv", [yuv(81 * 4, 90 * 4, 200 * 4, format="yuv420p10le")], [0], colorspace=1, color_range=1)
    assert np.abs(Played(path).pictures[0][5, 5] - bgr_of(81, 90, 200, *BT709, full=False)).max() <= 2.5


# --- sound ---


def test_sound_is_48_khz_stereo_on_the_pictures_time_line(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "s.mkv", numbered(25), [40 * k for k in range(25)], sound_s=1.0)
    sound = Played(path).sound
    samples = np.concatenate([chunk.samples for chunk in sound])
    assert samples.dtype == np.float32
    assert samples.shape[1] == 2
    assert abs(len(samples) - 48_000) < 200
    assert abs(sound[0].captured_ns - START_NS) < 1_000_000
    starts = START_NS + np.cumsum([0, *(len(chunk.samples) for chunk in sound[:-1])]) / 48_000 * 1e9
    assert np.abs(starts - [chunk.captured_ns for chunk in sound]).max() < 2_000_000
    assert int(np.abs(np.fft.rfft(samples[:24_000, 0])).argmax()) == 220  # 440 Hz in half a second


def test_sound_runs_on_evenly_when_live_pictures_come_late_at_times(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "s.mkv", numbered(25), [40 * k for k in range(25)], sound_s=1.0)
    clock, bus = JumpingClock(START_NS), AudioBus()
    queue = bus.subscribe(1000)
    source = MediaSource("a live stream", CaptureRequest(), clock, reader=lambda stop: BytesIO(path.read_bytes()))
    source.open(threading.Event(), bus)
    begin_ns = clock.now_ns()
    for k in range(25):
        clock.wait_until(begin_ns + k * 40_000_000 + (30_000_000 if k % 3 else 0), threading.Event())
        grab = source.grab()
        assert grab is not None
        assert grab.captured_ns == clock.now_ns()
    source.close()
    sound = queue.take_all()
    starts = begin_ns + np.cumsum([0, *(len(chunk.samples) for chunk in sound[:-1])]) / 48_000 * 1e9
    assert np.abs(starts - [chunk.captured_ns for chunk in sound]).max() < 2_000_000


# --- how a file may be named ---


def test_a_file_is_found_by_its_address(tmp_path: Path) -> None:
    """As browsers and file managers hand it over."""
    path = write_clip(tmp_path / "ä b%20c.mkv", numbered(3), [0, 40, 80])
    for spec in (str(path), f"file:{path}", path.as_uri(), f"FILE://{path.as_uri().removeprefix('file://')}"):
        assert len(Played(spec).grabs) == 3
    with pytest.raises(SourceError, match=r"none\.mkv does not exist; give"):
        Played((tmp_path / "none.mkv").as_uri())


# --- what cannot be played ---


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nothing\.mp4 does not exist; give"):
        Played(tmp_path / "nothing.mp4")


def test_a_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a folder; give"):
        Played(tmp_path)


@pytest.mark.parametrize("name", ["text.mp4", "text.txt", "text"])
def test_text_is_no_video(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("This is no video.\n" * 100)
    with pytest.raises(SourceError, match="give"):
        Played(tmp_path / name)


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(SourceError, match="is empty"):
        Played(tmp_path / "empty.mp4")


def test_sound_alone_is_no_video(shared_data: Path) -> None:
    with pytest.raises(NoVideoError, match="no video stream"):
        Played(shared_data / "broken" / "audio_only.mp4")


def test_a_cut_file_plays_what_it_has_and_says_so(shared_data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        played = Played(shared_data / "broken" / "truncated.mp4")
    assert len(played.grabs) == 79
    assert "the file was cut" in caplog.text


def test_an_address_where_nobody_answers_says_so() -> None:
    with pytest.raises(SourceError, match="cannot be opened"):
        Played("rtmp://127.0.0.1:9/live/nobody")


# --- real clips against the ffmpeg command ---


@pytest.mark.parametrize(
    "name",
    [
        "vfr_heavy.mp4",
        "hand_to_mouth_fullrange.mkv",
        "portrait_rotate_flag.mp4",
        "hevc_main10.mp4",
        "odd_359x287_vp9.webm",
        "head_turn_profile.gif",
        "talking_man_mpeg1_audio.mpg",
    ],
)
def test_clips_look_as_ffmpeg_shows_them(shared_data: Path, ffmpeg: str, name: str) -> None:
    path = shared_data / "videos" / name
    played = Played(path, count=1)
    reference = ffmpeg_bgr(ffmpeg, path, played.video.width, played.video.height)
    assert np.abs(played.pictures[0].astype(int) - reference).mean() < 2


@pytest.mark.parametrize("name", ["vfr_heavy.mp4", "talking_man_mpeg1_audio.mpg", "head_turn_profile.gif"])
def test_a_looped_clip_has_as_many_pictures_each_time(shared_data: Path, name: str) -> None:
    once = Played(shared_data / "videos" / name)
    twice = Played(shared_data / "videos" / name, count=2 * len(once.grabs), loop=True)
    again = twice.media_ms[len(once.grabs) :]
    assert np.abs(np.diff(again) - np.diff(once.media_ms)).max() <= 1
    assert np.array_equal(twice.pictures[len(once.grabs)], once.pictures[0])


@pytest.mark.parametrize("scheme", ["http", "tcp", "rtsp"])
def test_an_address_that_never_answers_is_let_go_of(scheme: str) -> None:
    """It holds the connection until the end was reached; then the thread that opens ends by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        spec = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/x"
        source, stop, said = open_spec(spec, CaptureRequest(), MonotonicClock()), threading.Event(), []

        def start() -> None:
            with pytest.raises(SourceError, match="it was called off") as caught:
                source.open(stop, AudioBus())
            said.append(str(caught.value))

        thread = threading.Thread(target=start)
        thread.start()
        connection, _ = silent.accept()
        with connection:
            stop.set()
            thread.join(60)
            assert said, "it waits for an answer still"
            opening = [thread for thread in threading.enumerate() if thread.name == "opening"]
            assert len(opening) == 1
        opening[0].join(60)
        assert not opening[0].is_alive()
        source.close()


def test_what_is_opened_too_late_is_closed_at_once() -> None:
    class Late:
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    late, go, stop = Late(), threading.Event(), threading.Event()

    def opened() -> Late:
        go.wait()
        return late

    stop.set()
    opening = Opening(opened)
    assert opening.wait(stop) is None
    go.set()
    opening._thread.join(60)
    assert late.is_closed
    assert Opening(lambda: late).wait(threading.Event()) is late
    with pytest.raises(ValueError, match="no"):
        Opening(lambda: int("no")).wait(threading.Event())

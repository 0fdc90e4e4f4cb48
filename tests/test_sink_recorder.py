"""The recorder: true times, true colours, and a file that plays whatever happens to the process or the disk."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from rt.audio import RATE_HZ, AudioChunk, AudioQueue
from rt.errors import SinkError
from rt.frame import Frame, VideoFormat
from rt.sinks.recorder import CONTAINERS, RecorderSink

ROOT = Path(__file__).parent.parent
SECOND_NS = 1_000_000_000


def record(path: Path, times_ns: list[int], video: VideoFormat, chunks: list[AudioChunk] | None = None) -> None:
    audio = AudioQueue(10_000)
    for chunk in chunks or []:
        audio.put(chunk)
    sink = RecorderSink(path, audio)
    sink.open(video)
    for number, time_ns in enumerate(times_ns):
        level = np.full((video.height, video.width, 3), 16 + number % 200, np.uint8)
        sink.write(Frame(level, number, time_ns))
    sink.close()


@pytest.mark.parametrize("ending", sorted(CONTAINERS))
def test_every_picture_is_kept_at_its_capture_time(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(1)
    times_ns = (5 * SECOND_NS + np.cumsum(rng.integers(5_000_000, 90_000_000, 60))).tolist()
    path = tmp_path / f"clip{ending}"
    record(path, times_ns, VideoFormat(64, 48, 30))
    with av.open(str(path)) as container:
        assert {stream.type for stream in container.streams} == {"video", "audio"}
        seconds = np.array([frame.time for frame in container.decode(video=0)])
    wanted = (np.array(times_ns) - times_ns[0]) / 1e9
    assert np.abs(seconds - seconds[0] - wanted).max() <= 0.0011  # Matroska counts milliseconds


@pytest.mark.parametrize("ending", sorted(CONTAINERS))
def test_sound_and_picture_are_in_step(tmp_path: Path, ending: str) -> None:
    """A click at 1.5 s, beside pictures stamped on the same clock."""
    samples = np.zeros((3 * RATE_HZ, 2), np.float32)
    samples[RATE_HZ * 3 // 2 : RATE_HZ * 3 // 2 + 480] = 0.9
    start_ns = 7 * SECOND_NS
    starts = range(0, len(samples), 960)
    chunks = [AudioChunk(samples[at : at + 960], start_ns + at * SECOND_NS // RATE_HZ) for at in starts]
    times_ns = [start_ns + i * SECOND_NS // 30 for i in range(90)]
    path = tmp_path / f"clip{ending}"
    record(path, times_ns, VideoFormat(64, 48, 30), chunks)
    with av.open(str(path)) as container:
        first_picture_s = next(container.decode(video=0)).time
    loud_s = next(at_s for at_s, level in levels(path) if level > 0.3)
    assert loud_s - first_picture_s == pytest.approx(1.5, abs=0.005)


def levels(path: Path) -> Iterator[tuple[float, float]]:
    """Time and level of every sample."""
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            values = np.abs(frame.to_ndarray()[0])
            for at, level in enumerate(values):
                yield frame.time + at / RATE_HZ, float(level)


@pytest.mark.parametrize("size", [(640, 360), (1280, 720)])
def test_colour_bars_come_back(tmp_path: Path, size: tuple[int, int]) -> None:
    """BT.601 below 720 lines, BT.709 from there on; a reader that heeds the tags sees the colours sent.

    Six levels: rounding to 8-bit YUV of limited range costs up to three in BGR, the quantiser at CRF 20 about as much.
    """
    colours = np.array([(i & 1, i >> 1 & 1, i >> 2 & 1) for i in range(8)], np.uint8) * 191 + 32
    width, height = size
    pixels = np.ascontiguousarray(np.broadcast_to(np.repeat(colours, width // 8, axis=0), (height, width, 3)))
    sink = RecorderSink(tmp_path / "bars.mp4", AudioQueue(1))
    sink.open(VideoFormat(width, height, 30))
    for number in range(5):
        sink.write(Frame(pixels, number, number * 33_000_000))
    sink.close()
    with av.open(str(tmp_path / "bars.mp4")) as container:
        last = list(container.decode(video=0))[-1]
    matrix = 1 if height >= 720 else 6
    assert (last.colorspace, last.color_range) == (matrix, 1)
    shown = last.reformat(format="bgr24", src_colorspace="ITU709" if matrix == 1 else "ITU601").to_ndarray()
    middles = np.arange(8) * (width // 8) + width // 16
    assert np.abs(shown[height // 2, middles].astype(int) - colours.astype(int)).max() <= 6


RECORD_FOR_EVER = """
import sys, itertools
from pathlib import Path
import numpy as np
from rt.audio import AudioQueue
from rt.clock import MonotonicClock
from rt.frame import Frame, VideoFormat
from rt.sinks.recorder import RecorderSink
sink = RecorderSink(Path(sys.argv[1]), AudioQueue(1))
sink.open(VideoFormat(320, 240, 30))
rng = np.random.default_rng(0)
for number in itertools.count():
    pixels = np.full((240, 320, 3), rng.integers(256), np.uint8)
    sink.write(Frame(pixels, number, number * 33_333_333))
    print(number, flush=True)
"""


@pytest.mark.parametrize("ending", sorted(CONTAINERS))
def test_killed_process_leaves_all_but_the_last_second(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"clip{ending}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", RECORD_FOR_EVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        written = next(int(line) for line in process.stdout if int(line) >= 100)
        process.kill()
    assert playable_pictures(path) >= written - 30


def playable_pictures(path: Path) -> int:
    """Up to the first that is cut off, where a player would stop."""
    count = 0
    with av.open(str(path)) as container, contextlib.suppress(av.error.InvalidDataError, av.error.EOFError):
        for _ in container.decode(video=0):
            count += 1
    return count


def write_all(sink: RecorderSink, pictures: Iterable[np.ndarray]) -> None:
    for number, pixels in enumerate(pictures):
        sink.write(Frame(pixels, number, number * 33_333_333))


def test_full_disk_is_told_and_what_was_written_plays(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk]
    mounted = subprocess.run(mount, check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        sink = RecorderSink(disk / "clip.mp4", AudioQueue(1), bitrate_bps=4_000_000)
        sink.open(VideoFormat(320, 240, 30))
        rng = np.random.default_rng(0)
        noise = (rng.integers(0, 256, (240, 320, 3), np.uint8) for _ in range(600))
        with pytest.raises(SinkError, match="the disk is full"):
            write_all(sink, noise)
        sink.close()
        assert playable_pictures(disk / "clip.mp4") >= 10
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("name", "text"), [("clip.txt", "one of"), ("none/clip.mp4", "no folder"), ("taken.mp4", "--overwrite")]
)
def test_path_that_cannot_be_recorded_to_is_refused_at_once(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "taken.mp4").write_bytes(b"a film")
    with pytest.raises(SinkError, match=text):
        RecorderSink(tmp_path / name, AudioQueue(1))
    assert (tmp_path / "taken.mp4").read_bytes() == b"a film"


def test_a_recording_without_a_picture_leaves_no_file(tmp_path: Path) -> None:
    record(tmp_path / "clip.mp4", [], VideoFormat(64, 48, 30))
    assert not (tmp_path / "clip.mp4").exists()

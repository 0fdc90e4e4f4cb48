"""Standard input: raw frames and containers, read by a real process from a real pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from rt.capture import open_spec
from rt.capture.request import CaptureRequest
from rt.clock import MonotonicClock
from rt.errors import OptionError

READER = """
import sys, threading
import numpy as np
from rt.audio import AudioBus
from rt.capture import open_spec
from rt.capture.request import CaptureRequest
from rt.clock import MonotonicClock
from rt.errors import SourceError

stop = threading.Event()
source = open_spec(sys.argv[1], CaptureRequest(), MonotonicClock())
try:
    video = source.open(stop, AudioBus())
    print(video.width, video.height, flush=True)
    into = np.empty((video.height, video.width, 3), np.uint8)
    if "stop" in sys.argv:
        threading.Timer(0.2, stop.set).start()
    while source.grab() is not None:
        source.retrieve(into)
        print(*into[0, 0], flush=True)
    print("end")
except SourceError as error:
    print(error)
finally:
    source.close()
"""


def start(spec: str, *flags: str) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", READER, spec, *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )


def answers(spec: str, data: bytes) -> list[str]:
    out, _ = start(spec).communicate(data, timeout=60)
    return out.decode().splitlines()


@pytest.mark.parametrize(("format", "seen"), [("bgr24", "1 2 3"), ("rgb24", "3 2 1")])
def test_raw_frames(format: str, seen: str) -> None:
    frame = np.tile(np.array([1, 2, 3], np.uint8), 64 * 48)
    assert answers(f"pipe:raw,size=64x48,fps=30,format={format}", frame.tobytes() * 3) == [
        "64 48",
        seen,
        seen,
        seen,
        "end",
    ]


def test_half_a_frame_at_the_end_is_said() -> None:
    lines = answers("pipe:raw,size=64x48", bytes(64 * 48 * 3 + 100))
    assert lines[1] == "0 0 0"
    assert "100 of 9216 bytes" in lines[2]


def test_mpegts(tmp_path: Path) -> None:
    path = tmp_path / "clip.ts"
    with av.open(str(path), "w", format="mpegts") as container:
        stream = container.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for k in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 128, np.uint8), format="bgr24")
            frame.pts, frame.time_base = k, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    lines = answers("-", path.read_bytes())
    assert lines[0] == "64 48"
    assert len(lines) == 12
    assert lines[-1] == "end"


def test_nothing_at_all_is_said() -> None:
    assert "standard input" in answers("-", b"")[0]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot wait for a pipe with a time limit")
def test_stop_ends_a_read_that_waits() -> None:
    """The pipe stays open and silent: only ``stop`` can end the read."""
    process = start("pipe:raw,size=64x48", "stop")
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.read().decode().split() == ["64", "48", "end"]
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


@pytest.mark.parametrize("spec", ["pipe:raw", "pipe:raw,size=big", "pipe:raw,size=64x48,format=cmyk", "pipe:raw,colour=1", "pipe:cooked"])
def test_what_is_accepted_is_said(spec: str) -> None:
    with pytest.raises(OptionError, match="size="):
        open_spec(spec, CaptureRequest(), MonotonicClock())

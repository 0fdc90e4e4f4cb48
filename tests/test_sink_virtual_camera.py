"""The virtual camera: an in-process backend, and pyvirtualcam's native one over a fake V4L2 device, picture for picture."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
import pytest

from rt.clock import ManualClock
from rt.errors import SinkError, SinkRetryError
from rt.frame import Frame, VideoFormat
from rt.sinks import virtual_camera
from rt.sinks.virtual_camera import VirtualCameraSink
from rt.sinks.virtual_devices import VirtualDevice
from tests import fake_v4l2

pyvirtualcam = pytest.importorskip("pyvirtualcam")

ROOT = Path(__file__).parent.parent
BARS_BGR = [(blue, green, red) for green in (255, 0) for red in (255, 0) for blue in (255, 0)]
I420_ERROR = 3
"""Levels: limited range has 219 steps of luma for 255 grey levels, and two roundings on the way back."""


class MemoryCamera:
    """Keeps what it was sent."""

    sent: ClassVar[list[np.ndarray]] = []

    def __init__(self, *, width: int, height: int, fps: float, fourcc: int, device: str | None, **_: Any) -> None:
        self._fourcc = fourcc
        self.sent.clear()

    def send(self, frame: np.ndarray) -> None:
        self.sent.append(frame.copy())

    def device(self) -> str:
        return "memory"

    def native_fourcc(self) -> int:
        return self._fourcc

    def close(self) -> None:
        pass


@pytest.fixture
def memory() -> type[MemoryCamera]:
    pyvirtualcam.register_backend("memory", MemoryCamera)
    return MemoryCamera


def bars(width: int, height: int) -> np.ndarray:
    columns = np.arange(width) * len(BARS_BGR) // width
    return np.ascontiguousarray(np.broadcast_to(np.array(BARS_BGR, np.uint8)[columns], (height, width, 3)))


def back_to_bgr(i420: np.ndarray, width: int, height: int) -> np.ndarray:
    return cv2.cvtColor(i420.reshape(height * 3 // 2, width), cv2.COLOR_YUV2BGR_I420)


def test_bars_come_through_and_an_odd_edge_is_cropped(memory: type[MemoryCamera]) -> None:
    sink = VirtualCameraSink(ManualClock(), backend="memory")
    sink.open(VideoFormat(161, 91, 30))
    pixels = bars(161, 91)
    sink.write(Frame(pixels, 0, 0))
    sink.close()
    shown = back_to_bgr(memory.sent[0], 160, 90)
    edges = np.abs(np.diff(pixels[0, :160].astype(int), axis=0)).sum(1) > 0
    inside = ~(np.convolve(edges, np.ones(5), "same") > 0)  # chroma is shared by two columns
    difference = np.abs(shown.astype(int) - pixels[:90, :160].astype(int))[:, :159][:, inside]
    assert difference.max() <= I420_ERROR


def test_last_picture_is_repeated_when_none_comes(memory: type[MemoryCamera]) -> None:
    clock = ManualClock()
    sink = VirtualCameraSink(clock, backend="memory")
    sink.open(VideoFormat(64, 48, 30))
    assert sink.deadline_ns() is None
    sink.write(Frame(bars(64, 48), 0, 0))
    deadline_ns = sink.deadline_ns()
    assert deadline_ns is not None
    clock.advance(deadline_ns)
    sink.idle(clock.now_ns())
    sink.close()
    assert len(memory.sent) == 2
    assert np.array_equal(memory.sent[0], memory.sent[1])


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says which there are")
def test_where_others_are_there_no_driver_is_to_be_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = (VirtualDevice("/dev/video10", "ffrt (/dev/video10)"), VirtualDevice("/dev/video11", "OBS (/dev/video11)"))
    monkeypatch.setattr(virtual_camera, "virtual_devices", lambda: there)
    with pytest.raises(SinkError, match=r"choose one that no other program sends to: ffrt \(/dev/video10\), OBS"):
        VirtualCameraSink(ManualClock(), "/dev/video987", "v4l2loopback").open(VideoFormat(64, 48, 30))
    taken = tmp_path / "video12"
    taken.touch()
    with subprocess.Popen([sys.executable, "-c", "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()", taken],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(SinkError, match=rf"in use by .*process {other.pid}\); close it there, or choose another device"):
            VirtualCameraSink(ManualClock(), str(taken), "v4l2loopback").open(VideoFormat(64, 48, 30))
        assert other.stdin is not None
        other.stdin.close()


class LooseCamera(MemoryCamera):
    """A driver that goes away when the second picture is sent, and cannot be opened once before it is back."""

    opened: ClassVar[int] = 0

    def __init__(self, **how: Any) -> None:
        type(self).opened += 1
        if self.opened == 2:
            raise RuntimeError("no such device")
        super().__init__(**how)

    def send(self, frame: np.ndarray) -> None:
        if self.opened == 1 and self.sent:
            raise RuntimeError("gone")
        super().send(frame)


def test_one_that_goes_away_while_it_is_on_is_tried_again() -> None:
    pyvirtualcam.register_backend("loose", LooseCamera)
    LooseCamera.opened = 0
    sink = VirtualCameraSink(ManualClock(), backend="loose")
    video = VideoFormat(64, 48, 30)
    sink.open(video)
    sink.write(Frame(bars(64, 48), 0, 0))
    with pytest.raises(SinkRetryError, match="stopped taking pictures: gone"):
        sink.write(Frame(bars(64, 48), 1, 0))
    sink.close()
    with pytest.raises(SinkRetryError, match="no such device"):
        sink.open(video)
    sink.close()
    sink.open(video)
    sink.write(Frame(bars(64, 48), 2, 0))
    sink.close()
    assert len(LooseCamera.sent) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the native backend of Linux")
def test_missing_device_is_told_with_its_mend() -> None:
    sink = VirtualCameraSink(ManualClock(), "/dev/video987", "v4l2loopback")
    with pytest.raises(SinkError, match="install"):
        sink.open(VideoFormat(64, 48, 30))
    sink.close()


SENDER = """
import sys
import numpy as np
from rt.clock import MonotonicClock
from rt.frame import Frame, VideoFormat
from rt.sinks.virtual_camera import VirtualCameraSink
pictures = np.load(sys.argv[1])
sink = VirtualCameraSink(MonotonicClock(), sys.argv[2])
sink.open(VideoFormat(pictures.shape[2], pictures.shape[1], 30))
for number, pixels in enumerate(pictures):
    sink.write(Frame(np.ascontiguousarray(pixels), number, 0))
sink.close()
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs Linux and gcc")
def test_native_backend_gives_the_driver_these_very_pictures(tmp_path: Path) -> None:
    width, height = 320, 240
    pictures = np.stack([np.roll(bars(width, height), 40 * shift, axis=1) for shift in range(4)])
    np.save(tmp_path / "pictures.npy", pictures)
    command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", SENDER, str(tmp_path / "pictures.npy"), "/dev/video0"]
    done = fake_v4l2.run(fake_v4l2.build(tmp_path), tmp_path / "cam", command)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cam0.fmt").read_text().split()[:3] == [str(width), str(height), "YU12"]
    got = np.fromfile(tmp_path / "cam0.raw", np.uint8).reshape(len(pictures), -1)
    centres = np.arange(20, width, 40)
    for sent, received in zip(pictures, got, strict=True):
        shown = back_to_bgr(received, width, height)
        assert np.abs(shown[:, centres].astype(int) - sent[:, centres].astype(int)).max() <= I420_ERROR


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs Linux and gcc")
def test_of_two_devices_the_one_that_was_named_gets_the_pictures(tmp_path: Path) -> None:
    np.save(tmp_path / "pictures.npy", bars(64, 48)[None])
    command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", SENDER, str(tmp_path / "pictures.npy"), "/dev/video1"]
    done = fake_v4l2.run(fake_v4l2.build(tmp_path), tmp_path / "cam", command, devices=2)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cam1.raw").stat().st_size == 64 * 48 * 3 // 2
    assert not (tmp_path / "cam0.fmt").exists()

"""Cameras: what Video4Linux says is understood, and what goes wrong is said in one sentence."""

from __future__ import annotations

import ctypes
import errno
import logging
import shutil
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from rt.audio import AudioBus
from rt.capture import camera, open_spec
from rt.capture.camera import CameraSource, list_cameras
from rt.capture.request import CaptureRequest
from rt.clock import ManualClock
from rt.errors import OptionError, SourceError

linux = pytest.mark.skipif(sys.platform != "linux", reason="Video4Linux is Linux's")
if sys.platform == "linux":
    from rt.capture import v4l2


class JumpingClock(ManualClock):
    """Waiting takes no time: the clock jumps to the deadline."""

    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        self.advance(max(0, deadline_ns - self.now_ns()))
        return not stop.is_set()


# --- the kernel's structures ---


@linux
def test_requests_and_sizes_are_the_kernels(tmp_path: Path) -> None:
    """The C compiler's view of linux/videodev2.h is the reference."""
    gcc = shutil.which("gcc")
    if gcc is None or not Path("/usr/include/linux/videodev2.h").exists():
        pytest.skip("no C compiler or no kernel headers")
    names = ["VIDIOC_QUERYCAP", "VIDIOC_ENUM_FMT", "VIDIOC_ENUM_FRAMESIZES", "VIDIOC_ENUM_FRAMEINTERVALS"]
    prints = "".join(f'printf("%u\\n", (unsigned){name});' for name in names)
    (tmp_path / "x.c").write_text(f"#include <stdio.h>\n#include <linux/videodev2.h>\nint main(void) {{ {prints} return 0; }}\n")
    subprocess.run([gcc, "-o", str(tmp_path / "x"), str(tmp_path / "x.c")], check=True)
    numbers = [int(line) for line in subprocess.run([str(tmp_path / "x")], check=True, capture_output=True).stdout.split()]
    assert numbers == [v4l2.QUERYCAP, v4l2.ENUM_FMT, v4l2.ENUM_FRAMESIZES, v4l2.ENUM_FRAMEINTERVALS]


class Capability(ctypes.Structure):
    """struct v4l2_capability."""

    _fields_ = [
        ("driver", ctypes.c_char * 16),
        ("card", ctypes.c_char * 32),
        ("bus_info", ctypes.c_char * 32),
        ("version", ctypes.c_uint32),
        ("capabilities", ctypes.c_uint32),
        ("device_caps", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 3),
    ]


class FormatDescription(ctypes.Structure):
    """struct v4l2_fmtdesc."""

    _fields_ = [
        ("index", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("description", ctypes.c_char * 32),
        ("pixelformat", ctypes.c_uint32),
        ("rest", ctypes.c_uint32 * 4),
    ]


class FrameSize(ctypes.Structure):
    """struct v4l2_frmsizeenum; ``values`` is its union: width, height, or the six of a range."""

    _fields_ = [
        ("index", ctypes.c_uint32),
        ("pixel_format", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("values", ctypes.c_uint32 * 6),
        ("reserved", ctypes.c_uint32 * 2),
    ]


class FrameInterval(ctypes.Structure):
    """struct v4l2_frmivalenum; ``values`` is its union: one fraction of a second, or three."""

    _fields_ = [
        ("index", ctypes.c_uint32),
        ("pixel_format", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("values", ctypes.c_uint32 * 6),
        ("reserved", ctypes.c_uint32 * 2),
    ]


MJPG, YUYV, H264 = (int.from_bytes(name, "little") for name in (b"MJPG", b"YUYV", b"H264"))
SIZES = {MJPG: [(1280, 720), (640, 480)], YUYV: [(640, 480)]}
FPS = {(MJPG, 1280, 720): [(1, 30), (1, 60)], (MJPG, 640, 480): [(1001, 30000)], (YUYV, 640, 480): [(1, 30)]}


class Driver:
    """Answers as a kernel driver does; structures are laid out by ctypes."""

    def __init__(self, node_caps: int = 1) -> None:
        self._node_caps = node_caps

    def __call__(self, request: int, asked: bytes) -> bytes:
        answer = {
            v4l2.QUERYCAP: self._capability,
            v4l2.ENUM_FMT: self._format,
            v4l2.ENUM_FRAMESIZES: self._size,
            v4l2.ENUM_FRAMEINTERVALS: self._interval,
        }[request]
        try:
            return bytes(answer(asked))
        except (IndexError, KeyError):
            raise OSError(errno.EINVAL, "no such entry") from None

    def _capability(self, asked: bytes) -> Capability:
        return Capability(b"uvcvideo", "Caméra HD".encode(), b"usb-1", 1, 0x84A00001, self._node_caps)

    def _format(self, asked: bytes) -> FormatDescription:
        filled = FormatDescription.from_buffer_copy(asked)
        assert filled.type == 1
        filled.pixelformat = [MJPG, YUYV, H264][filled.index]
        return filled

    def _size(self, asked: bytes) -> FrameSize:
        filled = FrameSize.from_buffer_copy(asked)
        if filled.pixel_format == H264:
            filled.type, filled.values[:] = 3, [160, 1920, 2, 120, 1080, 2]
            return filled
        filled.type, filled.values[:2] = 1, SIZES[filled.pixel_format][filled.index]
        return filled

    def _interval(self, asked: bytes) -> FrameInterval:
        filled = FrameInterval.from_buffer_copy(asked)
        if filled.pixel_format == H264:
            filled.type, filled.values[:] = 3, [1, 30, 1, 5, 1, 30]
            return filled
        filled.type, filled.values[:2] = 1, FPS[filled.pixel_format, filled.width, filled.height][filled.index]
        return filled


@linux
def test_modes_are_read_from_the_driver() -> None:
    device = v4l2.read_device(3, "/dev/video3", Driver())
    assert device is not None
    assert (device.index, device.name, device.path, device.bus) == (3, "Caméra HD", "/dev/video3", "usb-1")
    assert device.modes == (
        (1280, 720, 30.0, "MJPG"),
        (1280, 720, 60.0, "MJPG"),
        (640, 480, 29.97, "MJPG"),
        (640, 480, 30.0, "YUYV"),
        (160, 120, 30.0, "H264"),
        (1920, 1080, 30.0, "H264"),
    )


@linux
def test_a_node_that_cannot_capture_is_no_camera() -> None:
    """Webcams have a second node for metadata: the whole device can capture, that node cannot."""
    assert v4l2.read_device(1, "/dev/video1", Driver(node_caps=0x00800000)) is None


# --- the same device, whatever its number is ---


def device(number: int, bus: str, link: str = "", name: str = "Webcam") -> v4l2.V4l2Device:
    return v4l2.V4l2Device(number, name, f"/dev/video{number}", (), bus, link)


HAD = device(0, "usb-1", "by-id/a")


@linux
@pytest.mark.parametrize(
    ("others", "now", "found"),
    [
        ([], [device(4, "usb-1", "by-id/a")], 4),  # in its plug, under another number
        ([], [device(4, "usb-7", "by-id/a")], 4),  # in another plug
        ([], [device(4, "usb-7")], 4),  # in another plug, and the lasting name is not made yet
        ([], [device(4, "usb-1")], 4),
        ([], [device(3, "usb-7"), device(4, "usb-1")], 4),  # where it was comes before a new one of its kind
        ([], [device(3, "usb-1"), device(4, "usb-7", "by-id/a")], 4),  # and its lasting name before that
        ([], [device(0, "usb-1", "by-id/b", "Another camera")], None),  # another that was given its number and its plug
        ([device(2, "usb-2", name="Webcam")], [device(2, "usb-2", "by-id/a")], None),  # one of its kind that inherits the lasting name
        ([device(2, "usb-2", name="Webcam")], [device(2, "usb-2"), device(5, "usb-9")], 5),
        ([], [], None),
    ],
)
def test_a_camera_is_told_from_others_when_it_is_plugged_in_again(
    others: list[v4l2.V4l2Device], now: list[v4l2.V4l2Device], found: int | None
) -> None:
    again = v4l2.Known.of(HAD, [HAD, *others]).among(now)
    assert (again and again.index) == found


@linux
def test_the_lasting_name_is_that_which_leads_to_the_device(tmp_path: Path) -> None:
    (tmp_path / "by-id").mkdir()
    (tmp_path / "by-path").mkdir()
    for name in ("video0", "video1"):
        (tmp_path / name).touch()
    (tmp_path / "by-id" / "usb-maker").symlink_to("../video0")
    (tmp_path / "by-path" / "pci-0").symlink_to("../video0")
    (tmp_path / "by-path" / "pci-1").symlink_to("../video1")
    rooms = (tmp_path / "by-id", tmp_path / "by-path", tmp_path / "none")
    assert v4l2.link_to(tmp_path / "video0", rooms) == str(tmp_path / "by-id" / "usb-maker")
    assert v4l2.link_to(tmp_path / "video1", rooms) == str(tmp_path / "by-path" / "pci-1")
    assert v4l2.link_to(tmp_path / "video2", rooms) == ""


# --- a clip in a camera's place: OpenCV reads it through the same calls ---


def write_clip(path: Path, levels: list[int]) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for k, level in enumerate(levels):
            frame = av.VideoFrame.from_ndarray(np.full((240, 320, 3), level, np.uint8), format="bgr24")
            frame.pts, frame.time_base = k, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def opened(path: Path, clock: ManualClock | None = None, **request: int) -> CameraSource:
    source = CameraSource(f"camera:{path}", CaptureRequest(**request), clock or JumpingClock(10**15), (cv2.CAP_FFMPEG,))
    source.open(threading.Event(), AudioBus())
    return source


@linux
def test_pictures_come_in_order_into_the_slot(tmp_path: Path) -> None:
    source = opened(write_clip(tmp_path / "c.mp4", [20, 60, 100, 140, 180]))
    into = np.zeros((240, 320, 3), np.uint8)
    seen = []
    for _ in range(4):  # the first picture was used up by opening
        assert source.grab() is not None
        source.retrieve(into)
        seen.append(int(into.mean()))
    source.close()
    assert np.abs(np.array(seen) - [60, 100, 140, 180]).max() <= 8


@linux
def test_what_was_asked_and_granted_is_told(tmp_path: Path) -> None:
    source = opened(write_clip(tmp_path / "c.mp4", [20, 60]), width=640, height=480)
    facts = source.describe()
    source.close()
    assert facts["asked"] == {"width": 640, "height": 480}
    assert facts["granted"].startswith("320x240@30")


@linux
def test_a_stamp_of_another_clock_is_not_used(tmp_path: Path) -> None:
    """A clip's position is no time of this clock."""
    clock = JumpingClock(10**15)
    source = opened(write_clip(tmp_path / "c.mp4", [20, 60]), clock)
    grab = source.grab()
    source.close()
    assert grab is not None
    assert (grab.captured_ns, grab.media_ns) == (clock.now_ns(), 0)


@linux
def test_a_camera_that_goes_away_says_so(tmp_path: Path) -> None:
    source = opened(write_clip(tmp_path / "c.mp4", [20, 60]))
    assert source.grab() is not None
    with pytest.raises(SourceError, match="stopped delivering; check its cable"):
        source.grab()
    source.close()


@linux
def test_black_pictures_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = opened(write_clip(tmp_path / "c.mp4", [0] * (camera.BLACK_FRAMES + 2)))
    into = np.zeros((240, 320, 3), np.uint8)
    with caplog.at_level(logging.WARNING):
        for _ in range(camera.BLACK_FRAMES):
            assert source.grab() is not None
            source.retrieve(into)
    assert "black pictures" in source.describe()["warning"]
    assert "black pictures" in caplog.text
    source.close()


# --- what cannot be opened ---


@linux
@pytest.mark.parametrize("spec", ["73", "/dev/video73", "camera:73", "camera:/dev/v4l/by-id/nothing"])
def test_a_camera_that_does_not_exist_says_what_does(spec: str) -> None:
    source = open_spec(spec, CaptureRequest(), JumpingClock())
    exists = "there are 0" if list_cameras() else "no camera was found on this machine; plug one in, or use --input synthetic:"
    with pytest.raises(SourceError) as caught:
        source.open(threading.Event(), AudioBus())
    assert str(caught.value).startswith(f"camera {spec.removeprefix('camera:')} does not exist; {exists}")
    source.close()


def test_a_name_that_no_camera_bears_says_so() -> None:
    source = open_spec("camera:Kamera im Mond", CaptureRequest(), JumpingClock())
    with pytest.raises(SourceError, match="no camera is called 'Kamera im Mond'; "):
        source.open(threading.Event(), AudioBus())


def test_a_fourcc_has_four_letters() -> None:
    with pytest.raises(OptionError, match="four letters"):
        open_spec("0", CaptureRequest(fourcc="MJPEG"), JumpingClock())


@pytest.mark.parametrize("spec", ["", "  "])
def test_an_empty_spec_says_what_is_accepted(spec: str) -> None:
    with pytest.raises(OptionError, match=r"camera.*file.*address.*synthetic:"):
        open_spec(spec, CaptureRequest(), JumpingClock())

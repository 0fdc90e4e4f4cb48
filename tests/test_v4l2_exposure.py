"""A camera's exposure through Video4Linux: structures as the kernel has them, a driver that answers by ctypes."""

from __future__ import annotations

import ctypes
import errno
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rt.audio import AudioBus
from rt.capture.camera import CameraSource
from rt.capture.request import CaptureRequest
from rt.clock import ManualClock

if sys.platform != "linux":
    pytest.skip("Video4Linux is Linux's", allow_module_level=True)

from rt.capture import exposure as modes
from rt.capture import v4l2
from rt.capture import v4l2_exposure as exposure


def test_requests_are_the_kernels(tmp_path: Path) -> None:
    """The C compiler's view of linux/videodev2.h is the reference."""
    gcc = shutil.which("gcc")
    if gcc is None or not Path("/usr/include/linux/videodev2.h").exists():
        pytest.skip("no C compiler or no kernel headers")
    names = ["VIDIOC_QUERYCTRL", "VIDIOC_QUERYMENU", "VIDIOC_G_CTRL", "VIDIOC_S_CTRL"]
    names += ["V4L2_CID_EXPOSURE_AUTO", "V4L2_CID_EXPOSURE_ABSOLUTE", "V4L2_CTRL_FLAG_DISABLED", "V4L2_CTRL_FLAG_READ_ONLY"]
    names += ["V4L2_EXPOSURE_AUTO", "V4L2_EXPOSURE_MANUAL", "V4L2_EXPOSURE_SHUTTER_PRIORITY", "V4L2_EXPOSURE_APERTURE_PRIORITY"]
    prints = "".join(f'printf("%u\\n", (unsigned){name});' for name in names)
    (tmp_path / "x.c").write_text(f"#include <stdio.h>\n#include <linux/videodev2.h>\nint main(void) {{ {prints} return 0; }}\n")
    subprocess.run([gcc, "-o", str(tmp_path / "x"), str(tmp_path / "x.c")], check=True)
    numbers = [int(line) for line in subprocess.run([str(tmp_path / "x")], check=True, capture_output=True).stdout.split()]
    ours = [exposure.QUERYCTRL, exposure.QUERYMENU, exposure.G_CTRL, exposure.S_CTRL]
    ours += [exposure.EXPOSURE_AUTO, exposure.EXPOSURE_ABSOLUTE, exposure.DISABLED, exposure.READ_ONLY]
    assert numbers == [*ours, modes.AUTO, modes.MANUAL, modes.SHUTTER_PRIORITY, modes.APERTURE_PRIORITY]


class QueryControl(ctypes.Structure):
    """struct v4l2_queryctrl."""

    _fields_ = [
        ("id", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("name", ctypes.c_char * 32),
        ("minimum", ctypes.c_int32),
        ("maximum", ctypes.c_int32),
        ("step", ctypes.c_int32),
        ("default_value", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32 * 2),
    ]


class QueryMenu(ctypes.Structure):
    """struct v4l2_querymenu."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("id", ctypes.c_uint32), ("index", ctypes.c_uint32), ("name", ctypes.c_char * 32), ("reserved", ctypes.c_uint32)]


class Control(ctypes.Structure):
    """struct v4l2_control."""

    _fields_ = [("id", ctypes.c_uint32), ("value", ctypes.c_int32)]


class Webcam:
    """Answers as uvcvideo does: a time can be set in manual mode alone."""

    def __init__(self, menu: tuple[int, ...] = (modes.MANUAL, modes.APERTURE_PRIORITY), span: tuple[int, int] | None = (3, 2047)):
        self.menu, self.span = menu, span
        self.values = {exposure.EXPOSURE_AUTO: modes.APERTURE_PRIORITY, exposure.EXPOSURE_ABSOLUTE: 250}
        self.flags = 0

    def __call__(self, request: int, asked: bytes) -> bytes:
        answer = {
            exposure.QUERYCTRL: self._query,
            exposure.QUERYMENU: self._menu,
            exposure.G_CTRL: self._get,
            exposure.S_CTRL: self._set,
        }.get(request)
        if answer is None:
            raise OSError(errno.ENOTTY, "no such request")
        return bytes(answer(asked))

    def _query(self, asked: bytes) -> QueryControl:
        filled = QueryControl.from_buffer_copy(asked)
        if filled.id == exposure.EXPOSURE_AUTO and self.menu:
            filled.minimum, filled.maximum = 0, 3
        elif filled.id == exposure.EXPOSURE_ABSOLUTE and self.span:
            filled.minimum, filled.maximum = self.span
        else:
            raise OSError(errno.EINVAL, "no such control")
        filled.flags = self.flags
        return filled

    def _menu(self, asked: bytes) -> QueryMenu:
        filled = QueryMenu.from_buffer_copy(asked)
        if filled.index not in self.menu:
            raise OSError(errno.EINVAL, "no such entry")
        return filled

    def _get(self, asked: bytes) -> Control:
        filled = Control.from_buffer_copy(asked)
        filled.value = self.values[filled.id]
        return filled

    def _set(self, asked: bytes) -> Control:
        filled = Control.from_buffer_copy(asked)
        if filled.id == exposure.EXPOSURE_ABSOLUTE and self.values[exposure.EXPOSURE_AUTO] != modes.MANUAL and self.menu:
            raise OSError(errno.EACCES, "Permission denied")
        self.values[filled.id] = filled.value
        return filled


def test_what_a_webcam_offers() -> None:
    offered = exposure.read_exposure(Webcam())
    assert (offered.modes, offered.least_ms, offered.most_ms) == ((1, 3), 0.3, 204.7)
    assert (offered.automatic, offered.fixed) == (modes.APERTURE_PRIORITY, True)


def test_automatic_and_fixed_are_set() -> None:
    webcam = Webcam()
    offered = exposure.read_exposure(webcam)
    assert exposure.set_exposure(webcam, offered, 8.3) == "8.3 ms"
    assert webcam.values == {exposure.EXPOSURE_AUTO: modes.MANUAL, exposure.EXPOSURE_ABSOLUTE: 83}
    assert exposure.set_exposure(webcam, offered, 900) == "204.7 ms"  # the most it has, and that is said
    assert exposure.set_exposure(webcam, offered, 0) == "automatic"
    assert webcam.values[exposure.EXPOSURE_AUTO] == modes.APERTURE_PRIORITY


def test_a_camera_without_is_told() -> None:
    bare = Webcam(menu=(), span=None)
    offered = exposure.read_exposure(bare)
    assert (offered.automatic, offered.fixed) == (None, False)
    assert "no automatic" in exposure.set_exposure(bare, offered, 0)
    assert "lets nobody set" in exposure.set_exposure(bare, offered, 10)
    locked = Webcam()
    locked.flags = exposure.READ_ONLY
    assert not exposure.read_exposure(locked).fixed


def test_a_camera_with_a_time_and_no_modes() -> None:
    simple = Webcam(menu=())
    assert exposure.set_exposure(simple, exposure.read_exposure(simple), 20) == "20 ms"
    assert simple.values[exposure.EXPOSURE_ABSOLUTE] == 200


def test_the_camera_source_tells_what_was_granted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before it is open nothing is asked of it; then what was wished first is."""
    from test_capture_camera import cv2, write_clip

    webcam = Webcam()
    paths = []

    @contextmanager
    def asking(path: str) -> Iterator[v4l2.Ask]:
        paths.append(path)
        yield webcam

    monkeypatch.setattr(v4l2, "asking", asking)
    clip = write_clip(tmp_path / "c.mp4", [20, 60, 100])
    source = CameraSource(f"camera:{clip}", CaptureRequest(), ManualClock(), (cv2.CAP_FFMPEG,))
    source.expose(10)
    assert paths == []
    source.open(threading.Event(), AudioBus())
    assert source.describe()["exposure"] == "10 ms"
    source.expose(0)
    assert source.describe()["exposure"] == "automatic"
    assert webcam.values[exposure.EXPOSURE_AUTO] == modes.APERTURE_PRIORITY
    source.expose(None)
    assert "exposure" not in source.describe()
    assert paths == [str(clip)] * 3  # twice its exposure, and once who it is
    source.close()


def test_a_device_without_controls_is_told(tmp_path: Path) -> None:
    """A clip in a camera's place takes no such request."""
    from test_capture_camera import opened, write_clip

    source = opened(write_clip(tmp_path / "c.mp4", [20, 60, 100]))
    source.expose(5)
    assert source.describe()["exposure"] == "this camera lets nobody set its exposure"
    source.close()

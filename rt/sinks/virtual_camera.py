"""A camera that OBS, Zoom and browsers can choose, through pyvirtualcam (GPLv2, so an optional install)."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from rt.capture.holders import used_by
from rt.clock import Clock
from rt.errors import SinkError, SinkRetryError
from rt.frame import Frame, VideoFormat
from rt.sinks.virtual_devices import virtual_devices

REPEAT_AFTER_NS = 500_000_000
"""A reader that gets nothing for longer shows a black picture or gives up."""

DRIVERS = {
    "Linux": "run `sudo apt install v4l2loopback-dkms`, then `sudo modprobe v4l2loopback exclusive_caps=1 card_label=ffrt`",
    "Windows": "install OBS Studio, which brings the OBS Virtual Camera, or UnityCapture",
    "Darwin": "install OBS Studio and start its virtual camera once",
}
"""What to do where no driver answers."""


class VirtualCameraSink:
    """Sends I420 in limited range by BT.601, which is what V4L2 loopback readers take it for at any size."""

    name = "virtual-camera"
    lossless = False

    def __init__(self, clock: Clock, device: str | None = None, backend: str | None = None) -> None:
        """``device``: ``/dev/video2``, ``OBS Virtual Camera``; None takes the first one free. ``backend``: as pyvirtualcam names it."""
        self._clock = clock
        self._device = device
        self._backend = backend
        self._camera: Any = None
        self._size = (0, 0)
        self._i420 = np.empty((0, 0), np.uint8)
        self._sent_ns: int | None = None
        self._described = ""
        self._repeated = 0

    def open(self, video: VideoFormat) -> None:
        try:
            import pyvirtualcam
        except ImportError as error:
            raise SinkError("the virtual camera needs pyvirtualcam, which is not installed; run `pip install 'ffrt[vcam]'`") from error
        self._size = (video.width // 2 * 2, video.height // 2 * 2)
        self._i420 = np.empty((self._size[1] * 3 // 2, self._size[0]), np.uint8)
        try:
            self._camera = pyvirtualcam.Camera(
                *self._size, video.fps, fmt=pyvirtualcam.PixelFormat.I420, device=self._device, backend=self._backend
            )
        except (RuntimeError, ValueError) as error:
            mend = _mend(self._device)
            kind = SinkRetryError if self._described else SinkError  # what worked before may be back soon
            raise kind(f"no virtual camera could be opened ({_one_line(error)}); {mend}") from error
        self._described = f"{self._camera.device} {self._size[0]}x{self._size[1]} through {self._camera.backend}"

    def write(self, frame: Frame) -> None:
        width, height = self._size
        # OpenCV's I420 is limited range BT.601; a contiguous cut is only needed for odd widths
        cv2.cvtColor(np.ascontiguousarray(frame.pixels[:height, :width]), cv2.COLOR_BGR2YUV_I420, dst=self._i420)
        self._send()

    def deadline_ns(self) -> int | None:
        return None if self._sent_ns is None else self._sent_ns + REPEAT_AFTER_NS

    def idle(self, now_ns: int) -> None:
        self._repeated += 1
        self._send()

    def close(self) -> None:
        self._sent_ns = None
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def statistics(self) -> dict[str, Any]:
        return {"device": self._described, "repeated": self._repeated}

    def _send(self) -> None:
        try:
            self._camera.send(self._i420)
        except (RuntimeError, OSError) as error:
            raise SinkRetryError(f"the virtual camera {self._described} stopped taking pictures: {_one_line(error)}") from error
        self._sent_ns = self._clock.now_ns()


def _mend(device: str | None) -> str:
    """What to do where ``device``, or any, could not be opened."""
    there = virtual_devices() if platform.system() == "Linux" else ()
    if not there:
        return DRIVERS.get(platform.system(), "install a virtual camera driver")
    clause = used_by(Path(device)) if device else ""
    names = ", ".join(one.title for one in there)
    return f"{clause}; close it there, or choose another device" if clause else f"choose one that no other program sends to: {names}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

"""``--virtual-camera``: a camera that OBS, Zoom and browsers can choose, through the optional package pyvirtualcam (GPL-2.0)."""

from __future__ import annotations

import sys
from typing import Any

import cv2
import numpy as np

from rt.clock import Clock
from rt.errors import SinkError
from rt.frame import Frame, VideoFormat
from rt.sinks import sinks
from rt.sinks.encode import even

KEEP_ALIVE_NS = 1_000_000_000
"""Some readers give a camera up that sends nothing: the last picture is repeated after so long."""

MENDS = {
    "linux": "install v4l2loopback and load it: sudo modprobe v4l2loopback exclusive_caps=1 card_label=ffrt",
    "win32": "install OBS Studio (its virtual camera) or UnityCapture",
    "darwin": "install OBS Studio and start its virtual camera once",
}


@sinks.register("virtual-camera")
class VirtualCameraSink:
    """Sends I420, which every driver takes without converting again.

    ``cv2.cvtColor`` gives BT.601, limited range: what libyuv gives inside pyvirtualcam too, and what readers of a camera assume
    that names no matrix.
    """

    name = "virtual-camera"
    lossless = False

    def __init__(self, clock: Clock, device: str | None = None, backend: str | None = None) -> None:
        """``device``: a name such as ``/dev/video2``, empty or None for the first one free; ``backend``: pyvirtualcam's, None for any."""
        self._clock = clock
        self._device = device or None
        self._backend = backend
        self._camera: Any = None
        self._size: VideoFormat | None = None
        self._i420: np.ndarray | None = None
        self._sent_ns = 0
        self._repeated = 0
        self._facts: dict[str, Any] = {}

    def open(self, video: VideoFormat) -> None:
        try:
            import pyvirtualcam
        except ImportError:
            raise SinkError("the virtual camera needs the package pyvirtualcam; install it: pip install pyvirtualcam") from None
        size = self._size = even(video)
        try:
            self._camera = pyvirtualcam.Camera(
                size.width,
                size.height,
                size.fps,
                fmt=pyvirtualcam.PixelFormat.I420,
                device=self._device,
                backend=self._backend,
            )
        except (RuntimeError, ValueError) as error:
            raise SinkError(self._refusal(str(error))) from error
        self._facts = {"device": self._camera.device, "backend": self._camera.backend, "size": str(size)}

    def write(self, frame: Frame) -> None:
        assert self._size is not None, "open comes first"
        cropped = np.ascontiguousarray(frame.pixels[: self._size.height, : self._size.width])
        self._i420 = cv2.cvtColor(cropped, cv2.COLOR_BGR2YUV_I420, dst=self._i420)
        self._send()

    def deadline_ns(self) -> int | None:
        return None if self._i420 is None else self._sent_ns + KEEP_ALIVE_NS

    def idle(self, now_ns: int) -> None:
        if self._i420 is not None:
            self._send()
            self._repeated += 1

    def close(self) -> None:
        camera, self._camera = self._camera, None
        self._i420 = None
        if camera is not None:
            camera.close()

    def statistics(self) -> dict[str, Any]:
        return {**self._facts, "repeated": self._repeated}

    def _send(self) -> None:
        assert self._camera is not None, "open comes first"
        try:
            self._camera.send(self._i420)
        except (RuntimeError, OSError) as error:
            raise SinkError(f"the virtual camera {self._facts['device']} broke: {error}; start again") from error
        self._sent_ns = self._clock.now_ns()

    def _refusal(self, reason: str) -> str:
        wanted = f"the virtual camera {self._device}" if self._device else "a virtual camera"
        mend = MENDS.get(sys.platform, "see pyvirtualcam's documentation for this platform")
        return f"cannot open {wanted}: {reason.splitlines()[0].rstrip('.')}; {mend}"

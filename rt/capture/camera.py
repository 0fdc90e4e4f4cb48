"""Cameras through OpenCV: by number, by path, by name."""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from rt.audio import AudioBus
from rt.capture import SourceKind, sources
from rt.capture.contract import Grab
from rt.capture.exposure import Exposure
from rt.capture.holders import used_by
from rt.capture.request import CaptureRequest
from rt.clock import Clock
from rt.errors import OptionError, SourceError, SourceLostError
from rt.frame import VideoFormat

if TYPE_CHECKING:
    from rt.capture.v4l2 import Known

log = logging.getLogger(__name__)

BACKENDS = {"Linux": (cv2.CAP_V4L2,), "Windows": (cv2.CAP_DSHOW, cv2.CAP_MSMF), "Darwin": (cv2.CAP_AVFOUNDATION,)}
"""In the order in which they are tried."""

FIRST_FRAME_S = 3.0
"""A camera that shows nothing for so long after it was opened is said to be mute."""

GONE_S = 2.0
"""A camera whose reads fail for so long counts as gone."""

RETRY_NS = 20_000_000
"""From one failed read to the next."""

BLACK_LEVEL = 12
"""Mean grey level under which a picture counts as black: a shutter, a privacy switch, another program that holds the camera."""

BLACK_FRAMES = 60
"""Black pictures in a row before that is said."""

STAMP_OFF_MAX_NS = 1_000_000_000
"""A driver's time stamp further from now than this is of another clock, and is not used."""


@dataclass(frozen=True, slots=True)
class CameraMode:
    """One way in which a camera can deliver."""

    width: int
    height: int
    fps: float
    fourcc: str


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """A camera of this machine."""

    index: int
    name: str
    path: str
    modes: tuple[CameraMode, ...]
    """Empty where the system does not tell."""
    link: str = ""
    """A path that is this camera's whatever its number is next time; empty where the system has none."""

    @property
    def spec(self) -> str:
        """What names it best, as an input."""
        return self.link or self.path


def recognises(spec: str) -> bool:
    """A number, ``camera:NAME``, a device path, or the name of a camera that exists."""
    if re.fullmatch(r"\d+", spec) or spec.startswith(("camera:", "/dev/video", "/dev/v4l/")):
        return True
    if "://" in spec or Path(spec).exists() or sys.platform != "linux":  # elsewhere names are not known
        return False
    return any(spec.casefold() == camera.name.casefold() for camera in list_cameras())


def list_cameras() -> list[CameraInfo]:
    """The cameras that the system knows, by index; with names and modes on Linux."""
    if sys.platform == "linux":
        from rt.capture import v4l2  # needs fcntl, which Windows lacks

        return [
            CameraInfo(device.index, device.name, device.path, tuple(CameraMode(*mode) for mode in device.modes), device.link)
            for device in v4l2.devices()
        ]
    return list(_probe())


def offered_exposure(spec: str) -> Exposure | None:
    """What the camera ``spec`` offers; None where that is not known: no camera, none that is there, another system than Linux."""
    if sys.platform != "linux" or not recognises(spec):
        return None
    from rt.capture.v4l2 import asking
    from rt.capture.v4l2_exposure import read_exposure

    try:
        with asking(str(_path_of(_device_of(spec)))) as ask:
            return read_exposure(ask)
    except (SourceError, OSError):
        return None


def _probe() -> list[CameraInfo]:
    """Elsewhere a camera is known by opening it; the first gap ends the search."""
    found = []
    for index in range(10):
        capture = cv2.VideoCapture(index, BACKENDS.get(platform.system(), (cv2.CAP_ANY,))[0])
        opened = capture.isOpened()
        capture.release()
        if not opened:
            break
        found.append(CameraInfo(index, f"camera {index}", str(index), ()))
    return found


class CameraSource:
    """One camera. The driver's queue is kept at one picture, so that what is read is new."""

    live = True

    def __init__(self, spec: str, request: CaptureRequest, clock: Clock, backends: tuple[int, ...] | None = None) -> None:
        """``backends``: OpenCV's numbers (``cv2.CAP_…``), tried in order; None takes the platform's."""
        if request.fourcc is not None and len(request.fourcc) != 4:
            raise OptionError(f"fourcc {request.fourcc!r} was given; give four letters, such as MJPG or YUYV")
        self._backends = backends or BACKENDS.get(platform.system(), (cv2.CAP_ANY,))
        self._spec = spec
        self._name = spec.removeprefix("camera:")
        self._request = request
        self._clock = clock
        self._stop = threading.Event()
        self._capture: cv2.VideoCapture | None = None
        self._granted = ""
        self._warning = ""
        self._exposure_ms: float | None = None
        self._exposure = ""
        self._known: Known | None = None  # of the device that was opened first; Linux
        self._path = Path()
        self._first_ns: int | None = None
        self._black = 0
        self._video: VideoFormat | None = None

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._stop = stop
        device = self._find()
        self._path = Path(os.path.realpath(_path_of(device)))
        self._capture = self._open_device(device)
        self._ask()
        if not self._await_picture(FIRST_FRAME_S):
            raise SourceError(
                f"camera {self._name} opened and gave no picture for {FIRST_FRAME_S:g} s; "
                + (self._in_use() or "close other programs, or try another size")
            )
        self._video = self._read_granted()
        self._first_ns, self._black, self._warning = None, 0, ""
        self._remember()
        self.expose(self._exposure_ms)
        return self._video

    def grab(self) -> Grab | None:
        assert self._capture is not None
        if self._await_picture(GONE_S):
            return self._stamp(self._capture)
        if self._stop.is_set():
            return None
        if self._is_unplugged:
            raise SourceLostError(f"camera {self._name} was unplugged; plug it in again, or choose another")
        why = self._in_use() or "check its cable and whether another program has taken it"
        raise SourceLostError(f"camera {self._name} stopped delivering; {why}")

    def retrieve(self, into: np.ndarray) -> None:
        assert self._capture is not None
        well, picture = self._capture.retrieve(into)
        while not well:  # a damaged picture: the next one stands in for it
            if self.grab() is None:
                return
            well, picture = self._capture.retrieve(into)
        if picture is not into:
            np.copyto(into, picture if picture.shape == into.shape else cv2.resize(picture, into.shape[1::-1]))
        self._watch_for_black(into)

    def close(self) -> None:
        if self._capture is not None:
            self._capture.release()
            self._capture = None

    def describe(self) -> dict[str, Any]:
        asked = {name: getattr(self._request, name) for name in ("width", "height", "fps", "fourcc") if getattr(self._request, name)}
        facts = {"spec": self._spec, "asked": asked, "granted": self._granted, "exposure": self._exposure, "warning": self._warning}
        return {name: value for name, value in facts.items() if value or name in ("asked", "granted")}

    def expose(self, exposure_ms: float | None) -> None:
        """See ``rt.capture.contract.Adjustable``. Cameras take it while they are open, from a second handle."""
        self._exposure_ms = exposure_ms
        if exposure_ms is not None and self._video is not None:
            self._exposure = self._set_exposure(exposure_ms)
        elif exposure_ms is None:
            self._exposure = ""  # as it is, and nobody asked

    def _set_exposure(self, exposure_ms: float) -> str:
        if sys.platform != "linux":
            return "cannot be set on this system by this version"
        from rt.capture.v4l2 import asking
        from rt.capture.v4l2_exposure import read_exposure, set_exposure

        try:
            with asking(str(_path_of(_device_of(self._spec)))) as ask:
                return set_exposure(ask, read_exposure(ask), exposure_ms)
        except OSError as error:
            return f"the driver refused it ({error.strerror})"

    # --- capture thread ---

    def _find(self) -> int | str:
        """What to open: what the SPEC names, and later the same device wherever it is now. Raises ``SourceError``."""
        if self._known is None:
            return _device_of(self._spec)
        from rt.capture import v4l2

        there = v4l2.device_at(self._path) or v4l2.device_at(Path(self._name))
        found = self._known.among([*([there] if there else []), *v4l2.devices()])
        if found is None:
            raise SourceLostError(f"camera {self._name} ({self._known.name}) is not plugged in; plug it in again, or choose another")
        return found.path

    def _remember(self) -> None:
        if sys.platform != "linux":
            return
        from rt.capture import v4l2

        there = v4l2.device_at(self._path)
        if there is not None:
            self._known = v4l2.Known.of(there, v4l2.devices())

    @property
    def _is_unplugged(self) -> bool:
        return sys.platform == "linux" and self._known is not None and not self._path.exists()

    def _in_use(self) -> str:
        """By whom, and what to do; an empty text where nobody is known to."""
        clause = used_by(self._path)
        return f"{clause}; close it there, or choose another camera" if clause else ""

    def _open_device(self, device: int | str) -> cv2.VideoCapture:
        _check_device(self._spec, device)
        os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", f"{GONE_S:g}")  # OpenCV's ten seconds would also hold up a stop
        tried = []
        for backend in self._backends:
            capture = cv2.VideoCapture(device, backend)
            if capture.isOpened():
                return capture
            capture.release()
            tried.append(cv2.videoio_registry.getBackendName(backend))
        what = self._in_use() or f"close other programs that use it; {_what_exists()}"
        raise SourceError(f"camera {self._name} cannot be opened ({', '.join(tried)}); {what}")

    def _ask(self) -> None:
        assert self._capture is not None
        request = self._request
        self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        # Uncompressed video of more than VGA does not fit through USB 2 at 30 fps; every webcam offers MJPG instead.
        fourcc = request.fourcc or ("MJPG" if (request.height or 720) > 480 else None)
        if fourcc is not None:
            self._capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*fourcc))
        self._capture.set(cv2.CAP_PROP_FRAME_WIDTH, request.width or 1280)
        self._capture.set(cv2.CAP_PROP_FRAME_HEIGHT, request.height or 720)
        self._capture.set(cv2.CAP_PROP_FPS, request.fps or 30)

    def _await_picture(self, seconds: float) -> bool:
        """Tries to read until there is a picture; False after ``seconds`` of failures, or after ``stop``."""
        assert self._capture is not None
        until_ns = self._clock.now_ns() + round(seconds * 1e9)
        while not self._stop.is_set():
            if self._capture.grab():
                return True
            now_ns = self._clock.now_ns()
            if now_ns > until_ns or self._is_unplugged:
                return False
            self._clock.wait_until(now_ns + RETRY_NS, self._stop)
        return False

    def _read_granted(self) -> VideoFormat:
        assert self._capture is not None
        well, picture = self._capture.retrieve()
        if not well:
            raise SourceError(f"camera {self._name} gave a picture that cannot be decoded; try another --fourcc")
        fps = self._capture.get(cv2.CAP_PROP_FPS)
        code = int(self._capture.get(cv2.CAP_PROP_FOURCC))
        fourcc = code.to_bytes(4, "little").decode("ascii", "replace") if code > 0 else "?"
        video = VideoFormat(picture.shape[1], picture.shape[0], fps if 1 <= fps <= 1000 else 30.0)
        self._granted = f"{video} {fourcc} through {self._capture.getBackendName()}"
        return video

    def _stamp(self, capture: cv2.VideoCapture) -> Grab:
        """V4L2 stamps pictures on the monotonic clock, which is the line's; the queue in the driver is then part of the age."""
        now_ns = self._clock.now_ns()
        driver_ns = round(capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6)
        captured_ns = driver_ns if 0 <= now_ns - driver_ns < STAMP_OFF_MAX_NS else now_ns
        self._first_ns = captured_ns if self._first_ns is None else self._first_ns
        return Grab(captured_ns, captured_ns - self._first_ns)

    def _watch_for_black(self, picture: np.ndarray) -> None:
        self._black = self._black + 1 if picture[::16, ::16].mean() < BLACK_LEVEL else 0
        if not self._black and self._warning:
            self._warning = ""
            log.info("camera %s gives bright pictures again", self._name, extra={"facts": {"event": "input-bright"}})
        elif self._black == BLACK_FRAMES:
            self._warning = f"camera {self._name} gives black pictures; open its shutter, or close the program that holds it"
            log.warning("%s", self._warning, extra={"facts": {"event": "input-black"}})


def _device_of(spec: str) -> int | str:
    """What OpenCV opens: a number or a path. Raises ``SourceError`` for a name that no camera bears."""
    wanted = spec.removeprefix("camera:")
    if re.fullmatch(r"\d+", wanted):
        return int(wanted)
    if wanted.startswith("/"):
        return wanted
    matches = [camera for camera in list_cameras() if wanted.casefold() in camera.name.casefold()]
    if not matches:
        raise SourceError(f"no camera is called {wanted!r}; {_what_exists()}")
    return matches[0].index


def _path_of(device: int | str) -> Path:
    """On Linux; elsewhere a path where nothing is."""
    return Path(f"/dev/video{device}") if isinstance(device, int) else Path(device)


def _check_device(spec: str, device: int | str) -> None:
    """Says what OpenCV does not: that there is no such device, or that it belongs to somebody else. Linux only."""
    path, name = _path_of(device), spec.removeprefix("camera:")
    if sys.platform != "linux":
        return
    if not path.exists():
        raise SourceError(f"camera {name} does not exist; {_what_exists()}")
    if not os.access(path, os.R_OK | os.W_OK):
        raise SourceError(f"camera {name} may not be used by this user; run `sudo usermod -aG video $USER` and log in again")


def _what_exists() -> str:
    cameras = list_cameras()
    if not cameras:
        return "no camera was found on this machine; plug one in, or use --input synthetic:"
    return "there are " + ", ".join(f"{camera.index} ({camera.name})" for camera in cameras)


sources.register("camera")(SourceKind(recognises, CameraSource, rank=1))

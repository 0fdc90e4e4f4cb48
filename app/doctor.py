"""What this machine has and lacks for ffrt, each with the mend. Returns facts; printing is the command line's."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av.error
from av.video.codeccontext import VideoCodecContext

from app.folders import config_folder, data_folder
from app.report import versions
from engines.device.cuda_probe import find_gpus
from engines.device.kinds import problem
from engines.errors import FolderError, ModelError
from engines.folders import cache_folder
from engines.store import embedded_models, verify
from engines.store.shelf import default_folder
from rt.capture.camera import list_cameras
from rt.sinks.virtual_camera import DRIVERS
from rt.sinks.virtual_devices import FOLDER, virtual_devices

ENCODERS = {
    "libx264": "reinstall PyAV (`pip install --force-reinstall av`): streams and recordings need it",
    "h264_nvenc": "an NVIDIA card and its driver; libx264 does the work without",
    "hevc_nvenc": "an NVIDIA card and its driver; libx265 does the work without",
    "h264_qsv": "an Intel GPU and its driver; libx264 does the work without",
}
"""Encoder → what it takes to have it."""


class State(StrEnum):
    """How things stand."""

    OK = "ok"
    WARNING = "warning"
    """Works, less well or with a limit."""
    MISSING = "missing"
    """Something a person may want cannot be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    what: str
    """What was found, in a few words."""
    mend: str = ""
    """One sentence; empty where nothing needs to be done."""
    personal: bool = False
    """``what`` names things of the person's own."""
    plain: bool = False
    """``what`` names nothing of the person's own, whatever it looks like."""


VIRTUAL_DEVICES = FOLDER
EXCLUSIVE_CAPS = Path("/sys/module/v4l2loopback/parameters/exclusive_caps")
"""Where Linux tells of v4l2loopback's own settings."""


def examine() -> list[Finding]:
    """Looks at everything: two or three seconds."""
    return [finding for probe in PROBES for finding in probe()]


def to_dict(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """JSON-ready."""
    return [{name: value for name, value in asdict(finding).items() if name not in ("personal", "plain")} for finding in findings]


def _machine() -> list[Finding]:
    cores = os.cpu_count() or 1
    text = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {cores} cores"
    if cores < 2:
        return [Finding("machine", State.WARNING, text, "two cores or more carry 1280x720 at 30 fps")]
    return [Finding("machine", State.OK, text)]


def _models() -> list[Finding]:
    try:
        models = embedded_models()
        for model in models.values():
            verify(model)
    except ModelError as error:
        return [Finding("models", State.MISSING, str(error), "install ffrt again")]
    return [Finding("models", State.OK, f"{len(models)} embedded models are complete (Apache-2.0)")]


def _cameras() -> list[Finding]:
    cameras = list_cameras()
    if not cameras:
        return [
            Finding(
                "cameras",
                State.MISSING,
                "none",
                "plug one in; on Linux your user must be in the group `video`; `--input synthetic:` needs none",
            )
        ]
    return [Finding("cameras", State.OK, ", ".join(f"{camera.index} ({camera.name})" for camera in cameras), personal=True)]


def virtual_camera() -> Finding:
    """Whether a driver is there that other programs can choose as a camera."""
    name = "virtual camera"
    if importlib.util.find_spec("pyvirtualcam") is None:
        return Finding(name, State.MISSING, "pyvirtualcam is not installed", "run `pip install 'ffrt[vcam]'` (GPLv2)")
    if platform.system() != "Linux":
        version = importlib.metadata.version("pyvirtualcam")
        return Finding(name, State.OK, f"pyvirtualcam {version}; the driver is tried when it is used", DRIVERS[platform.system()])
    devices = virtual_devices(VIRTUAL_DEVICES)
    if not devices:
        return Finding(name, State.MISSING, "v4l2loopback is not loaded", DRIVERS["Linux"], plain=True)
    text = ", ".join(device.place for device in devices)
    if EXCLUSIVE_CAPS.exists() and not EXCLUSIVE_CAPS.read_text().startswith("Y"):
        mend = "reload v4l2loopback with exclusive_caps=1"
        return Finding(name, State.WARNING, f"{text} without exclusive_caps: Chrome does not list it", mend)
    return Finding(name, State.OK, text)


def _encoders() -> list[Finding]:
    return [_encoder(name, mend) for name, mend in ENCODERS.items()]


def _encoder(name: str, mend: str) -> Finding:
    """The only honest test is to open it once, at a size that is used."""
    required = name == "libx264"
    try:
        context = cast(VideoCodecContext, VideoCodecContext.create(name, "w"))
        context.width, context.height, context.pix_fmt = 1280, 720, "yuv420p"
        context.framerate, context.time_base = Fraction(30), Fraction(1, 30)
        context.open()
    except (av.error.FFmpegError, ValueError, OSError) as error:
        return Finding(f"encoder {name}", State.MISSING if required else State.WARNING, f"does not open ({error})", mend)
    return Finding(f"encoder {name}", State.OK, "opens at 1280x720")


def _gpu() -> list[Finding]:
    count, _ = find_gpus()
    if not count:
        why = f"--device cuda:0 cannot be used: {problem('cuda:0')}"
        return [Finding("GPU", State.WARNING, why, "nothing needs to be done where the processor will do")]
    names = ",".join(f"cuda:{number}" for number in range(count))
    mend = f"`--device {names}` has neural models run there; the authors had no GPU to try that on"
    return [Finding("GPU", State.OK, f"{count} found", mend)]


def _heic() -> list[Finding]:
    if importlib.util.find_spec("pillow_heif") is None:
        return [Finding("HEIC photos", State.WARNING, "cannot be opened", "run `pip install 'ffrt[heic]'`, or save as JPEG")]
    return [Finding("HEIC photos", State.OK, "can be opened")]


def _srt() -> list[Finding]:
    """RTMP is our own; SRT goes through the system's ffmpeg, which may be built without."""
    program = shutil.which("ffmpeg")
    if program is None:
        return [Finding("SRT", State.WARNING, "the ffmpeg program is missing", "install ffmpeg to stream by SRT; RTMP needs nothing")]
    listed = subprocess.run([program, "-hide_banner", "-protocols"], capture_output=True, text=True, timeout=20, check=False).stdout
    if "srt" not in listed.split():
        return [Finding("SRT", State.WARNING, f"{program} was built without it", "install an ffmpeg with libsrt; RTMP needs nothing")]
    return [Finding("SRT", State.OK, f"through {program}")]


def _folders() -> list[Finding]:
    """The user's own, whether they are there yet or not."""
    folders = {"settings": config_folder, "photos": data_folder, "models": default_folder, "cache": cache_folder}
    troubles = [trouble for what, folder in folders.items() if (trouble := _trouble_with(what, folder)) is not None]
    return troubles or [Finding("folders", State.OK, "settings, photos, models and the cache can be kept")]


def _trouble_with(what: str, folder: Callable[[], Path]) -> Finding | None:
    try:
        place = folder()
        nearest = next(near for near in (place, *place.absolute().parents) if near.exists())
    except (FolderError, OSError) as error:  # absolute() has none in a folder that is gone
        return Finding(f"folder for {what}", State.MISSING, str(error), "give one that can be written", personal=True)
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return None
    text = f"{nearest} cannot be written" if nearest.is_dir() else f"{nearest} is no folder"
    return Finding(f"folder for {what}", State.MISSING, text, "give ffrt a folder of your own", personal=True)


def _disk() -> list[Finding]:
    try:
        free_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    except OSError as error:  # the folder was deleted meanwhile, or its disk is gone
        return [Finding("disk", State.WARNING, f"this folder is gone ({error.strerror})", "change to one that is there", plain=True)]
    text = f"{free_gb:.1f} GB free in this folder"
    if free_gb < 2:
        return [Finding("disk", State.WARNING, text, "a recording at 720p takes about 1 GB an hour; free some space")]
    return [Finding("disk", State.OK, text)]


def _packages() -> list[Finding]:
    return [Finding("packages", State.OK, ", ".join(f"{name} {version}" for name, version in versions().items()), plain=True)]


PROBES: tuple[Callable[[], list[Finding]], ...] = (
    _machine,
    _packages,
    _models,
    _cameras,
    lambda: [virtual_camera()],
    _encoders,
    _gpu,
    _heic,
    _srt,
    _folders,
    _disk,
)
"""In the order in which they are shown."""

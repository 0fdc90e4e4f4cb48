"""Encoders of pictures by name, and which one a sink takes: an NVIDIA GPU's where it opens, else the processor's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import av
from av.codec.hwaccel import HWAccel
from av.error import FFmpegError
from av.video.codeccontext import VideoCodecContext

from engines.registry import Registry
from rt.errors import OptionError, SinkError, SinkRetryError
from rt.frame import Place, VideoFormat

AUTO = "auto"

AUTO_ORDER = ("h264_nvenc", "libx264")
"""What ``auto`` tries. HEVC is for whoever asks: RTMP's servers and browsers do not all take it."""

log = logging.getLogger(__name__)

PROCESSOR, NVIDIA = 1, 2
"""As DLPack numbers kinds of devices."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """What an encoder registers. Options are FFmpeg's names; none of them has pictures that wait for later ones."""

    codec: str
    """``h264`` or ``hevc``."""
    live: Mapping[str, str]
    """For a stream of constant bitrate, which is given beside them."""
    file: Mapping[str, str]
    """For a recording."""
    quality: Mapping[str, str]
    """Beside ``file`` where no bitrate was asked for."""
    instead: str = ""
    """What is taken where the machine refuses; empty for one that every machine has."""
    reads: int = PROCESSOR
    """Whose memory it takes NV12 from without a copy of ours: the first number of a ``rt.frame.Place``."""


encoders: Registry[Encoder] = Registry("encoder")

_X264 = {"preset": "superfast", "tune": "zerolatency"}  # no B-frames, no lookahead, slices instead of frames on threads
_X265 = {**_X264, "x265-params": "log-level=error"}
_NVENC = {
    "preset": "p4",
    "tune": "ull",
    "zerolatency": "1",
    "delay": "0",  # by default as many pictures wait as there are surfaces
    "bf": "0",
    "rc-lookahead": "0",
    "forced-idr": "1",
}
encoders.register("libx264")(Encoder("h264", {**_X264, "sc_threshold": "0"}, _X264, {"crf": "20"}))
encoders.register("libx265")(Encoder("hevc", {**_X265, "x265-params": "log-level=error:scenecut=0"}, _X265, {"crf": "22"}))
_NVENC_LIVE = {**_NVENC, "rc": "cbr", "no-scenecut": "1", "strict_gop": "1"}  # key frames at their interval and nowhere else
encoders.register("h264_nvenc")(Encoder("h264", _NVENC_LIVE, {**_NVENC, "rc": "vbr"}, {"cq": "21"}, "libx264", NVIDIA))
encoders.register("hevc_nvenc")(Encoder("hevc", _NVENC_LIVE, {**_NVENC, "rc": "vbr"}, {"cq": "24"}, "libx265", NVIDIA))


def check_encoder(name: str) -> str:
    """``name``. Raises ``OptionError`` for one that nobody knows."""
    if name != AUTO and name not in list(encoders):
        raise OptionError(f"the encoder {name!r} was given; choose {AUTO}, {', '.join(sorted(encoders))}")
    return name


def on_gpu(place: Place | None) -> HWAccel | None:
    """What has an encoder take pictures that lie in ``place``; None where it needs nothing for that. CUDA's primary context, which is
    CuPy's too."""
    return HWAccel("cuda", device=str(place[1]), options={"primary_ctx": "1"}) if place is not None and place[0] == NVIDIA else None


def refusal(name: str, video: VideoFormat, options: Mapping[str, str], place: Place | None = None) -> str:
    """Why the encoder does not open here for pictures of ``video``; empty where it does. The one honest test is to open it once.

    ``place``: where its pictures are to lie; None for frames that FFmpeg allocates.
    """
    try:
        context = cast(VideoCodecContext, av.CodecContext.create(name, "w", on_gpu(place)))
        context.width, context.height, context.pix_fmt = video.width, video.height, "yuv420p" if place is None else "nv12"
        context.framerate, context.time_base = Fraction(video.fps).limit_denominator(1001), Fraction(1, 90_000)
        context.options = dict(options)
        context.open()
    except PermissionError:  # FFmpeg's word where there is no GPU, or no driver
        return "the machine refuses its GPU; is NVIDIA's driver installed?"
    except (FFmpegError, OSError, ValueError, NotImplementedError) as error:
        return f"it does not open ({getattr(error, 'strerror', None) or error})"
    return ""


Refusal = Callable[[str, VideoFormat, Mapping[str, str], Place | None], str]


@dataclass(slots=True)
class EncoderChoice:
    """Of one sink, on its thread."""

    asked: str
    refuses: Refusal = refusal
    """Tests give another one."""
    name: str = ""
    """What was chosen last."""
    rejected: dict[str, str] = field(default_factory=dict)
    """Encoder → why not."""
    places: frozenset[Place] = frozenset()
    """Where lanes leave composed pictures."""
    place: Place | None = None
    """Where the chosen one takes them as they lie, the host's pixels as well; None where it takes those alone. Any thread may read it."""
    in_place: int = 0
    """Pictures that it took as they lay."""
    _broken: dict[str, str] = field(default_factory=dict)

    def choose(self, video: VideoFormat, options_of: Callable[[Encoder], Mapping[str, str]]) -> Encoder:
        """The first that opens; asked at every opening, for a GPU may have its hands full at one time alone. Never fails: the
        processor's comes last."""
        self.rejected = dict(self._broken)
        *first, last = self._order()
        for name in first:
            options = options_of(encoders[name])
            why = self._broken.get(name) or self.refuses(name, video, options, None)
            if not why:
                return self._take(name, video, options)
            self.rejected[name] = why
        return self._take(last, video, options_of(encoders[last]))

    def error(self, what: str, error: OSError) -> SinkError:
        """For the chosen one, which failed at its opening or at work: a later try takes another, but for the last."""
        why = f"it broke ({error.strerror or error})"
        if not encoders[self.name].instead:
            return SinkError(f"{what}: {self.name} failed, {why}; reinstall PyAV (`pip install --force-reinstall av`)")
        self._broken[self.name] = why
        return SinkRetryError(f"{what} with {self.name}, {why}; the next try takes {encoders[self.name].instead}")

    def statistics(self) -> dict[str, Any]:
        if not self.name:
            return {}
        in_place = {"in_place": self.in_place} if self.places else {}
        return {"encoder": self.name, "encoders_refused": dict(self.rejected), **in_place}

    def _order(self) -> tuple[str, ...]:
        if self.asked == AUTO:
            return AUTO_ORDER
        instead = encoders[self.asked].instead
        return (self.asked, instead) if instead else (self.asked,)

    def _place_for(self, name: str, video: VideoFormat, options: Mapping[str, str]) -> Place | None:
        """The first place that it can read; with pictures of others the host is between."""
        readable = sorted(place for place in self.places if place[0] == encoders[name].reads)
        return next((place for place in readable if not self.refuses(name, video, options, place)), None)

    def _take(self, name: str, video: VideoFormat, options: Mapping[str, str]) -> Encoder:
        if self.name != name:
            said = "; ".join(f"not {other}: {why}" for other, why in self.rejected.items())
            is_surprise = self.asked not in (AUTO, name) or bool(self._broken)
            log.log(logging.WARNING if is_surprise else logging.INFO, "pictures are encoded by %s%s", name, f" ({said})" if said else "")
        self.name = name
        self.place = self._place_for(name, video, options)
        return encoders[name]

"""Pictures to H.264 or HEVC and sound to AAC in one container: what the stream and the recorder share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import av
import numpy as np
from av.container import OutputContainer
from av.error import FFmpegError
from av.video.frame import CudaContext
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

from rt.audio import RATE_HZ, AudioChunk
from rt.delivery import Delivery
from rt.frame import Frame, Place, PlanarPicture, VideoFormat
from rt.sinks.encoders import NVIDIA, EncoderChoice, on_gpu
from rt.sinks.timeline import SoundLine

AAC_SAMPLES = 1024
"""Samples in one AAC-LC frame (ISO/IEC 14496-3)."""

SOUND_BPS = 128_000

LEAD_SAMPLES = 4 * AAC_SAMPLES
"""Silence is laid this far ahead of the picture. The muxer lets a picture go once later sound waits behind it, the encoder keeps one
frame back and stamps its first packet one frame before zero, and a frame may be half full: less would hold each picture for a period."""


class EncoderError(OSError):
    """The encoder of pictures failed; the container and what it writes to may be well."""


class Matrix(NamedTuple):
    """How RGB becomes YUV, with the numbers that say so in the stream (ITU-T H.273)."""

    colorspace: Colorspace
    primaries: int
    transfer: int
    matrix: int
    number: int
    """As kernels know it."""


BT709 = Matrix(Colorspace.ITU709, 1, 1, 1, 709)
BT601 = Matrix(Colorspace.ITU601, 6, 6, 6, 601)
HD_HEIGHT = 720
"""Players that ignore tags take BT.709 from this height on, BT.601 below."""


def matrix_for(height: int) -> Matrix:
    return BT709 if height >= HD_HEIGHT else BT601


def even(video: VideoFormat) -> VideoFormat:
    """4:2:0 halves both sides: an odd last column or row is cropped."""
    return VideoFormat(video.width & ~1, video.height & ~1, video.fps)


def exact_rate(fps: float) -> Fraction:
    """29.97 → 30000/1001 and the like."""
    return Fraction(fps).limit_denominator(1001)


class ToYuv:
    """BGR full range → yuv420p limited range with the matrix that fits the size."""

    def __init__(self, video: VideoFormat) -> None:
        """``video``: even sides; larger pictures are cropped at the right and the bottom."""
        self._size = video
        self._matrix = matrix_for(video.height)
        self._reformatter = VideoReformatter()

    def __call__(self, pixels: np.ndarray) -> av.VideoFrame:
        """``pixels``: uint8 [H, W, 3] BGR; the picture returned owns its memory."""
        cropped = np.ascontiguousarray(pixels[: self._size.height, : self._size.width])
        return self._reformatter.reformat(
            av.VideoFrame.from_numpy_buffer(cropped, format="bgr24"),
            format="yuv420p",
            dst_colorspace=self._matrix.colorspace,
            dst_color_range=ColorRange.MPEG,
            threads=1,
        )


class Pictures:
    """What an encoder is given for a frame: what was composed, where it lies and as it is, or the host's pixels in its colours."""

    def __init__(self, video: VideoFormat, choice: EncoderChoice) -> None:
        """``video``: even sides. ``choice``: the encoder that was chosen; counts what it takes as it lies."""
        self._choice, place = choice, choice.place
        self._to_yuv = ToYuv(video)
        self._wanted = Delivery() if place is None else Delivery(False, matrix_for(video.height).number)
        self._place = place
        self._context = CudaContext(device_id=place[1]) if place is not None and place[0] == NVIDIA else None

    def wants(self, place: Place | None) -> Delivery:
        """See ``rt.delivery.Selective``."""
        return self._wanted if place is not None and place == self._place else Delivery()

    def __call__(self, frame: Frame) -> av.VideoFrame:
        if frame.composed is not None and self.wants(frame.composed.place).matrix == frame.composed.matrix:
            self._choice.in_place += 1
            return self._as_it_lies(frame.composed)
        return self._to_yuv(frame.pixels)

    def _as_it_lies(self, picture: PlanarPicture) -> av.VideoFrame:
        """Keeps hold of its memory, and so does the encoder while it works on it."""
        return av.VideoFrame.from_dlpack(picture.planes, format=picture.layout, cuda_context=self._context)


@dataclass(frozen=True, slots=True)
class Coding:
    """How pictures are encoded."""

    time_base: Fraction
    """Seconds: the unit of the pictures' time stamps."""
    key_frame_s: float
    bitrate_bps: int | None
    """None where ``options`` say the quality instead."""
    encoder: str = "libx264"
    options: dict[str, str] = field(default_factory=dict)
    """The encoder's own."""
    place: Place | None = None
    """Where pictures lie that it takes beside the host's."""


class Tracks:
    """One picture and one sound track of an open container, on one time line that begins with the first picture."""

    def __init__(self, container: OutputContainer, video: VideoFormat, coding: Coding) -> None:
        """Raises ``EncoderError`` where the encoder refuses, ``av.error.FFmpegError`` where the container does."""
        self.bytes = 0
        self._container = container
        self._video = self._add_pictures(video, coding)
        self._audio = container.add_stream("aac", rate=RATE_HZ, layout="stereo", bit_rate=SOUND_BPS)
        self._sound: SoundLine | None = None
        self._samples = 0

    def start(self, start_ns: int) -> None:
        """``start_ns``: capture time of the first picture, the zero of both tracks."""
        self._sound = SoundLine(start_ns)

    @property
    def lost_sound_s(self) -> float:
        return self._sound.lost / RATE_HZ if self._sound else 0.0

    def sound(self, chunks: Iterable[AudioChunk], picture_ns: int) -> None:
        """Writes what was heard, and silence up to a picture that is about to be written."""
        assert self._sound is not None, "start comes first"
        for chunk in chunks:
            self._sound.lay(chunk)
        self._sound.fill(picture_ns, LEAD_SAMPLES)
        while (samples := self._sound.take(AAC_SAMPLES)) is not None:
            self._mux_sound(self._audio.encode(self._audio_frame(samples)))

    def picture(self, picture: av.VideoFrame, pts: int) -> None:
        """``pts``: in units of the time base. Raises ``EncoderError`` where it is the encoder that fails."""
        picture.pts = pts
        picture.time_base = self._video.codec_context.time_base
        try:
            packets = self._video.encode(picture)
        except FFmpegError as error:
            raise EncoderError(error.errno, error.strerror) from error
        self._mux(packets)

    def finish(self) -> None:
        """Writes what the encoders still hold."""
        self._mux(self._video.encode())
        self._mux_sound(self._audio.encode())

    def _add_pictures(self, video: VideoFormat, coding: Coding) -> av.VideoStream:
        rate = exact_rate(video.fps)
        key_frames = str(max(1, round(coding.key_frame_s * rate)))
        options = {"g": key_frames, **coding.options}
        try:
            stream = self._container.add_stream(coding.encoder, rate=rate, options=options, hwaccel=on_gpu(coding.place))
        except FFmpegError as error:  # the GPU
            raise EncoderError(error.errno, error.strerror) from error
        assert isinstance(stream, av.VideoStream)
        matrix = matrix_for(video.height)
        stream.width, stream.height, stream.pix_fmt = video.width, video.height, "yuv420p" if coding.place is None else "nv12"
        context = stream.codec_context
        context.time_base = coding.time_base
        context.color_range = ColorRange.MPEG
        context.colorspace, context.color_primaries, context.color_trc = matrix.matrix, matrix.primaries, matrix.transfer
        if coding.bitrate_bps is not None:
            context.bit_rate = coding.bitrate_bps
        try:
            context.open()
        except FFmpegError as error:
            raise EncoderError(error.errno, error.strerror) from error
        return stream

    def _audio_frame(self, samples: np.ndarray) -> av.AudioFrame:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.T), format="fltp", layout="stereo")
        frame.rate, frame.time_base, frame.pts = RATE_HZ, Fraction(1, RATE_HZ), self._samples
        self._samples += len(samples)
        return frame

    def _mux_sound(self, packets: list[av.Packet]) -> None:
        """Without what lies before zero, the encoder's run-up: containers without edit lists would play all sound that much late."""
        self._mux([packet for packet in packets if packet.pts is None or packet.pts >= 0])

    def _mux(self, packets: list[av.Packet]) -> None:
        for packet in packets:
            self.bytes += packet.size
            self._container.mux_one(packet)

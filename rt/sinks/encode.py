"""H.264 pictures and AAC sound into a container: what the stream and the recorder share.

Both are laid on one time line, nanoseconds since the first picture was captured, so they are in sync by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace

from rt.audio import RATE_HZ, AudioChunk, AudioQueue
from rt.frame import VideoFormat

TIME_BASE = Fraction(1, 90_000)
"""Of pictures: the clock of MPEG-TS, finer than any container here."""

AAC_SAMPLES = 1024
"""Samples in a frame of AAC-LC."""

SOUND_AHEAD_NS = 40_000_000
"""The muxer interleaves by time: a picture leaves only when there is sound up to it. So silence is laid a little ahead."""

SOUND_LATE_NS = 150_000_000
"""Real sound that comes later than this is replaced by silence, or the pictures would wait for it."""

SEAM_SAMPLES = RATE_HZ // 25
"""Chunks whose stamps are this near to where the last one ended are joined without a gap: stamps jitter, sound does not."""


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How pictures are encoded."""

    bitrate_bps: int | None
    """None: constant quality by ``crf``."""
    crf: int = 20
    preset: str = "veryfast"
    tune: str = "zerolatency"
    key_every_s: float = 2.0
    audio_bps: int = 128_000
    extra: Mapping[str, str] = field(default_factory=dict)


class SoundTrack:
    """Chunks with stamps → an unbroken run of samples from time zero on; silence where there is none."""

    def __init__(self, zero_ns: int) -> None:
        self._zero_ns = zero_ns
        self._parts: list[np.ndarray] = []
        self._kept = 0
        self._next = 0  # sample number after what was laid
        self._real_until = 0  # sample number after the last real sound
        self._heard = False

    def lay(self, chunks: Iterable[AudioChunk], until_ns: int) -> None:
        """Adds ``chunks``, then silence where sound up to ``until_ns`` (since zero) is missing and will hardly come."""
        for chunk in chunks:
            self._add(chunk)
        patience_ns = -SOUND_LATE_NS if self._heard else SOUND_AHEAD_NS
        self._silence_to((until_ns + patience_ns) * RATE_HZ // 1_000_000_000)

    def frames(self) -> Iterable[tuple[int, np.ndarray]]:
        """(number of its first sample, float32 [2, 1024]) of every frame that is complete."""
        if self._kept < AAC_SAMPLES:
            return
        samples = np.concatenate(self._parts)
        start = self._next - self._kept
        whole = len(samples) // AAC_SAMPLES * AAC_SAMPLES
        self._parts, self._kept = [samples[whole:]], len(samples) - whole
        for first in range(0, whole, AAC_SAMPLES):
            yield start + first, np.ascontiguousarray(samples[first : first + AAC_SAMPLES].T)

    def _add(self, chunk: AudioChunk) -> None:
        first = round((chunk.captured_ns - self._zero_ns) * RATE_HZ / 1e9)
        samples = chunk.samples
        if abs(first - self._next) <= SEAM_SAMPLES and self._heard:
            first = self._next
        if first < self._next:  # what is already laid stays
            samples = samples[self._next - first :]
        self._silence_to(first)
        if len(samples):
            self._append(samples)
            self._heard = True

    def _silence_to(self, number: int) -> None:
        if number > self._next:
            self._append(np.zeros((number - self._next, 2), np.float32))

    def _append(self, samples: np.ndarray) -> None:
        self._parts.append(samples.astype(np.float32, copy=False))
        self._kept += len(samples)
        self._next += len(samples)


class Encoder:
    """Writes into an open PyAV container. One thread."""

    def __init__(self, container: Any, video: VideoFormat, options: EncoderOptions, audio: AudioQueue | None) -> None:
        """Adds the streams; the header is written by ``begin``. ``audio`` None means no sound track."""
        self._container = container
        self._audio = audio
        self._width, self._height = video.width // 2 * 2, video.height // 2 * 2
        self._matrix = Colorspace.ITU709 if self._height >= 720 else Colorspace.ITU601
        self._picture_stream = self._add_pictures(video, options)
        self._sound_stream = self._add_sound(options) if audio is not None else None
        self._sound: SoundTrack | None = None
        self._last_pts = -1
        self.nbytes = 0
        """Encoded so far."""

    def begin(self, zero_ns: int) -> None:
        """Writes the header: connects, where the container is an address. ``zero_ns``: the line's time that is zero in the file."""
        self._container.start_encoding()
        self.begin_sound(zero_ns)

    def begin_sound(self, zero_ns: int) -> None:
        """Says anew which of the line's times is zero, before the first picture."""
        self._sound = SoundTrack(zero_ns)

    def write(self, picture: av.VideoFrame, at_ns: int) -> None:
        """``picture`` from ``convert``; ``at_ns`` since zero, rising."""
        picture.pts = max(self._last_pts + 1, round(at_ns * TIME_BASE.denominator / 1e9))
        picture.time_base = TIME_BASE
        self._last_pts = picture.pts
        self._write_sound(at_ns)
        self._mux(self._picture_stream.encode(picture))

    def convert(self, pixels: np.ndarray) -> av.VideoFrame:
        """uint8 [H, W, 3] BGR full range → YUV 4:2:0 limited range, even size. Does not keep ``pixels``."""
        frame = av.VideoFrame.from_numpy_buffer(pixels[: self._height, : self._width], format="bgr24")
        return frame.reformat(
            format="yuv420p",
            src_color_range=ColorRange.JPEG,
            dst_colorspace=self._matrix,
            dst_color_range=ColorRange.MPEG,
        )

    def finish(self) -> None:
        """Flushes the encoders; the container is the caller's to close."""
        self._mux(self._picture_stream.encode(None))
        if self._sound_stream is not None:
            self._mux(self._sound_stream.encode(None))

    def _add_pictures(self, video: VideoFormat, options: EncoderOptions) -> Any:
        rate = Fraction(video.fps).limit_denominator(1001)
        stream = self._container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = self._width, self._height, "yuv420p"
        context = stream.codec_context
        context.time_base = TIME_BASE
        context.gop_size = max(1, round(video.fps * options.key_every_s))
        context.max_b_frames = 0
        context.thread_count = 2
        context.color_range = ColorRange.MPEG
        context.colorspace = 1 if self._matrix is Colorspace.ITU709 else 6  # as H.273 numbers them
        context.color_primaries = context.color_trc = 1
        rate_control = {"crf": str(options.crf)}
        if options.bitrate_bps is not None:
            context.bit_rate = options.bitrate_bps
            rate_control = {"maxrate": str(options.bitrate_bps), "bufsize": str(options.bitrate_bps)}
        keys = {"sc_threshold": "0", "forced-idr": "1"}
        context.options = {"preset": options.preset, "tune": options.tune, **keys, **rate_control, **options.extra}
        return stream

    def _add_sound(self, options: EncoderOptions) -> Any:
        stream = self._container.add_stream("aac", rate=RATE_HZ)
        stream.codec_context.layout = "stereo"
        stream.codec_context.format = "fltp"
        stream.codec_context.bit_rate = options.audio_bps
        return stream

    def _write_sound(self, until_ns: int) -> None:
        if self._sound_stream is None or self._audio is None or self._sound is None:
            return
        self._sound.lay(self._audio.take_all(), until_ns)
        for first, samples in self._sound.frames():
            frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="stereo")
            frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, first, Fraction(1, RATE_HZ)
            self._mux(self._sound_stream.encode(frame))

    def _mux(self, packets: Iterable[Any]) -> None:
        for packet in packets:
            self.nbytes += packet.size
            self._container.mux(packet)

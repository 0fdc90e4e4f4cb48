"""Any file or address that PyAV opens, played at its own pace by its own time stamps."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

import av
import av.error
import cv2
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

from rt.address import shown
from rt.audio import RATE_HZ, AudioBus, AudioChunk
from rt.capture import SourceKind, sources
from rt.capture.contract import Grab
from rt.capture.opening import Opening
from rt.capture.request import CaptureRequest
from rt.clock import Clock
from rt.errors import NoVideoError, SourceError, SourceLostError
from rt.frame import PlanarPicture, VideoFormat

log = logging.getLogger(__name__)

LIVE_SCHEMES = ("rtmp", "rtmps", "rtsp", "rtsps", "udp", "rtp", "srt", "tcp")
"""Addresses whose pictures come when they come: stamped on arrival, never held back."""

LOW_DELAY = {"flags": "low_delay", "probesize": "65536", "analyzeduration": "500000"}
"""FFmpeg's defaults wait up to five seconds for a live address before the first picture. Its ``nobuffer`` is left alone: it throws
away what was read for probing, and with it the key frame that the pictures up to the next one hang on."""

TIMEOUT_S = (8.0, 5.0)
"""How long an address may take to open, and to send something. FFmpeg's wait cannot be ended from outside (PyAV keeps its
interrupt to itself), so the second is also the longest that a silent address can hold up a stop."""

DECODER_THREADS = 2
"""Enough for 1080p; more would take the cores of the line. Live addresses get one: with frame threads a decoder hands out every
picture so many pictures late."""

TEXT_CODECS = {"ansi", "bintext", "xbin", "idf"}
"""FFmpeg paints a text file as a picture of its letters; nobody means that."""

SHORT_S = 0.5
"""A file that ends so much before its own header says was cut."""

LATE_NS = 500_000_000
"""A file that is read later than this starts a new count of time: the gap is seen once and not made up by racing."""

JITTER_MAX_NS = 100_000_000
"""Pictures of a live address come this much late at times. Sound keeps to the one that came soonest, so that it runs on evenly; beyond
this the time line itself has moved."""

ROTATIONS = {90: cv2.ROTATE_90_COUNTERCLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_CLOCKWISE}
"""Degrees counter-clockwise of a display matrix → what OpenCV calls it."""


class Reader(Protocol):
    """A stream of bytes; ``read`` returns none at its end."""

    def read(self, size: int) -> bytes: ...


ReaderMaker = Callable[[threading.Event], Reader]
"""``make(stop)``: the reader's waits end with ``stop``."""


class MediaSource:
    """A file, an address, or an open stream of bytes. Decodes on the capture thread, one picture ahead of its time."""

    def __init__(self, spec: str, request: CaptureRequest, clock: Clock, *, reader: ReaderMaker | None = None) -> None:
        """``reader`` makes the stream of bytes that is read instead of opening ``spec``; ``spec`` is then its name in messages."""
        self._spec = spec = place_of(spec)
        self._shown = shown(spec)
        self._request = request
        self._clock = clock
        self._reader = reader
        self._stop = threading.Event()
        self._container: Any = None
        self._frames: Iterator[av.VideoFrame] = iter(())
        self._frame: av.VideoFrame | None = None
        self._video: VideoFormat | None = None
        self._audio_bus: AudioBus | None = None
        self._zero_ns = 0  # line time of media time 0
        self._media_ns = 0
        self._early: list[tuple[int, np.ndarray]] | None = []  # sound met before the first picture; None once the zero is known
        self._reformatter = VideoReformatter()  # keeps its tables from picture to picture
        self._first_ready = False
        self._last_duration_ns = 0
        self._decoded_total = 0
        self._missed = 0
        self._damaged = 0
        self._broke = False
        scheme = re.match(r"([a-z]+)://", spec, re.IGNORECASE)
        self.is_live = reader is not None or (scheme is not None and scheme[1].lower() in LIVE_SCHEMES)
        self.live = request.realtime or self.is_live

    # --- Source ---

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._stop, self._audio_bus = stop, audio
        # a time line begins now, the first or one after an outage
        self._early, self._media_ns, self._decoded_total, self._broke = [], 0, 0, False
        self._container = self._open_container()
        if not self._container.streams.video:
            raise NoVideoError(f"{self._shown} has no video stream; give a file with pictures")
        if self._container.streams.video[0].codec_context.name in TEXT_CODECS:
            raise SourceError(f"{self._shown} is a text file; give a video file, an address, a camera or synthetic:")
        self._set_threads()
        self._frames = self._play()
        try:
            self._frame = next(self._frames)
        except StopIteration:
            raise SourceError(f"{self._shown} holds no picture that can be decoded; give another file") from None
        self._first_ready = True
        width, height = self._shown_size(self._frame)
        self._video = VideoFormat(width, height, self._rate())
        self._zero_ns = self._clock.now_ns() - self._media_ns
        early, self._early = self._early or [], None
        for media_ns, samples in early:
            audio.publish(AudioChunk(samples, self._zero_ns + media_ns))
        return self._video

    def grab(self) -> Grab | None:
        if not self._first_ready:
            self._frame = next(self._frames, None)
        self._first_ready = False
        if self._stop.is_set():
            return None
        if self._frame is None:
            if self._may_come_back:
                raise SourceLostError(f"{self._shown} went off the air; check whoever sends it, and the network")
            return None
        if not self.live:
            return Grab(self._zero_ns + self._media_ns, self._media_ns)
        return self._grab_live() if self.is_live else self._grab_when_due()

    def retrieve(self, into: np.ndarray) -> None:
        assert self._frame is not None
        turn = _rotation(self._frame)
        height, width = into.shape[:2]
        if turn in (90, 270):
            height, width = width, height
        picture = _to_bgr(self._reformatter, self._frame, width, height)
        if turn:
            cv2.rotate(picture, ROTATIONS[turn], dst=into)
        else:
            np.copyto(into, picture)

    def _planar(self) -> PlanarPicture | None:
        """The last picture as ``rt.capture.contract.Decodes`` has it, wherever it lies."""
        frame, matrix = self._frame, None if self._frame is None else STANDARDS.get(_matrix(self._frame))
        layout = None if frame is None else LAYOUTS.get((frame.sw_format or frame.format).name)
        if frame is None or layout is None or matrix is None or _rotation(frame):
            return None
        return PlanarPicture(layout, (frame.planes[0], frame.planes[1]), matrix, _range(frame) is ColorRange.JPEG)

    def close(self) -> None:
        self._frame = None
        self._frames = iter(())
        if self._container is not None:
            self._container.close()
            self._container = None

    def describe(self) -> dict[str, Any]:
        granted = "" if self._video is None else f"{self._video}"
        return {"spec": self._shown, "granted": granted, "missed": self._missed, "damaged": self._damaged}

    @property
    def _may_come_back(self) -> bool:
        """An address that is on the air, and any that broke; bytes that were handed to us end once."""
        is_address = self._reader is None and "://" in self._spec
        return self._request.reconnect and is_address and (self.is_live or self._broke)

    # --- pace ---

    def _grab_when_due(self) -> Grab | None:
        due_ns = self._zero_ns + self._media_ns
        late_ns = self._clock.now_ns() - due_ns
        if late_ns > LATE_NS:
            log.warning("%s was read %.1f s late; going on from here", self._shown, late_ns / 1e9)
            self._zero_ns += late_ns
            due_ns += late_ns
        if not self._clock.wait_until(due_ns, self._stop):
            return None
        return Grab(due_ns, self._media_ns)

    def _grab_live(self) -> Grab:
        now_ns = self._clock.now_ns()
        zero_ns = now_ns - self._media_ns
        if not 0 <= zero_ns - self._zero_ns < JITTER_MAX_NS:
            self._zero_ns = zero_ns
        return Grab(now_ns, self._media_ns)

    # --- decoding ---

    def _open_container(self) -> Any:
        if self._reader is None and "://" not in self._spec:
            _check_file(Path(self._spec))
        place = self._reader(self._stop) if self._reader else self._spec
        options = LOW_DELAY if self.is_live else {}
        opened = partial(self._open_media, place, options=dict(options), timeout=None if self._reader else TIMEOUT_S)
        try:
            if self._reader is not None or "://" not in self._spec:
                return opened()
            container = Opening(opened).wait(self._stop)
            if container is None:
                raise SourceError(f"{self._shown} was not opened: it was called off; start again to open it")
            return container
        except av.error.FFmpegError as error:
            raise SourceError(self._cannot_open(error)) from error

    def _open_media(self, place: Any, **how: Any) -> Any:
        """Raises ``av.error.FFmpegError``."""
        return av.open(place, "r", **how)

    def _cannot_open(self, error: av.error.FFmpegError) -> str:
        if "://" in self._spec:
            why = f"nothing came within {TIMEOUT_S[0]:g} s" if isinstance(error, av.error.ExitError) else error.strerror
            return f"{self._shown} cannot be opened: {why}; check the address and that it is on the air"
        return f"{self._shown} is no video that can be read: {error.strerror}; give a video file, an address, a camera or synthetic:"

    def _set_threads(self) -> None:
        """Before the first packet: an open decoder keeps its threads."""
        video = self._container.streams.video[0]
        video.thread_type, video.codec_context.thread_count = ("SLICE", 1) if self.is_live else ("AUTO", DECODER_THREADS)

    def _play(self) -> Iterator[av.VideoFrame]:
        """Pictures in order of presentation; sets ``_media_ns`` of each. Publishes the sound on the way."""
        offset_ns = 0
        while True:
            before = self._decoded_total
            yield from self._play_once(offset_ns)
            self._warn_if_short(self._media_ns - offset_ns)
            if not self._request.loop or self._stop.is_set() or self._decoded_total == before or self.is_live:
                return
            offset_ns = self._media_ns + self._last_duration_ns
            self._container.close()  # opened anew: after a seek to 0 an MPEG program stream lacks its first pictures
            self._container = self._open_container()
            self._set_threads()

    def _play_once(self, offset_ns: int) -> Iterator[av.VideoFrame]:
        resampler = av.AudioResampler(format="flt", layout="stereo", rate=RATE_HZ)
        start_ns: int | None = None
        for frame in self._decoded([*self._container.streams.video[:1], *self._container.streams.audio[:1]]):
            if self._stop.is_set():
                return
            if frame.pts is None:  # a bare elementary stream: one picture after the other
                media_ns = offset_ns if start_ns is None else self._media_ns + self._last_duration_ns
                start_ns = start_ns or 0
            else:
                at_ns = round(frame.pts * frame.time_base * 1_000_000_000)
                start_ns = at_ns if start_ns is None else start_ns
                media_ns = at_ns - start_ns + offset_ns
            if isinstance(frame, av.AudioFrame):
                self._publish(resampler, frame, media_ns)
                continue
            self._media_ns = max(media_ns, self._media_ns)
            self._last_duration_ns = self._duration_ns(frame)
            self._decoded_total += 1
            yield frame

    def _decoded(self, streams: list[Any]) -> Iterator[Any]:
        """Frames of all ``streams`` as the file holds them, to the last one that the decoders hold back."""
        try:
            for packet in self._container.demux(streams):
                yield from self._decode(packet.decode)
        except av.error.EOFError:
            return
        except av.error.FFmpegError as error:
            if not self._decoded_total:
                raise SourceError(self._cannot_open(error)) from error
            log.warning("%s ends early: %s", self._shown, error.strerror)
            self._broke = True
            for stream in streams:
                for frame in self._decode(stream.decode):
                    frame.time_base = frame.time_base or stream.time_base  # what comes of no packet has none
                    yield frame

    def _decode(self, decode: Callable[[], list[Any]]) -> list[Any]:
        try:
            return list(decode())
        except av.error.EOFError:
            return []
        except av.error.FFmpegError as error:
            self._damaged += 1
            log.info("a damaged packet of %s was skipped: %s", self._shown, error.strerror)
            return []

    def _publish(self, resampler: av.AudioResampler, frame: av.AudioFrame, media_ns: int) -> None:
        assert self._audio_bus is not None
        for converted in resampler.resample(frame):
            samples = converted.to_ndarray().reshape(-1, 2)
            if self._early is not None:
                self._early.append((media_ns, samples))
            else:
                self._audio_bus.publish(AudioChunk(samples, self._zero_ns + media_ns))
            media_ns += round(len(samples) * 1e9 / RATE_HZ)

    def _duration_ns(self, frame: av.VideoFrame) -> int:
        if frame.duration and frame.time_base:
            return round(frame.duration * frame.time_base * 1_000_000_000)
        return round(1e9 / self._rate())

    def _warn_if_short(self, played_ns: int) -> None:
        stream = self._container.streams.video[0]
        if stream.duration is None or self._stop.is_set():
            return
        promised_s = float(stream.duration * stream.time_base)
        if played_ns / 1e9 + self._last_duration_ns / 1e9 < promised_s - SHORT_S:
            log.warning("%s ends after %.1f s of %.1f s: the file was cut", self._shown, played_ns / 1e9, promised_s)

    def _rate(self) -> float:
        stream = self._container.streams.video[0]
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        return rate if 0 < rate <= 1000 else 25.0

    @staticmethod
    def _shown_size(frame: av.VideoFrame) -> tuple[int, int]:
        turned = _rotation(frame) in (90, 270)
        return (frame.height, frame.width) if turned else (frame.width, frame.height)


def place_of(spec: str) -> str:
    """``file:`` addresses, as other programs hand them over, are paths; all else is as it is."""
    if spec.lower().startswith("file://"):
        return url2pathname(urlsplit(spec).path)
    return spec[len("file:") :] if spec.lower().startswith("file:") else spec


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise SourceError(f"the input {path} is a folder; give a video file, an address, a camera or synthetic:")
    if not path.exists():
        raise SourceError(
            f"the input {path} does not exist; give a video file, an address, a camera (`ffrt cameras` lists them) or synthetic:"
        )
    if path.stat().st_size == 0:
        raise SourceError(f"the input {path} is empty (0 bytes); give the original file")


def _rotation(frame: av.VideoFrame) -> int:
    """Degrees counter-clockwise in {0, 90, 180, 270} by which the picture is to be turned before it is shown."""
    return round(frame.rotation / 90) * 90 % 360


def _to_bgr(reformatter: VideoReformatter, frame: av.VideoFrame, width: int, height: int) -> np.ndarray:
    """uint8 [height, width, 3] BGR full range, by the frame's own matrix and range; a view of memory that lives as long as it."""
    of_colour: dict[str, Any] = {}
    if not frame.format.is_rgb and not frame.format.has_palette:
        of_colour = {
            "src_colorspace": _matrix(frame),
            "src_color_range": _range(frame),
            "dst_color_range": ColorRange.JPEG,
        }
    plane = reformatter.reformat(frame, width, height, "bgr24", **of_colour).planes[0]
    rows = np.frombuffer(cast(Any, plane), np.uint8).reshape(height, plane.line_size)
    return np.lib.stride_tricks.as_strided(rows, (height, width, 3), (plane.line_size, 3, 1))


LAYOUTS = {"nv12": "nv12", "p010le": "p010"}
"""FFmpeg's name of what decoders on a device leave → ours."""

STANDARDS = {Colorspace.ITU709: 709, Colorspace.ITU601: 601, Colorspace.SMPTE170M: 601}
"""Those that the kernels know."""

MATRICES = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.SMPTE170M,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
    10: Colorspace.BT2020,
}
"""Matrix coefficients of ITU-T H.273, table 4 → what the converter calls them."""


def _matrix(frame: av.VideoFrame) -> Colorspace:
    """The frame's own matrix; where it names none, what players take: BT.709 from 720 rows on, BT.601 below."""
    guessed = Colorspace.ITU709 if min(frame.height, frame.width) >= 720 else Colorspace.ITU601
    return MATRICES.get(int(frame.colorspace), guessed)


def _range(frame: av.VideoFrame) -> ColorRange:
    full = frame.format.name.startswith("yuvj") or int(frame.color_range) == int(ColorRange.JPEG)
    return ColorRange.JPEG if full else ColorRange.MPEG


sources.register("media")(SourceKind(lambda spec: True, MediaSource, rank=2))

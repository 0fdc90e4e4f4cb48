"""``--record FILE``: loses no frame, and the file stays playable when the process is killed at any moment."""

from __future__ import annotations

import contextlib
import errno
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.error import FFmpegError

from rt.audio import AudioQueue
from rt.delivery import Delivery
from rt.errors import SinkError
from rt.frame import Frame, Place, VideoFormat
from rt.sinks.encode import Coding, EncoderError, Pictures, Tracks, even
from rt.sinks.encoders import AUTO, Encoder, EncoderChoice, check_encoder

FRAGMENT_US = "500000"
"""A killed process loses at most the fragment it was filling: half a second."""

_FRAGMENTED = {"movflags": "empty_moov+default_base_moof", "frag_duration": FRAGMENT_US, "flush_packets": "1"}
CONTAINERS: dict[str, tuple[str, dict[str, str]]] = {
    ".mp4": ("mp4", _FRAGMENTED),
    ".mov": ("mov", _FRAGMENTED),
    ".mkv": ("matroska", {"cluster_time_limit": "500", "flush_packets": "1"}),
    ".ts": ("mpegts", {"flush_packets": "1"}),
}
"""File ending → FFmpeg's name of the container, and what makes it playable without its end."""

TIME_BASE = Fraction(1, 90_000)
"""Fine enough for any camera's stamps; MPEG-TS has no other."""


class RecorderSink:
    """H.264 (or HEVC) and AAC with the pictures' true capture times (variable frame rate)."""

    name = "record"
    lossless = True

    def __init__(
        self, path: Path, audio: AudioQueue, *, bitrate_bps: int | None = None, overwrite: bool = False, encoder: str = AUTO
    ) -> None:
        """``bitrate_bps``: None keeps the quality constant instead. ``encoder``: see ``rt.sinks.encoders``.

        Raises ``SinkError`` for a path that cannot be recorded to, ``OptionError`` for an encoder that nobody knows.
        """
        _check_path(path, overwrite)
        self._choice = EncoderChoice(check_encoder(encoder))
        self._path = path
        self._audio = audio
        self._bitrate_bps = bitrate_bps
        self._container: av.container.OutputContainer | None = None
        self._tracks: Tracks | None = None
        self._pictures: Pictures | None = None
        self._start_ns: int | None = None
        self._last_pts = -1
        self._broken = False

    def open(self, video: VideoFormat) -> None:
        size = even(video)
        form, options = CONTAINERS[self._path.suffix.lower()]
        try:
            self._container = av.open(str(self._path), "w", format=form, container_options=options)
            self._tracks = Tracks(self._container, size, self._coding(size))
            self._container.start_encoding()
            self._pictures = Pictures(size, self._choice)
        except EncoderError as error:
            self._broken = True
            raise self._choice.error(f"cannot record to {self._path}", error) from error
        except (FFmpegError, OSError) as error:
            self._broken = True
            raise self._explained(error) from error

    def write(self, frame: Frame) -> None:
        assert self._tracks is not None, "open comes first"
        assert self._pictures is not None
        if self._start_ns is None:
            self._start_ns = frame.captured_ns
            self._tracks.start(frame.captured_ns)
        try:
            self._tracks.sound(self._audio.take_all(), frame.captured_ns)
            self._tracks.picture(self._pictures(frame), self._pts(frame.captured_ns))
        except (FFmpegError, OSError) as error:
            self._broken = True
            raise self._explained(error) from error

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """A recording needs no repeated pictures."""

    def close(self) -> None:
        """Also after an error: what was written so far stays playable. A file in which there is no picture is removed."""
        container, self._container, self._pictures = self._container, None, None
        if container is None:
            return
        with contextlib.suppress(FFmpegError, OSError) if self._broken else contextlib.nullcontext():
            try:
                if self._tracks is not None and not self._broken:
                    self._tracks.finish()
            finally:
                container.close()
        if self._start_ns is None:  # no picture ever came: a file without one is none that a player opens
            self._path.unlink(missing_ok=True)

    def lie_in(self, places: frozenset[Place]) -> None:
        self._choice.places = places

    def wants(self, place: Place | None) -> Delivery:
        pictures = self._pictures
        return Delivery() if pictures is None else pictures.wants(place)

    def statistics(self) -> dict[str, Any]:
        tracks = self._tracks
        return {
            "path": str(self._path),
            "bytes": tracks.bytes if tracks else 0,
            "lost_sound_s": round(tracks.lost_sound_s, 3) if tracks else 0.0,
            **self._choice.statistics(),
        }

    def _pts(self, captured_ns: int) -> int:
        """Two pictures never share a time stamp: the encoder would refuse the second."""
        assert self._start_ns is not None
        exact = round((captured_ns - self._start_ns) * TIME_BASE.denominator / 1e9)
        self._last_pts = max(exact, self._last_pts + 1)
        return self._last_pts

    def _coding(self, video: VideoFormat) -> Coding:
        def options(encoder: Encoder) -> dict[str, str]:
            return {**encoder.file, **({} if self._bitrate_bps else encoder.quality)}

        chosen = self._choice.choose(video, options)
        return Coding(TIME_BASE, 2.0, self._bitrate_bps, self._choice.name, options(chosen), self._choice.place)

    def _explained(self, error: FFmpegError | OSError) -> SinkError:
        if error.errno == errno.ENOSPC:
            return SinkError(f"recording to {self._path} ended: the disk is full; what was recorded until now stays playable")
        return SinkError(f"cannot record to {self._path}: {error.strerror}; check the folder's rights and the disk")


def _check_path(path: Path, overwrite: bool) -> None:
    if path.suffix.lower() not in CONTAINERS:
        raise SinkError(f"cannot record to {path}: its ending is {path.suffix!r}; use one of {', '.join(CONTAINERS)}")
    if not path.parent.is_dir():
        raise SinkError(f"cannot record to {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise SinkError(f"cannot record to {path}: it is a folder; give a file name")
    if path.exists() and not overwrite:
        raise SinkError(f"cannot record to {path}: the file exists; give another name, or --overwrite to replace it")

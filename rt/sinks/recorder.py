"""Records to a file that is playable at any moment, also when the program is killed."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import av
import av.error

from rt.audio import AudioQueue
from rt.errors import SinkError
from rt.frame import Frame, VideoFormat
from rt.sinks.encode import Encoder, EncoderOptions

log = logging.getLogger(__name__)

_FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "frag_duration": "500000", "flush_packets": "1"}
"""A fragment each half second: no more than that is lost with the process. The time is in microseconds."""

CONTAINERS: dict[str, tuple[str, dict[str, str]]] = {
    ".mp4": ("mp4", _FRAGMENTS),
    ".mov": ("mov", _FRAGMENTS),
    ".mkv": ("matroska", {"cluster_time_limit": "500", "flush_packets": "1"}),
    ".ts": ("mpegts", {"flush_packets": "1"}),
}
"""Ending → FFmpeg's format and its options."""


class RecorderSink:
    """Loses no frame that it was given; keeps the true time of each."""

    name = "record"
    lossless = True

    def __init__(self, path: Path, audio: AudioQueue, *, overwrite: bool = False, bitrate_bps: int | None = None) -> None:
        """Raises ``SinkError`` for a name that cannot be recorded to. A file that exists is kept unless ``overwrite``."""
        if path.suffix.lower() not in CONTAINERS:
            raise SinkError(f"cannot record to {path}: the ending says the format, and it must be one of {', '.join(CONTAINERS)}")
        if path.exists() and not overwrite:
            raise SinkError(f"{path} exists and is kept; give another name, or --overwrite")
        if not path.parent.is_dir():
            raise SinkError(f"cannot record to {path}: the folder {path.parent} does not exist; make it first")
        self._path = path
        self._audio = audio
        self._options = EncoderOptions(bitrate_bps, preset="superfast", key_every_s=1.0)
        self._container: Any = None
        self._encoder: Encoder | None = None
        self._zero_ns: int | None = None
        self._written = 0

    def open(self, video: VideoFormat) -> None:
        format_name, options = CONTAINERS[self._path.suffix.lower()]
        try:
            self._container = av.open(str(self._path), "w", format=format_name, options=dict(options))
            self._encoder = Encoder(self._container, video, self._options, self._audio)
        except (av.error.FFmpegError, OSError) as error:
            raise self._failed(error) from error

    def write(self, frame: Frame) -> None:
        assert self._encoder is not None
        try:
            if self._zero_ns is None:
                self._zero_ns = frame.captured_ns
                self._encoder.begin(self._zero_ns)
            self._encoder.write(self._encoder.convert(frame.pixels), frame.captured_ns - self._zero_ns)
        except (av.error.FFmpegError, OSError) as error:
            raise self._failed(error) from error

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called: a recording has no rate to keep."""

    def close(self) -> None:
        encoder, self._encoder = self._encoder, None
        container, self._container = self._container, None
        if container is None:
            return
        try:
            if encoder is not None and self._zero_ns is not None:
                encoder.finish()
                self._written = encoder.nbytes
            container.close()
        except (av.error.FFmpegError, OSError) as error:  # what is on disk stays playable
            log.warning("%s", self._failed(error))

    def statistics(self) -> dict[str, Any]:
        encoder = self._encoder
        return {"file": str(self._path), "nbytes": encoder.nbytes if encoder else self._written}

    def _failed(self, error: OSError) -> SinkError:
        if error.errno == errno.ENOSPC:
            return SinkError(f"recording to {self._path} ended: the disk is full; what was recorded is kept, free some space")
        return SinkError(f"cannot record to {self._path}: {error.strerror or error}; give a file in a folder that can be written")

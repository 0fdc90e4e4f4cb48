"""Sends the picture to a server: RTMP(S), SRT, MPEG-TS over UDP."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
from typing import Any

import av
import av.error

from rt.audio import AudioQueue
from rt.clock import Clock
from rt.errors import OptionError, SinkError, SinkRetryError
from rt.frame import Frame, VideoFormat
from rt.sinks.encode import Encoder, EncoderOptions

log = logging.getLogger(__name__)

FORMATS = {"rtmp": "flv", "rtmps": "flv", "udp": "mpegts", "srt": "mpegts", "tcp": "mpegts"}
"""Scheme → FFmpeg's container."""

TIMEOUT_S = (5.0, 5.0)
"""A server that does not answer, or takes nothing, for so long counts as gone."""

REPEAT_AFTER_NS = 150_000_000
"""When the next picture is so late, the last one is shown again: platforms want a constant rate."""

BITS_PER_PIXEL = 0.09
"""Default rate: 2.5 Mbit/s for 1280x720 at 30 fps, which is what Twitch and YouTube recommend."""

REFUSED_FOR_GOOD = (av.error.ProtocolNotFoundError, av.error.MuxerNotFoundError, av.error.EncoderNotFoundError)
"""Errors that no later try can mend."""


def without_key(url: str) -> str:
    """``rtmp://host/app/***``: the last part of a path, user, password and query are secrets."""
    match = re.match(r"([a-z][a-z0-9+.-]*://)(?:[^/@]*@)?([^/?]*)([^?]*)(\?.*)?$", url, re.I)
    if match is None:
        return "***"
    scheme, host, path, query = match.groups()
    folder, _, key = path.rpartition("/")
    return f"{scheme}{host}{folder}{'/***' if key else ''}{'?***' if query else ''}"


class StreamSink:
    """Constant frame rate, a key frame every two seconds, sound or silence. Reconnecting is the runner's task."""

    lossless = False

    def __init__(self, url: str, audio: AudioQueue, clock: Clock, *, name: str = "stream", bitrate_bps: int | None = None) -> None:
        """Raises ``OptionError`` for an address that cannot be streamed to."""
        scheme = url.partition("://")[0].lower()
        if scheme not in FORMATS or "://" not in url:
            raise OptionError(f"cannot stream to {without_key(url)}: the address must begin with {', '.join(f'{s}://' for s in FORMATS)}")
        self.name = name
        self._url = url
        self._scheme = scheme
        self._audio = audio
        self._clock = clock
        self._bitrate_bps = bitrate_bps
        self._video: VideoFormat | None = None
        self._container: Any = None
        self._relay: subprocess.Popen[bytes] | None = None
        self._encoder: Encoder | None = None
        self._picture: av.VideoFrame | None = None
        self._zero_ns: int | None = None
        self._index = -1  # of the last picture sent, in frame periods since zero
        self._sent = 0
        self._repeated = 0
        self._skipped = 0
        self._nbytes = 0

    def open(self, video: VideoFormat) -> None:
        self._video = video
        self._zero_ns, self._index, self._picture = None, -1, None
        bitrate = self._bitrate_bps or max(300_000, round(video.width * video.height * video.fps * BITS_PER_PIXEL))
        options = EncoderOptions(bitrate, preset="superfast")
        self._audio.take_all()
        try:
            self._container = self._open_container()
            self._encoder = Encoder(self._container, video, options, self._audio)
            self._encoder.begin(self._clock.now_ns())
        except (av.error.FFmpegError, OSError) as error:
            raise self._failed(error) from error

    def write(self, frame: Frame) -> None:
        assert self._encoder is not None and self._video is not None
        if self._zero_ns is None:
            self._zero_ns = frame.captured_ns
            self._encoder.begin_sound(self._zero_ns)
        index = round((frame.captured_ns - self._zero_ns) / self._video.period_ns)
        if index <= self._index:
            self._skipped += 1  # two pictures in one period: the first was sent
            return
        self._fill_to(index)
        self._picture = self._encoder.convert(frame.pixels)
        self._send(index)

    def deadline_ns(self) -> int | None:
        if self._zero_ns is None or self._video is None:
            return None
        return self._zero_ns + (self._index + 1) * self._video.period_ns + REPEAT_AFTER_NS

    def idle(self, now_ns: int) -> None:
        self._repeated += 1
        self._send(self._index + 1)

    def close(self) -> None:
        encoder, self._encoder = self._encoder, None
        container, self._container = self._container, None
        try:
            if encoder is not None and self._zero_ns is not None:
                encoder.finish()
        except (av.error.FFmpegError, OSError) as error:
            log.info("the end of the stream to %s was not sent: %s", without_key(self._url), error)
        try:
            if container is not None:
                container.close()
        except (av.error.FFmpegError, OSError) as error:
            log.info("the stream to %s was already broken: %s", without_key(self._url), error)
        self._close_relay()

    def statistics(self) -> dict[str, Any]:
        return {
            "url": without_key(self._url),
            "sent": self._sent,
            "repeated": self._repeated,
            "skipped": self._skipped,
            "nbytes": self._nbytes,
        }

    # --- sink thread ---

    def _fill_to(self, index: int) -> None:
        """Sends the last picture again for the periods in which none came."""
        while self._picture is not None and self._index + 1 < index:
            self._repeated += 1
            self._send(self._index + 1)

    def _send(self, index: int) -> None:
        assert self._encoder is not None and self._video is not None and self._picture is not None
        try:
            self._encoder.write(self._picture, index * self._video.period_ns)
        except (av.error.FFmpegError, OSError) as error:
            raise self._failed(error) from error
        self._index = index
        self._sent += 1
        self._nbytes = self._encoder.nbytes

    def _open_container(self) -> Any:
        options = {"flush_packets": "1"}
        if self._scheme == "srt" and not _has_protocol("srt"):
            return av.open(self._start_relay(), "w", format="mpegts", options=options)
        if FORMATS[self._scheme] == "flv":
            options["flvflags"] = "no_duration_filesize"
        return av.open(self._url, "w", format=FORMATS[self._scheme], options=options, timeout=TIMEOUT_S)

    def _start_relay(self) -> Any:
        """PyAV's FFmpeg has no SRT; the system's usually has, and copies what it is given."""
        program = shutil.which("ffmpeg")
        if program is None:
            raise SinkError(f"cannot stream to {without_key(self._url)}: SRT needs the `ffmpeg` program; install it, or use RTMP")
        command = [program, "-loglevel", "error", "-f", "mpegts", "-i", "-", "-c", "copy", "-f", "mpegts", self._url]
        self._relay = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return self._relay.stdin

    def _close_relay(self) -> None:
        relay, self._relay = self._relay, None
        if relay is None:
            return
        if relay.stdin is not None:
            try:
                relay.stdin.close()
            except OSError as error:
                log.info("the relay to %s had ended: %s", without_key(self._url), error)
        try:
            relay.wait(TIMEOUT_S[0])
        except subprocess.TimeoutExpired:
            relay.kill()
            relay.wait()

    def _failed(self, error: OSError) -> SinkError:
        where = without_key(self._url)
        if isinstance(error, REFUSED_FOR_GOOD):
            return SinkError(f"cannot stream to {where}: {error.strerror}; use an rtmp:// or udp:// address")
        return SinkRetryError(f"the stream to {where} broke: {error.strerror or error}; check the address, the key and that the server runs")


def _has_protocol(name: str) -> bool:
    """Asks by opening: PyAV offers no list. Nothing is sent, since a write that was not begun does not connect."""
    try:
        av.open(f"{name}://127.0.0.1:1", "r", timeout=(0.01, 0.01)).close()
    except av.error.ProtocolNotFoundError:
        return False
    except (av.error.FFmpegError, OSError):
        return True
    return True

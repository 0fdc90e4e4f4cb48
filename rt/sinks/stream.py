"""``--rtmp URL``: a live stream over RTMP, SRT or UDP, with constant frame rate and sound, as streaming platforms want it."""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Any

import av
from av.container import OutputContainer
from av.error import FFmpegError

from rt.address import shown
from rt.audio import AudioQueue
from rt.clock import Clock
from rt.delivery import Delivery
from rt.errors import OptionError, SinkError, SinkRetryError
from rt.frame import Frame, Place, VideoFormat
from rt.sinks.encode import Coding, EncoderError, Pictures, Tracks, even, exact_rate
from rt.sinks.encoders import AUTO, Encoder, EncoderChoice, check_encoder, encoders
from rt.sinks.timeline import ConstantRate
from rt.sinks.transport import Writer, transport_for

TIMEOUT_S = 5.0
"""A server that takes nothing for so long counts as gone."""

BITS_PER_PIXEL = 0.09
"""Default bitrate: 2500 kbit/s for 1280x720 at 30 fps, 5600 for 1920x1080, what Twitch and YouTube advise for these."""

PATIENCE_NS = 100_000_000
"""How late a picture may be, beyond its usual age and two periods, before the one before it is repeated for it."""

_MUXER = {"flush_packets": "1", "max_interleave_delta": "1000"}  # microseconds: late sound holds a picture for one period
CONTAINER_OPTIONS = {"flv": {**_MUXER, "flvflags": "no_duration_filesize"}, "mpegts": _MUXER}


def default_bitrate_bps(video: VideoFormat) -> int:
    """By size and rate, rounded to 100 kbit/s, at least 400."""
    return max(400_000, round(video.width * video.height * video.fps * BITS_PER_PIXEL / 100_000) * 100_000)


class StreamSink:
    """H.264 (or HEVC, where it is asked for) without delay in the encoder, and AAC: silence while no sound comes."""

    lossless = False

    def __init__(
        self,
        url: str,
        audio: AudioQueue,
        clock: Clock,
        *,
        name: str = "rtmp",
        bitrate_bps: int | None = None,
        encoder: str = AUTO,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """``bitrate_bps``: None chooses by size and rate. ``encoder``: see ``rt.sinks.encoders``. Raises ``SinkError`` for an address that
        means nothing, ``OptionError`` for an encoder that does, or that does not go there."""
        self.name = name
        self._transport, self._url = transport_for(url)
        self._shown_url = shown(url)
        self._audio = audio
        self._clock = clock
        self._bitrate_bps = bitrate_bps
        self._choice = EncoderChoice(check_encoder(encoder))
        if self._transport.container == "flv" and encoder != AUTO and encoders[encoder].codec != "h264":
            raise OptionError(f"{encoder} was asked for, and few servers take HEVC over RTMP; choose auto, libx264 or h264_nvenc, or SRT")
        self._timeout_s = timeout_s
        self._writer: Writer | None = None
        self._container: OutputContainer | None = None
        self._tracks: Tracks | None = None
        self._pictures: Pictures | None = None
        self._video: VideoFormat | None = None
        self._rate: ConstantRate | None = None  # from the first picture of a connection on, as are the next two
        self._last: av.VideoFrame | None = None
        self._age_ns = 0
        self._broken = False
        self._repeated = 0
        self._skipped = 0

    def open(self, video: VideoFormat) -> None:
        self._video = size = even(video)
        self._rate, self._last, self._broken = None, None, False
        try:
            self._writer = self._transport.connect(self._url, self._timeout_s)
            self._container = av.open(
                self._writer,
                "w",
                format=self._transport.container,
                container_options=CONTAINER_OPTIONS[self._transport.container],
                buffer_size=self._transport.block_bytes,
            )
            self._tracks = Tracks(self._container, size, self._coding(size))
            self._container.start_encoding()
            self._pictures = Pictures(size, self._choice)
        except EncoderError as error:
            raise self._without_encoder(error) from None
        except (FFmpegError, OSError) as error:
            self._broken = True
            raise self._explained(error) from None  # the cause may spell the key out

    def write(self, frame: Frame) -> None:
        assert self._pictures is not None, "open comes first"
        rate = self._rate or self._begin(frame)
        self._age_ns = self._clock.now_ns() - frame.captured_ns
        missing = rate.missing_before(frame.captured_ns)
        if missing < 0:
            self._skipped += 1
            return
        for _ in range(missing):
            self._repeat()
        self._last = self._pictures(frame)
        self._send(self._last)

    def deadline_ns(self) -> int | None:
        if self._rate is None or self._video is None:
            return None
        return self._rate.due_ns(self._rate.next) + self._age_ns + 2 * self._video.period_ns + PATIENCE_NS

    def idle(self, now_ns: int) -> None:
        if self._rate is not None:
            self._repeat()

    def close(self) -> None:
        container, self._container = self._container, None
        self._pictures = self._last = None
        writer, self._writer = self._writer, None
        if writer is None:
            return
        with contextlib.suppress(FFmpegError, OSError):  # an end that the server does not hear of loses nothing
            if self._broken:
                writer.close()  # first, so that the muxer does not try to write its end
            elif self._tracks is not None:
                self._tracks.finish()
        with contextlib.suppress(FFmpegError, OSError):
            if container is not None:
                container.close()
        writer.close()

    def lie_in(self, places: frozenset[Place]) -> None:
        self._choice.places = places

    def wants(self, place: Place | None) -> Delivery:
        pictures = self._pictures
        return Delivery() if pictures is None else pictures.wants(place)

    def statistics(self) -> dict[str, Any]:
        tracks, video = self._tracks, self._video
        facts: dict[str, Any] = {"url": self._shown_url, "repeated": self._repeated, "skipped": self._skipped, **self._choice.statistics()}
        if tracks is not None and video is not None:
            facts |= {"bytes": tracks.bytes, "size": str(video), "bitrate_bps": self._bitrate_bps or default_bitrate_bps(video)}
            facts["lost_sound_s"] = round(tracks.lost_sound_s, 3)
        return facts

    def _begin(self, frame: Frame) -> ConstantRate:
        assert self._tracks is not None
        assert self._video is not None
        self._tracks.start(frame.captured_ns)
        self._rate = ConstantRate(frame.captured_ns, float(exact_rate(self._video.fps)))
        return self._rate

    def _repeat(self) -> None:
        assert self._last is not None
        self._repeated += 1
        self._send(self._last)

    def _send(self, picture: av.VideoFrame) -> None:
        assert self._tracks is not None
        assert self._rate is not None
        number = self._rate.next
        try:
            self._tracks.sound(self._audio.take_all(), self._rate.due_ns(number))
            self._tracks.picture(picture, number)
        except EncoderError as error:
            raise self._without_encoder(error) from None
        except (FFmpegError, OSError) as error:
            self._broken = True
            raise self._explained(error) from None
        self._rate.next += 1

    def _coding(self, video: VideoFormat) -> Coding:
        bitrate_bps = self._bitrate_bps or default_bitrate_bps(video)
        # Half a second of bits: a key frame cannot hold the line longer.
        limits = {"maxrate": str(bitrate_bps), "bufsize": str(bitrate_bps // 2)}

        def options(encoder: Encoder) -> dict[str, str]:
            return {**encoder.live, **limits}

        chosen = self._choice.choose(video, options)
        return Coding(1 / exact_rate(video.fps), 2.0, bitrate_bps, self._choice.name, options(chosen), self._choice.place)

    def _without_encoder(self, error: EncoderError) -> SinkError:
        self._broken = True
        return self._choice.error(f"cannot stream to {self._shown_url}", error)

    def _explained(self, error: FFmpegError | OSError) -> SinkError:
        """One sentence without the key; ``strerror`` never names the address."""
        where = f"cannot stream to {self._shown_url}"
        match error:
            case ssl.SSLCertVerificationError():
                return SinkError(f"{where}: its certificate is not trusted; check the host's name and this machine's clock")
            case socket.gaierror():
                return SinkRetryError(f"{where}: the host {self._url.hostname} is not known; check the address and the network")
            case TimeoutError():
                return SinkRetryError(f"{where}: the server did not take data for {self._timeout_s:g} s")
            case ConnectionRefusedError():
                return SinkRetryError(f"{where}: nothing listens there; start the server or check host and port")
        return SinkRetryError(f"{where}: {error.strerror or error}; check the server and the stream key")

"""Where a stream's bytes go: one file-like writer for each kind of address. None of them blocks without a time limit of its own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from rt.address import shown
from rt.errors import OptionError, SinkError
from rt.sinks.rtmp import RtmpWriter

TS_DATAGRAM = 7 * 188
"""Bytes: seven MPEG-TS packets, the most that fit an Ethernet frame."""


class Writer(Protocol):
    """What the muxer writes to. Errors are OSErrors."""

    closed: bool

    def write(self, data: bytes) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Transport:
    """How an address is reached."""

    container: str
    """FFmpeg's name of the container."""
    block_bytes: int
    """The most that one ``write`` is given."""
    connect: Callable[[SplitResult, float], Writer]
    """From address and time limit in seconds. Raises OSError, or ``SinkError`` for what no later try can mend."""


class UdpWriter:
    """MPEG-TS datagrams to ``udp://host:port``; nobody needs to listen."""

    def __init__(self, url: SplitResult, timeout_s: float) -> None:
        self.closed = False
        address = socket.getaddrinfo(url.hostname, url.port, type=socket.SOCK_DGRAM)[0]
        self._socket = socket.socket(*address[:3])
        self._socket.settimeout(timeout_s)
        self._address = address[4]

    def write(self, data: bytes) -> int:
        with contextlib.suppress(ConnectionRefusedError):  # the answer to an earlier datagram that nobody took
            self._socket.sendto(data, self._address)
        return len(data)

    def close(self) -> None:
        self.closed = True
        self._socket.close()


class FfmpegWriter:
    """MPEG-TS into the system's ``ffmpeg`` for what neither we nor the FFmpeg inside PyAV speak: SRT. Its own limits end a stall.

    The address, with any passphrase, is on that program's command line, where other users of the machine can read it.
    """

    def __init__(self, url: SplitResult, timeout_s: float) -> None:
        program = shutil.which("ffmpeg")
        if program is None:
            raise SinkError(f"{url.scheme} needs the program ffmpeg, which is not on the PATH; install it (apt install ffmpeg)")
        self.closed = False
        command = [program, "-nostdin", "-loglevel", "error", "-fflags", "nobuffer", "-probesize", "65536", "-analyzeduration", "0"]
        command += ["-f", "mpegts", "-i", "pipe:0", "-c", "copy", "-f", "mpegts", url.geturl()]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._timeout_s = timeout_s

    def write(self, data: bytes) -> int:
        assert self._process.stdin is not None
        if self._process.poll() is not None:
            raise ConnectionResetError(f"ffmpeg ended with status {self._process.returncode}")
        self._process.stdin.write(data)
        self._process.stdin.flush()
        return len(data)

    def close(self) -> None:
        self.closed = True
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_RTMP = Transport("flv", 1 << 16, RtmpWriter)

TRANSPORTS: dict[str, Transport] = {
    "rtmp": _RTMP,
    "rtmps": _RTMP,
    "udp": Transport("mpegts", TS_DATAGRAM, UdpWriter),
    "srt": Transport("mpegts", 1 << 16, FfmpegWriter),
}


def transport_for(url: str) -> tuple[Transport, SplitResult]:
    """Raises ``OptionError`` for an address that means nothing; its text holds no key."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise OptionError("cannot stream: the address is malformed; write SCHEME://HOST[:PORT]/APP/KEY") from None
    if parts.scheme not in TRANSPORTS:
        known = ", ".join(f"{scheme}://" for scheme in TRANSPORTS)
        raise OptionError(f"cannot stream to {parts.scheme or 'an address without scheme'}: known are {known}")
    if not parts.hostname:
        raise OptionError(f"cannot stream to {shown(url)}: it names no host; write {parts.scheme}://HOST/…")
    if parts.scheme in ("udp", "srt") and port is None:
        raise OptionError(f"cannot stream to {shown(url)}: it names no port; write {parts.scheme}://HOST:PORT")
    return TRANSPORTS[parts.scheme], parts

"""Publishing over RTMP: an FLV byte stream in, RTMP messages out over a socket of our own.

FFmpeg's own RTMP through PyAV connects and ends while it holds Python's global lock and knows no timeout for outputs: one stalled
server would stop every thread of the line. Source: Adobe, "Real-Time Messaging Protocol (RTMP) specification 1.0", 2012.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult

from rt.sinks import amf

CHUNK = 60_000
"""Bytes of a message that travel under one header; the default of 128 would mean hundreds of headers for a key frame."""

SEND_BUFFER = 1 << 18
"""Bytes the system may hold for us: a stalled server is noticed within a second or so instead of after megabytes."""

_SET_CHUNK_SIZE, _USER_CONTROL, _AUDIO, _VIDEO, _DATA, _COMMAND = 1, 4, 8, 9, 18, 20
_PING, _PONG = 6, 7
_CONTROL_CHANNEL, _COMMAND_CHANNEL, _MEDIA_CHANNEL = 2, 3, 4


class RtmpRefused(ConnectionError):
    """The server answered, and said no."""


class RtmpWriter:
    """A file to write FLV to. One thread. Raises OSError (TimeoutError among them) when the connection breaks or stalls."""

    def __init__(self, url: SplitResult, timeout_s: float) -> None:
        """Connects and begins to publish. The key is what follows the last slash, with the query."""
        self.closed = False
        self._flv = FlvReader()
        self._inbox = ChunkReader()
        self._timeout_s = timeout_s
        self._stream = 0
        self._socket = _connect(url, timeout_s)
        try:
            self._shake_hands()
            self._publish(url)
        except BaseException:
            self._socket.close()
            raise

    def write(self, data: bytes) -> int:
        messages = b"".join(self._message_of(tag) for tag in self._flv.feed(data))
        self._answer_what_came()
        self._socket.sendall(messages)
        return len(data)

    def close(self) -> None:
        """Says goodbye where the connection still stands."""
        self.closed = True
        try:
            self._command("deleteStream", None, self._stream)
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side is gone already; there is nobody to tell
        finally:
            self._socket.close()

    def _message_of(self, tag: tuple[int, int, bytes]) -> bytes:
        kind, time_ms, body = tag
        if kind == _DATA:
            body = amf.encode("@setDataFrame") + body
        return chunks(_MEDIA_CHANNEL, kind, self._stream, time_ms, body)

    def _shake_hands(self) -> None:
        greeting = struct.pack(">BII", 3, 0, 0) + os.urandom(1528)
        self._socket.sendall(greeting)
        answer = self._receive_exactly(1 + 1536 + 1536)
        self._socket.sendall(answer[1:1537])

    def _receive_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            data += self._receive(count - len(data))
        return bytes(data)

    def _receive(self, most: int) -> bytes:
        data = self._socket.recv(most)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        return data

    def _publish(self, url: SplitResult) -> None:
        app, _, key = url.path.lstrip("/").rpartition("/")
        key += f"?{url.query}" if url.query else ""
        self._socket.sendall(chunks(_CONTROL_CHANNEL, _SET_CHUNK_SIZE, 0, 0, struct.pack(">I", CHUNK)))
        address = f"{url.scheme}://{url.netloc.rpartition('@')[2]}/{app}"
        self._ask("connect", 1, {"app": app, "type": "nonprivate", "flashVer": "FMLE/3.0 (compatible; ffrt)", "tcUrl": address})
        self._command("releaseStream", None, key, number=2)
        self._command("FCPublish", None, key, number=3)
        stream = self._ask("createStream", 4, None)[1]
        if not isinstance(stream, float):
            raise RtmpRefused("the server gave no stream to publish to")
        self._stream = int(stream)
        self._command("publish", None, key, "live", number=5)
        self._await_status()

    def _ask(self, name: str, number: int, *arguments: Any) -> list[Any]:
        """Sends a command and waits for its result: the values after its number."""
        self._command(name, *arguments, number=number)
        while True:
            for answer in self._answers():
                if answer[0] == "_result" and answer[1] == number:
                    return answer[2:]
                if answer[0] == "_error" and answer[1] == number:
                    raise RtmpRefused(f"the server refused {name}{_reason(answer)}")

    def _await_status(self) -> None:
        while True:
            for answer in self._answers():
                if answer[0] == "onStatus":
                    if _facts(answer).get("level") == "error":
                        raise RtmpRefused(f"the server refused to publish{_reason(answer)}")
                    return

    def _answers(self) -> Iterator[list[Any]]:
        for kind, body in self._inbox.feed(self._receive(1 << 16)):
            if kind == _COMMAND:
                yield _command_in(body)
            else:
                self._heed(kind, body)

    def _answer_what_came(self) -> None:
        """While publishing: answers pings, notices that the server closed or refused."""
        self._socket.settimeout(0)
        try:
            for answer in self._answers():
                if answer[0] == "onStatus" and _facts(answer).get("level") == "error":
                    raise RtmpRefused(f"the server ended the stream{_reason(answer)}")
        except (BlockingIOError, ssl.SSLWantReadError):
            pass  # nothing came: the usual case
        finally:
            self._socket.settimeout(self._timeout_s)

    def _heed(self, kind: int, body: bytes) -> None:
        if kind == _USER_CONTROL and body[:2] == struct.pack(">H", _PING):
            self._socket.sendall(chunks(_CONTROL_CHANNEL, _USER_CONTROL, 0, 0, struct.pack(">H", _PONG) + body[2:]))

    def _command(self, name: str, *arguments: Any, number: int = 0) -> None:
        stream = self._stream if name == "publish" else 0
        self._socket.sendall(chunks(_COMMAND_CHANNEL, _COMMAND, stream, 0, amf.encode(name, number, *arguments)))


def _connect(url: SplitResult, timeout_s: float) -> socket.socket:
    secure = url.scheme == "rtmps"
    plain = socket.create_connection((url.hostname or "", url.port or (443 if secure else 1935)), timeout_s)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    return ssl.create_default_context().wrap_socket(plain, server_hostname=url.hostname) if secure else plain


def _command_in(body: bytes) -> list[Any]:
    """Name, number, two arguments, and what else there is. Raises ``RtmpRefused`` where the other side speaks no RTMP."""
    try:
        values = amf.decode(body)
    except ValueError as error:
        raise RtmpRefused(f"the server answers with something else than RTMP ({error})") from None
    return values + [None] * (4 - len(values))


def _facts(answer: list[Any]) -> dict[str, Any]:
    return answer[3] if isinstance(answer[3], dict) else {}


def _reason(answer: list[Any]) -> str:
    code = _facts(answer).get("code")
    return f" ({code})" if code else ""


def chunks(channel: int, kind: int, stream: int, time_ms: int, body: bytes) -> bytes:
    """A message in chunks (section 5.3.1): a full header, then the shortest for each further ``CHUNK`` bytes."""
    late = struct.pack(">I", time_ms) if time_ms >= 0xFFFFFF else b""
    head = struct.pack(">I", min(time_ms, 0xFFFFFF))[1:] + struct.pack(">I", len(body))[1:] + bytes([kind])
    parts = [bytes([channel]) + head + struct.pack("<I", stream) + late + body[:CHUNK]]
    parts += [bytes([0xC0 | channel]) + late + body[at : at + CHUNK] for at in range(CHUNK, len(body), CHUNK)]
    return b"".join(parts)


class FlvReader:
    """Cuts an FLV byte stream into tags (Adobe, "Video File Format Specification 10.1", annex E)."""

    _FILE_HEADER, _TAG_HEADER, _TAG_END = 9 + 4, 11, 4

    def __init__(self) -> None:
        self._data = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Kind, time in milliseconds and body of every tag that is now complete."""
        self._data += data
        if not self._begun and len(self._data) >= self._FILE_HEADER:
            del self._data[: self._FILE_HEADER]
            self._begun = True
        while self._begun and len(self._data) >= self._TAG_HEADER:
            size = int.from_bytes(self._data[1:4], "big")
            end = self._TAG_HEADER + size
            if len(self._data) < end + self._TAG_END:
                return
            time_ms = int.from_bytes(self._data[4:7], "big") | self._data[7] << 24
            tag = self._data[0] & 0x1F, time_ms, bytes(self._data[self._TAG_HEADER : end])
            del self._data[: end + self._TAG_END]
            yield tag


class ChunkReader:
    """Puts what a server sends together again: messages of kind and body."""

    _HEADER_SIZES = (11, 7, 3, 0)

    def __init__(self) -> None:
        self._data = bytearray()
        self._chunk = 128  # until the server says otherwise
        self._open: dict[int, tuple[int, int, bool, bytearray]] = {}  # channel → size, kind, long time, body so far

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        self._data += data
        while (used := self._chunk_length()) is not None:
            message = self._take_chunk(used)
            if message is not None and message[0] == _SET_CHUNK_SIZE:
                self._chunk = int.from_bytes(message[1][:4], "big") & 0x7FFFFFFF
            elif message is not None:
                yield message

    def _header(self) -> tuple[int, int, int, int, bool] | None:
        """Channel, bytes of header, message size, kind, long time; None while the header is incomplete."""
        data = self._data
        if not data:
            return None
        basic = {0: 2, 1: 3}.get(data[0] & 0x3F, 1)
        channel = data[0] & 0x3F if basic == 1 else 64 + int.from_bytes(data[1:basic], "little")
        fields = self._HEADER_SIZES[data[0] >> 6]
        if len(data) < basic + fields:
            return None
        size, kind, late, _ = self._open.get(channel, (0, 0, False, b""))
        if fields >= 3:
            late = data[basic : basic + 3] == b"\xff\xff\xff"
        if fields >= 7:
            size, kind = int.from_bytes(data[basic + 3 : basic + 6], "big"), data[basic + 6]
        return channel, basic + fields + 4 * late, size, kind, late

    def _chunk_length(self) -> int | None:
        header = self._header()
        if header is None:
            return None
        channel, start, size, _, _ = header
        so_far = len(self._open[channel][3]) if channel in self._open else 0
        length = start + min(self._chunk, size - so_far)
        return length if len(self._data) >= length else None

    def _take_chunk(self, length: int) -> tuple[int, bytes] | None:
        header = self._header()
        assert header is not None
        channel, start, size, kind, late = header
        body = self._open[channel][3] if channel in self._open else bytearray()
        body += self._data[start:length]
        del self._data[:length]
        complete = len(body) >= size
        self._open[channel] = (size, kind, late, bytearray() if complete else body)
        return (kind, bytes(body)) if complete else None

"""The stream sink against a real RTMP server, a player in another process, and servers that misbehave."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rt import timecode
from rt.audio import AudioQueue
from rt.clock import MonotonicClock
from rt.errors import OptionError, SinkError, SinkRetryError
from rt.frame import Frame, VideoFormat
from rt.sinks.stream import StreamSink, default_bitrate_bps
from tests.rtmp_server import RtmpServer, free_port

VIDEO = VideoFormat(640, 360, 30)
PLAYER = Path(__file__).with_name("stream_player.py")


def speaks_srt() -> bool:
    program = shutil.which("ffmpeg")
    if program is None:
        return False
    listed = subprocess.run([program, "-hide_banner", "-protocols"], check=False, capture_output=True, text=True)
    return "srt" in listed.stdout.split()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RtmpServer]:
    running = RtmpServer(tmp_path)
    yield running
    running.stop()


class Publisher:
    """Writes numbered pictures at camera pace."""

    def __init__(self, url: str, *, timeout_s: float = 5.0, bitrate_bps: int | None = None) -> None:
        self.clock = MonotonicClock()
        options = {"timeout_s": timeout_s, "bitrate_bps": bitrate_bps}
        self.sink = StreamSink(url, AudioQueue(16), self.clock, **options)
        self.number = 0
        self.error: SinkError | None = None
        self._never = threading.Event()

    def publish(self, enough: threading.Event) -> None:
        """Opens, writes until ``enough`` or an error, which is kept; closes."""
        try:
            self.sink.open(VIDEO)
            next_ns = self.clock.now_ns()
            while not enough.is_set():
                self.clock.wait_until(next_ns, self._never)
                self.sink.write(self._picture(next_ns))
                next_ns += VIDEO.period_ns
        except SinkError as error:
            self.error = error
        finally:
            self.sink.close()

    def write(self, numbers: range, *, noisy: bool = False) -> None:
        """At once, stamped at camera pace. ``noisy``: pictures that take many bytes."""
        rng = np.random.default_rng(0)
        for number in numbers:
            frame = self._picture(number * VIDEO.period_ns)
            if noisy:
                frame.pixels[:] = rng.integers(0, 256, frame.pixels.shape, np.uint8)
            self.sink.write(frame)

    def _picture(self, captured_ns: int) -> Frame:
        pixels = np.full((VIDEO.height, VIDEO.width, 3), 90, np.uint8)
        timecode.burn(pixels, self.number)
        frame = Frame(pixels, self.number, captured_ns)
        self.number += 1
        return frame


def play(url: str, count: int) -> subprocess.Popen[str]:
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, PLAYER, url, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def watch(publisher: Publisher, url: str, count: int) -> dict[str, object]:
    """Publishes in a thread until a player has had ``count`` pictures."""
    enough = threading.Event()
    thread = threading.Thread(target=publisher.publish, args=(enough,))
    thread.start()
    player = play(url, count)
    try:
        printed, _ = player.communicate(timeout=50)
    finally:
        player.kill()
        enough.set()
        thread.join()
    assert publisher.error is None
    result: dict[str, object] = json.loads(printed)
    return result


def test_every_picture_arrives_in_order_with_sound_and_regular_key_frames(server: RtmpServer) -> None:
    seen = watch(Publisher(server.url), server.url, 130)
    codes = seen["codes"]
    assert isinstance(codes, list)
    assert codes == list(range(codes[0], codes[0] + len(codes)))
    assert seen["streams"] == {"video": "h264", "audio": "aac"}
    assert seen["sound_frames"] > 0
    assert np.allclose(np.diff(seen["key_frames_s"]), 2.0, atol=0.002)  # FLV counts milliseconds
    assert len(seen["key_frames_s"]) >= 2


def test_server_that_dies_in_mid_stream_is_worth_a_retry_and_taken_again(server: RtmpServer) -> None:
    publisher = Publisher(server.url)
    publisher.sink.open(VIDEO)
    publisher.write(range(1))
    server.stop()
    with pytest.raises(SinkRetryError) as caught:
        publisher.write(range(1, 300))
    publisher.sink.close()
    assert "test-key" not in str(caught.value)
    server.start()
    assert watch(publisher, server.url, 5)["codes"]


def test_server_that_stalls_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"rtmp://127.0.0.1:{silent.getsockname()[1]}/live/secret"
        sink = StreamSink(url, AudioQueue(1), MonotonicClock(), timeout_s=0.3)
        with pytest.raises(SinkRetryError, match=r"live/\*\*\*: the server did not take data for 0.3 s"):
            sink.open(VIDEO)
        sink.close()


def test_waiting_for_a_server_leaves_other_threads_running() -> None:
    """This thread closes the connection that the other waits on; were it held up, the wait would end by its time limit instead."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        publisher = Publisher(f"rtmp://127.0.0.1:{silent.getsockname()[1]}/live/secret", timeout_s=20)
        thread = threading.Thread(target=publisher.publish, args=(threading.Event(),))
        thread.start()
        connection, _ = silent.accept()
        connection.recv(1)
        connection.close()
        thread.join()
    assert isinstance(publisher.error, SinkRetryError)
    assert "did not take data" not in str(publisher.error)


def test_server_that_stalls_in_mid_stream_is_given_up(server: RtmpServer) -> None:
    publisher = Publisher(server.url, timeout_s=0.5, bitrate_bps=100_000_000)
    publisher.sink.open(VIDEO)
    publisher.write(range(1))
    with server.frozen(), pytest.raises(SinkRetryError, match="did not take data"):
        publisher.write(range(1, 3000), noisy=True)
    publisher.sink.close()


@pytest.mark.parametrize(
    ("url", "kind", "text"),
    [
        ("rtmp://127.0.0.1:{port}/live/secret", SinkRetryError, "nothing listens there"),
        ("rtmp://no-such-host.invalid/live/secret", SinkRetryError, "no-such-host.invalid is not known"),
    ],
)
def test_unreachable_server_is_worth_a_retry(url: str, kind: type[SinkError], text: str) -> None:
    sink = StreamSink(url.format(port=free_port()), AudioQueue(1), MonotonicClock())
    with pytest.raises(kind, match=text) as caught:
        sink.open(VIDEO)
    sink.close()
    assert "secret" not in f"{caught.value} {sink.statistics()}"


@pytest.mark.parametrize("url", ["ftp://host/secret", "secret", "rtmp:///live/secret", "udp://host/secret", "rtmp://h:x/live/secret"])
def test_address_that_means_nothing_is_refused_for_good(url: str) -> None:
    with pytest.raises(OptionError) as caught:
        StreamSink(url, AudioQueue(1), MonotonicClock())
    assert "secret" not in str(caught.value)


def test_udp_sends_a_transport_stream() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        publisher = Publisher(f"udp://127.0.0.1:{listener.getsockname()[1]}")
        publisher.sink.open(VIDEO)
        publisher.write(range(1))
        datagram = listener.recv(2048)
        publisher.sink.close()
    assert datagram[::188] == b"\x47" * (len(datagram) // 188)


@pytest.mark.skipif(not speaks_srt(), reason="needs a system ffmpeg with SRT")
def test_srt_goes_through_the_system_ffmpeg() -> None:
    url = f"srt://127.0.0.1:{free_port()}"
    command = ["ffmpeg", "-loglevel", "error", "-nostdin", "-i", f"{url}?mode=listener", "-frames:v", "5", "-f", "framemd5", "-"]
    publisher, enough = Publisher(url, timeout_s=1), threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        thread = threading.Thread(target=publisher.publish, args=(enough,))
        thread.start()
        try:
            printed, _ = listener.communicate(timeout=30)
        finally:
            listener.kill()
            enough.set()
            thread.join()
    assert "#media_type 0: video" in printed
    assert "#media_type 1: audio" in printed


@pytest.mark.parametrize(("size", "bps"), [((1280, 720), 2_500_000), ((1920, 1080), 5_600_000), ((320, 240), 400_000)])
def test_default_bitrate_follows_size(size: tuple[int, int], bps: int) -> None:
    assert default_bitrate_bps(VideoFormat(*size, 30)) == bps

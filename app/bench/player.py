"""``python -m app.bench.player URL SECONDS``: plays a stream in a process of its own and prints, as JSON, how old each picture is.

The age is read from the time code in the decoded pixels against this machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

import av
import av.error

from rt import timecode
from rt.capture.media import LOW_DELAY

log = logging.getLogger(__name__)

CONNECT_S = 20.0
"""How long the stream may take to appear."""

REFUSED_S = 2.0
"""How long a server may refuse to be spoken to: it starts, or there is none."""

PAUSE_S = 0.1
"""Between two attempts."""


def play(url: str, seconds: float) -> dict[str, Any]:
    """Decodes for ``seconds`` from the first picture on, or to the end of the stream."""
    container = _open(url)
    stream = container.streams.video[0]
    stream.thread_type, stream.codec_context.thread_count = "SLICE", 1  # frame threads would each hold a picture back
    values: list[int | None] = []
    ages_ms: list[float] = []
    until_s: float | None = None
    try:
        for frame in container.decode(video=0):
            value = timecode.read(frame.to_ndarray(format="gray"))
            now_us = time.monotonic_ns() // 1000
            values.append(value)
            if value is not None:
                ages_ms.append(timecode.age_us(now_us, value) / 1000)
            until_s = until_s or time.monotonic() + seconds
            if time.monotonic() > until_s:
                break
    except av.error.FFmpegError as error:
        log.warning("the stream ended: %s", error)
    finally:
        container.close()
    return {"timecodes": values, "ages_ms": ages_ms}


def _open(url: str) -> Any:
    begin = time.monotonic()
    while True:
        try:
            return av.open(url, options=dict(LOW_DELAY), timeout=(5, 5))
        except av.error.FFmpegError as error:
            if time.monotonic() > begin + (REFUSED_S if isinstance(error, ConnectionRefusedError) else CONNECT_S):
                raise
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    try:
        played = play(sys.argv[1], float(sys.argv[2]))
    except av.error.FFmpegError as error:
        sys.exit(error.strerror)  # not the whole of it, which has the address
    sys.stdout.write(json.dumps(played))

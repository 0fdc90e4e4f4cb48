"""``python stream_player.py URL COUNT``: plays a stream and prints, as JSON, what a viewer gets."""

from __future__ import annotations

import json
import sys
import time

import av
from av.container import InputContainer

from rt import timecode

LOW_DELAY = {"fflags": "nobuffer", "flags": "low_delay", "probesize": "32768", "analyzeduration": "0"}


def open_when_published(url: str) -> InputContainer:
    deadline = time.monotonic() + 20
    while True:
        try:
            return av.open(url, options=LOW_DELAY, timeout=10)
        except av.error.FFmpegError:
            if time.monotonic() > deadline:
                raise


def main() -> None:
    url, count = sys.argv[1], int(sys.argv[2])
    codes: list[int | None] = []
    key_frames_s: list[float] = []
    sound_s: list[float] = []
    with open_when_published(url) as container:
        for stream in container.streams.video:
            stream.thread_type = "SLICE"
        facts = {stream.type: stream.codec_context.name for stream in container.streams}
        for packet in container.demux():
            for frame in packet.decode():
                if isinstance(frame, av.AudioFrame):
                    sound_s.append(frame.time)
                    continue
                codes.append(timecode.read(frame.to_ndarray(format="bgr24")))
                if frame.key_frame:
                    key_frames_s.append(frame.time)
            if len(codes) >= count:
                break
    print(json.dumps({"streams": facts, "codes": codes, "key_frames_s": key_frames_s, "sound_frames": len(sound_s)}))


if __name__ == "__main__":
    main()

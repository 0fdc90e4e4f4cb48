"""In the guest: our virtual camera sink over real v4l2loopback, read back as another program would. Exit status 1 if a colour is off.

Start it from the repository root:  tests/qemu_v4l2/run.sh CACHE .venv tests/qemu_v4l2/guest.py
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import cv2
import numpy as np

from rt.clock import MonotonicClock
from rt.frame import Frame, VideoFormat
from rt.sinks.virtual_camera import VirtualCameraSink

DEVICE = "/dev/video0"
VIDEO = VideoFormat(320, 240, 30)
BARS_BGR = np.array([(b, g, r) for g in (255, 0) for r in (255, 0) for b in (255, 0)], np.uint8)
ERROR_MAX = 5
"""Levels: 8-bit YUV of limited range, rounded on the way there and back."""


def read_some(count: int) -> np.ndarray:
    reader = cv2.VideoCapture(DEVICE, cv2.CAP_V4L2)
    try:
        for _ in range(count):
            ok, picture = reader.read()
            if not ok:
                raise SystemExit(f"{DEVICE} gave no picture")
    finally:
        reader.release()
    return picture


def send_until(done: threading.Event, sink: VirtualCameraSink, pixels: np.ndarray) -> None:
    number = 1
    while not done.wait(VIDEO.period_ns / 1e9):
        sink.write(Frame(pixels, number, 0))
        number += 1


def main() -> int:
    bars = np.ascontiguousarray(np.broadcast_to(np.repeat(BARS_BGR, VIDEO.width // 8, axis=0), (VIDEO.height, VIDEO.width, 3)))
    sink = VirtualCameraSink(MonotonicClock(), DEVICE)
    sink.open(VIDEO)
    sink.write(Frame(bars, 0, 0))  # the device has a format from the first picture on
    done = threading.Event()
    sender = threading.Thread(target=send_until, args=(done, sink, bars))
    sender.start()
    try:
        picture = read_some(5)
    finally:
        done.set()
        sender.join()
        sink.close()
    centres = np.arange(8) * (VIDEO.width // 8) + VIDEO.width // 16
    error = int(np.abs(picture[:, centres].astype(int) - BARS_BGR.astype(int)).max())
    sys.stdout.write(f"{sink.statistics()}: largest error {error} of 255, {ERROR_MAX} allowed\n")
    return 0 if error <= ERROR_MAX else 1


if __name__ == "__main__":
    sys.exit(main())

"""What Video4Linux says of its devices, by ioctl: names and modes. Structures from linux/videodev2.h."""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CAPTURE = 1
"""V4L2_BUF_TYPE_VIDEO_CAPTURE."""

CAN_CAPTURE, HAS_DEVICE_CAPS = 0x00000001, 0x80000000
"""V4L2_CAP_VIDEO_CAPTURE, V4L2_CAP_DEVICE_CAPS."""

DISCRETE = 1
"""V4L2_FRMSIZE_TYPE_DISCRETE and V4L2_FRMIVAL_TYPE_DISCRETE."""


def read_write(number: int, size: int, write: bool = True) -> int:
    """The number of a V4L2 ioctl: direction, size of the structure, letter V, number."""
    return (3 if write else 2) << 30 | size << 16 | ord("V") << 8 | number


CAPABILITY = struct.Struct("16s32s32s3I12x")
FORMAT = struct.Struct("3I32sI16x")
FRAME_SIZE = struct.Struct("3I6I8x")
FRAME_INTERVAL = struct.Struct("5I6I8x")

QUERYCAP = read_write(0, CAPABILITY.size, write=False)
ENUM_FMT = read_write(2, FORMAT.size)
ENUM_FRAMESIZES = read_write(74, FRAME_SIZE.size)
ENUM_FRAMEINTERVALS = read_write(75, FRAME_INTERVAL.size)


Ask = Callable[[int, bytes], bytes]
"""``ask(request, structure)``: an ioctl on an open device; the structure as the driver filled it in. Raises OSError."""


@dataclass(frozen=True, slots=True)
class V4l2Device:
    """A device that pictures can be read from."""

    index: int
    name: str
    path: str
    modes: tuple[tuple[int, int, float, str], ...]
    """(width, height, fps, four letters)."""


def devices() -> list[V4l2Device]:
    """All that can capture, by index. A device that cannot be opened is left out."""
    numbers = sorted(int(m[1]) for p in Path("/dev").glob("video*") if (m := re.fullmatch(r"video(\d+)", p.name)))
    found = (_examine(number) for number in numbers)
    return [device for device in found if device is not None]


def _examine(number: int) -> V4l2Device | None:
    path = f"/dev/video{number}"
    try:
        with asking(path) as ask:
            return read_device(number, path, ask)
    except OSError:
        return None


@contextmanager
def asking(path: str) -> Iterator[Ask]:
    """Opens a device to be asked, beside whoever reads its pictures. Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield lambda request, asked: fcntl.ioctl(handle, request, asked)
    finally:
        os.close(handle)


def read_device(number: int, path: str, ask: Ask) -> V4l2Device | None:
    """What a driver says of itself; None where it cannot capture (an output, a metadata node). Raises OSError as ``ask`` does."""
    name, capabilities = parse_capability(ask(QUERYCAP, bytes(CAPABILITY.size)))
    if not capabilities & CAN_CAPTURE:
        return None
    return V4l2Device(number, name, path, tuple(_modes(ask)))


def parse_capability(data: bytes) -> tuple[str, int]:
    """The card's name, and what this very node can do."""
    _, card, _, _, whole, node = CAPABILITY.unpack(data)
    return card.split(b"\0")[0].decode("utf-8", "replace"), node if whole & HAS_DEVICE_CAPS else whole


def _modes(ask: Ask) -> Iterator[tuple[int, int, float, str]]:
    for code in _formats(ask):
        fourcc = code.to_bytes(4, "little").decode("ascii", "replace")
        for width, height in _sizes(ask, code):
            for fps in _rates(ask, code, width, height):
                yield width, height, fps, fourcc


def _enumerate(ask: Ask, request: int, layout: struct.Struct, *head: int) -> Iterator[tuple[int, ...]]:
    """Asks for entry 0, 1, …, until the driver says there is no more. ``head``: the fields after the index."""
    for index in range(256):
        asked = struct.pack(f"{1 + len(head)}I", index, *head).ljust(layout.size, b"\0")
        try:
            yield layout.unpack(ask(request, asked))
        except OSError:
            return


def _formats(ask: Ask) -> Iterator[int]:
    for fields in _enumerate(ask, ENUM_FMT, FORMAT, CAPTURE):
        yield fields[4]


def _sizes(ask: Ask, code: int) -> Iterator[tuple[int, int]]:
    for fields in _enumerate(ask, ENUM_FRAMESIZES, FRAME_SIZE, code):
        kind = fields[2]
        if kind == DISCRETE:
            yield fields[3], fields[4]
        else:  # a range: its ends stand for it
            yield fields[3], fields[6]
            yield fields[4], fields[7]
            return


def _rates(ask: Ask, code: int, width: int, height: int) -> Iterator[float]:
    for fields in _enumerate(ask, ENUM_FRAMEINTERVALS, FRAME_INTERVAL, code, width, height):
        numerator, denominator = fields[5], fields[6]
        if numerator:
            yield round(denominator / numerator, 3)
        if fields[4] != DISCRETE:
            return

"""What Video4Linux says of its devices, by ioctl: names and modes. Structures from linux/videodev2.h."""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    bus: str = ""
    """Where it is plugged in, as in ``usb-0000:00:14.0-2``."""
    link: str = ""
    """A path that is the same device's whatever its number is next time (udev makes it); empty where there is none."""


LINKS = (Path("/dev/v4l/by-id"), Path("/dev/v4l/by-path"))
"""Where udev names devices: by maker, kind and serial number, else by the plug they are in."""


def devices(dev: Path = Path("/dev")) -> list[V4l2Device]:
    """All that can capture, by index. A device that cannot be opened is left out."""
    numbers = sorted(int(m[1]) for p in dev.glob("video*") if (m := re.fullmatch(r"video(\d+)", p.name)))
    found = (_examine(number, dev / f"video{number}") for number in numbers)
    return [device for device in found if device is not None]


def device_at(path: Path) -> V4l2Device | None:
    """What is there now; None where nothing can be captured from."""
    number = re.search(r"(\d+)$", os.path.realpath(path))
    return _examine(int(number[1]) if number else -1, path)


def _examine(number: int, path: Path) -> V4l2Device | None:
    try:
        with asking(str(path)) as ask:
            device = read_device(number, str(path), ask)
    except OSError:
        return None
    return None if device is None else replace(device, link=link_to(path))


def link_to(path: Path, rooms: Sequence[Path] = LINKS) -> str:
    """The lasting name of the device at ``path``, or an empty text."""
    for room in rooms:
        for link in sorted(room.glob("*")):
            if os.path.realpath(link) == os.path.realpath(path):
                return str(link)
    return ""


@dataclass(frozen=True, slots=True)
class Known:
    """A camera that was used, as it is told from others when it is plugged in again."""

    name: str
    bus: str
    link: str
    others: frozenset[str]
    """Where others of its name were plugged in meanwhile."""

    @classmethod
    def of(cls, device: V4l2Device, present: Iterable[V4l2Device]) -> Known:
        others = frozenset(other.bus for other in present if other.name == device.name and other.bus != device.bus)
        return cls(device.name, device.bus, device.link, others)

    def among(self, present: Sequence[V4l2Device]) -> V4l2Device | None:
        """The same by its lasting name, else one of its name where it was, else one of its name in a plug that was free.

        Of two cameras of a kind without serial numbers one has the name for both, and the other gets it when that is unplugged: what was
        somewhere else all the time is never taken.
        """
        same = [device for device in present if device.name == self.name and device.bus not in self.others]
        return max(same, key=lambda device: (bool(self.link) and device.link == self.link, device.bus == self.bus), default=None)


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
    name, bus, capabilities = parse_capability(ask(QUERYCAP, bytes(CAPABILITY.size)))
    if not capabilities & CAN_CAPTURE:
        return None
    return V4l2Device(number, name, path, tuple(_modes(ask)), bus)


def parse_capability(data: bytes) -> tuple[str, str, int]:
    """The card's name, where it is plugged in, and what this very node can do."""
    _, card, bus, _, whole, node = CAPABILITY.unpack(data)
    name, place = (field.split(b"\0")[0].decode("utf-8", "replace") for field in (card, bus))
    return name, place, node if whole & HAS_DEVICE_CAPS else whole


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

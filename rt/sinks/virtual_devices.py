"""The devices that a virtual camera can be: which there are, and which of a machine's cameras are none of glass."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/sys/devices/virtual/video4linux")
"""Where Linux tells of v4l2loopback."""

BY_NAME = {"Windows": ("OBS Virtual Camera", "Unity Video Capture"), "Darwin": ("OBS Virtual Camera",)}
"""System → devices that pyvirtualcam opens by name; whether their drivers are there is seen when one is used."""


@dataclass(frozen=True, slots=True)
class VirtualDevice:
    """One that can be chosen."""

    place: str
    """As `--virtual-camera` takes it."""
    title: str
    """For a person."""


def virtual_devices(folder: Path = FOLDER) -> tuple[VirtualDevice, ...]:
    """By number. ``folder``: Linux's."""
    if platform.system() != "Linux":
        return tuple(VirtualDevice(name, name) for name in BY_NAME.get(platform.system(), ()))
    places = (place for place in folder.glob("video*") if place.name[5:].isdigit())
    return tuple(_device(place) for place in sorted(places, key=lambda place: int(place.name[5:])))


def _device(place: Path) -> VirtualDevice:
    path = f"/dev/{place.name}"
    try:
        name = (place / "name").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = ""
    return VirtualDevice(path, f"{name} ({path})" if name else path)

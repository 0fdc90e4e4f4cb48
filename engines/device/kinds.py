"""Devices by the names people give: ``host``, ``cuda:0``. A kind of device is one file that registers itself here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engines.errors import DeviceError
from engines.registry import Registry

if TYPE_CHECKING:  # help and lists load nothing that works on pictures
    from engines.device.contract import Device


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """One kind of device, as its file registers it."""

    open: Callable[[int, int], Device]
    """By its number, counted from 0, and the bytes of its memory that it may take, 0 for all. Raises ``DeviceError``."""
    problem: Callable[[int], str]
    """Why there is no such device here, as a sentence that names what is missing; empty where there is. Quick, and never raises."""
    is_counted: bool = False
    """Whether there may be several: ``cuda:0``, ``cuda:1``."""
    has_memory: bool = False
    """Of its own, so that it can be limited what is taken of it."""
    compositor: str = ""
    """What composes pictures in its memory, by its name in ``rt.compose.contract.compositors``; empty where the processor does."""


devices: Registry[DeviceKind] = Registry("device", *(f"engines.device.{room}" for room in ("host", "simulated", "cuda_networks")))

ACCEPTED = "give host (the processor), cuda:0 (the first NVIDIA GPU), or several as in cuda:0,cuda:1"


def check_name(name: str) -> str:
    """``name`` as it is meant: ``cuda`` is ``cuda:0``. Raises ValueError with what is accepted; looks for no device."""
    kind, colon, number = name.strip().partition(":")
    if kind not in list(devices):
        raise ValueError(f"the device {name!r} was given; {ACCEPTED}")
    if not devices[kind].is_counted:
        if colon:
            raise ValueError(f"the device {name!r} was given, and there is one {kind}; {ACCEPTED}")
        return kind
    if colon and not (number.isascii() and number.isdecimal()):
        raise ValueError(f"the device {name!r} was given; its number must be 0 or more: {ACCEPTED}")
    return f"{kind}:{int(number or 0)}"


def problem(name: str) -> str:
    """Why there is no such device here; empty where there is."""
    kind, number = _parts(name)
    return devices[kind].problem(number)


def open_device(name: str, memory_bytes: int = 0) -> Device:
    """``memory_bytes``: what may be taken of its memory, 0 for all. Raises ``DeviceError``: one sentence that names what is missing."""
    kind, number = _parts(name)
    why = devices[kind].problem(number)
    if why:
        raise DeviceError(f"{name} was asked for, and {why}")
    return devices[kind].open(number, memory_bytes)


def has_memory(name: str) -> bool:
    """See ``DeviceKind.has_memory``."""
    return devices[_parts(name)[0]].has_memory


def compositor_of(name: str) -> str:
    """See ``DeviceKind.compositor``."""
    return devices[_parts(name)[0]].compositor


def split_names(text: str) -> tuple[str, ...]:
    """``cuda:0,cuda:1`` → both. Raises ValueError as ``check_name`` does."""
    return check_names(text.split(","))


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """As ``check_name`` for each; a name may come twice."""
    if not names:
        raise ValueError(f"no device was given; {ACCEPTED}")
    return tuple(map(check_name, names))


def _parts(name: str) -> tuple[str, int]:
    kind, _, number = check_name(name).partition(":")
    return kind, int(number or 0)

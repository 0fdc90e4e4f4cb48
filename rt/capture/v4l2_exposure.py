"""How long a camera exposes its pictures: Video4Linux's controls of it. Structures and numbers: linux/videodev2.h, v4l2-controls.h."""

from __future__ import annotations

import struct

from rt.capture.exposure import MANUAL, SHUTTER_PRIORITY, Exposure
from rt.capture.v4l2 import Ask, read_write

QUERY = struct.Struct("2I32s4iI8x")
"""struct v4l2_queryctrl: id, type, name, minimum, maximum, step, default, flags."""

MENU = struct.Struct("<2I32s4x")
"""struct v4l2_querymenu, which is packed: id, index, name."""

CONTROL = struct.Struct("Ii")
"""struct v4l2_control: id, value."""

QUERYCTRL, QUERYMENU = read_write(36, QUERY.size), read_write(37, MENU.size)
G_CTRL, S_CTRL = read_write(27, CONTROL.size), read_write(28, CONTROL.size)

EXPOSURE_AUTO, EXPOSURE_ABSOLUTE = 0x009A0901, 0x009A0902
"""V4L2_CID_EXPOSURE_AUTO (a menu), V4L2_CID_EXPOSURE_ABSOLUTE (in units of 100 µs)."""

DISABLED, READ_ONLY = 0x0001, 0x0004
"""V4L2_CTRL_FLAG_…"""

UNITS_PER_MS = 10


def read_exposure(ask: Ask) -> Exposure:
    """What the device behind ``ask`` offers; nothing where it has no such control. Raises nothing."""
    span = _control(ask, EXPOSURE_ABSOLUTE)
    least, most = (0, 0) if span is None else (span[0], span[1])
    menu = _control(ask, EXPOSURE_AUTO)
    modes = () if menu is None else tuple(mode for mode in range(menu[0], menu[1] + 1) if _has_entry(ask, mode))
    return Exposure(modes, least / UNITS_PER_MS, most / UNITS_PER_MS)


def set_exposure(ask: Ask, offered: Exposure, exposure_ms: float) -> str:
    """0 lets the camera decide, else so long, within what it offers. Returns what is set now, in words, or why nothing is.

    Raises OSError where the driver refuses.
    """
    if exposure_ms == 0:
        if offered.automatic is None:
            return "this camera offers no automatic exposure"
        _set(ask, EXPOSURE_AUTO, offered.automatic)
        return "automatic"
    if not offered.fixed:
        return "this camera lets nobody set its exposure"
    if offered.modes:
        _set(ask, EXPOSURE_AUTO, MANUAL if MANUAL in offered.modes else SHUTTER_PRIORITY)
    _set(ask, EXPOSURE_ABSOLUTE, round(min(max(exposure_ms, offered.least_ms), offered.most_ms) * UNITS_PER_MS))
    _, units = CONTROL.unpack(ask(G_CTRL, CONTROL.pack(EXPOSURE_ABSOLUTE, 0)))
    return f"{units / UNITS_PER_MS:g} ms"


def _control(ask: Ask, number: int) -> tuple[int, int] | None:
    """Least and greatest value; None where the device has no such control, or it cannot be set."""
    try:
        fields = QUERY.unpack(ask(QUERYCTRL, QUERY.pack(number, 0, b"", 0, 0, 0, 0, 0)))
    except OSError:
        return None
    return None if fields[7] & (DISABLED | READ_ONLY) else (fields[3], fields[4])


def _has_entry(ask: Ask, mode: int) -> bool:
    try:
        ask(QUERYMENU, MENU.pack(EXPOSURE_AUTO, mode, b""))
    except OSError:
        return False
    return True


def _set(ask: Ask, number: int, value: int) -> None:
    ask(S_CTRL, CONTROL.pack(number, value))

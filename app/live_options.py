"""From what stands on the command line to parts of the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.errors import UsageError
from app.settings import InputSettings, parse_size

FIRST_FREE = "auto"
"""What `--virtual-camera` means without a device."""

CONTROL_PORT = 17380
"""What `--control` means without a port: a script or a Stream Deck can be set up once."""

ABOUT_THE_WINDOW = ("--minimised", "--live", "--verbose", "--control")
"""Options that say nothing about the picture."""


def asks_for_nothing(arguments: Sequence[str]) -> bool:
    """Whether the window opens as it was left. `--input synthetic:` asks for something, though it is what is meant without it."""
    is_port = [False, *(word == "--control" for word in arguments[:-1])]
    return all(
        word.partition("=")[0] in ABOUT_THE_WINDOW or (follows and word.isdigit())
        for word, follows in zip(arguments, is_port, strict=False)
    )


def usage(parse: Callable[[str], Any], text: str) -> Any:
    """What ``parse`` makes of ``text``; its ``ValueError`` as a ``UsageError``."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def input_settings(
    spec: str,
    size: str | None,
    fps: float | None,
    fourcc: str | None,
    framed: Mapping[str, Any],
    loop: bool = False,
    timecode: bool = False,
) -> InputSettings:
    """``framed``: of ``CameraOptions``. Raises ``UsageError`` for a size that is none."""
    width, height = (None, None) if size is None else usage(parse_size, size)
    return InputSettings(spec=spec, width=width, height=height, fps=fps, fourcc=fourcc, loop=loop, timecode=timecode, **framed)


def virtual_camera_setting(device: str | None) -> str | None:
    """The settings call the first free one by an empty name."""
    return "" if device == FIRST_FREE else device


def streams_of(names: Sequence[str]) -> list[str]:
    """Whole addresses of the address book, which is only opened where one is asked for. Raises ``AddressError``."""
    if not names:
        return []
    from app.addresses import AddressBook

    book = AddressBook()
    return [book.url(name) for name in names]

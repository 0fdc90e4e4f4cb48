"""What a person asked of an input, and how its SPEC is taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rt.errors import OptionError


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """None leaves the choice to the source."""

    width: int | None = None
    height: int | None = None
    fps: float | None = None
    fourcc: str | None = None
    """Four letters, as in MJPG."""
    loop: bool = False
    """Start a file again at its end."""
    reconnect: bool = False
    """An address whose stream ends was lost, and may come back; otherwise it was at its end."""
    realtime: bool = True
    """False reads a file as fast as it is taken, for a job that nobody watches."""


def parse_options(spec: str, known: Mapping[str, str]) -> dict[str, str]:
    """``name:a=1,b=2`` → {"a": "1", "b": "2"}. ``known``: option → what it accepts. Raises ``OptionError`` for an unknown one."""
    name, _, text = spec.partition(":")
    options: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if key not in known or not equals:
            accepted = ", ".join(f"{option}={value}" for option, value in known.items())
            raise OptionError(f"{name}: option {part!r} was given; accepted are {accepted}")
        options[key] = value
    return options

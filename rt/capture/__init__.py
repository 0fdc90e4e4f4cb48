"""Where pictures come from. A source is one file that registers itself; ``open_spec`` finds the one that a SPEC names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engines.registry import Registry
from rt.capture.contract import Source
from rt.capture.request import CaptureRequest
from rt.clock import Clock
from rt.errors import OptionError


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source, as its file registers it."""

    recognises: Callable[[str], bool]
    """Whether a SPEC is this kind's. The kinds are asked in the order of their ``rank``."""
    make: Callable[[str, CaptureRequest, Clock], Source]
    """``make(spec, request, clock)``; opens nothing yet; raises ``OptionError`` for a SPEC that means nothing."""
    rank: int = 0
    """Higher is asked later: a file may be called anything, so files come last."""


ACCEPTED = (
    "give a camera (its number, path or name; `ffrt cameras` lists them), a video file, an address (rtmp, rtsp, http, udp, …), "
    "synthetic:, or - for standard input"
)

ROOMS = tuple(f"{__name__}.{module}" for module in ("camera", "media", "nvdec", "pipe", "synthetic"))

sources: Registry[SourceKind] = Registry("source", *ROOMS)


def open_spec(spec: str, request: CaptureRequest, clock: Clock) -> Source:
    """The source that ``spec`` names: ``synthetic:…``, ``-``/``pipe:…``, a camera's number, path or name, a file, an address.

    Opens nothing yet. Raises ``OptionError`` for one that means nothing.
    """
    kinds = sorted((sources[name] for name in sources), key=lambda kind: kind.rank)
    kind = next((kind for kind in kinds if spec.strip() and kind.recognises(spec)), None)
    if kind is None:
        raise OptionError(f"input {spec!r} was given; {ACCEPTED}")
    return kind.make(spec, request, clock)

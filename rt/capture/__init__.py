"""Where pictures come from. A source is one file that registers itself; ``open_spec`` finds the one that a SPEC names."""

from __future__ import annotations

from collections.abc import Callable

from engines.registry import Registry
from rt.capture.contract import Source
from rt.capture.request import CaptureRequest
from rt.clock import Clock
from rt.errors import OptionError

SourceMaker = Callable[[str, CaptureRequest, Clock], Source]
"""``make(spec, request, clock)``; opens nothing yet; raises ``OptionError`` for a SPEC that means nothing."""

ACCEPTED = (
    "give a camera (its number, path or name; `ffrt cameras` lists them), a video file, an address (rtmp, rtsp, http, udp, …), "
    "synthetic:, or - for standard input"
)

sources: Registry[SourceMaker] = Registry("source")

from rt.capture import camera, media, pipe, synthetic  # noqa: E402, F401  each registers itself


def open_spec(spec: str, request: CaptureRequest, clock: Clock) -> Source:
    """The source that ``spec`` names: ``synthetic:…``, ``-``/``pipe:…``, a camera's number, path or name, a file, an address.

    Opens nothing yet. Raises ``OptionError`` for one that means nothing.
    """
    if not spec.strip():
        raise OptionError(f"input {spec!r} was given; {ACCEPTED}")
    for name, recognises in (
        ("synthetic", synthetic.recognises),
        ("pipe", pipe.recognises),
        ("camera", camera.recognises),
    ):
        if recognises(spec):
            return sources[name](spec, request, clock)
    return sources["media"](spec, request, clock)

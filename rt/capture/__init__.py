"""Where pictures come from. A source is one file that registers itself; ``open_spec`` finds the one that a SPEC names."""

from __future__ import annotations

from collections.abc import Callable

from engines.registry import Registry
from rt.capture.contract import Source
from rt.capture.request import CaptureRequest
from rt.clock import Clock

SourceMaker = Callable[[str, CaptureRequest, Clock], Source]
"""``make(spec, request, clock)``; opens nothing yet; raises ``OptionError`` for a SPEC that means nothing."""

sources: Registry[SourceMaker] = Registry("source")

from rt.capture import camera, media, pipe, synthetic  # noqa: E402  each registers itself


def open_spec(spec: str, request: CaptureRequest, clock: Clock) -> Source:
    """The source that ``spec`` names: ``synthetic:…``, ``-``/``pipe:…``, a camera's number, path or name, a file, an address."""
    for name, recognises in (
        ("synthetic", synthetic.recognises),
        ("pipe", pipe.recognises),
        ("camera", camera.recognises),
    ):
        if recognises(spec):
            return sources[name](spec, request, clock)
    return sources["media"](spec, request, clock)

"""Outputs. A new one is a file that registers itself here and is imported below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engines.registry import Registry

sinks: Registry[Callable[..., Any]] = Registry("sink")
"""Name → class of the sink; what it is made with differs from one to the next."""

from rt.sinks import null, recorder, stream, virtual_camera  # noqa: F401  (they register themselves)

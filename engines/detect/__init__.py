"""Detectors, one family a file. A new one is a new file that registers itself, and a line here."""

from __future__ import annotations

from collections.abc import Callable

from engines.detect.contract import Detector
from engines.registry import Registry

detectors: Registry[Callable[[], Detector]] = Registry("detector")

from engines.detect import blazeface as _blazeface  # noqa: E402, F401  registers itself
from engines.detect import scrfd, yoloface, yunet  # noqa: E402, F401  register themselves

"""Detectors, one family a file. A new one is a new file that registers itself."""

from __future__ import annotations

from collections.abc import Callable

from engines.detect.contract import Detector
from engines.registry import Registry

detectors: Registry[Callable[[], Detector]] = Registry("detector", __name__)

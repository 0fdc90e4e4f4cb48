"""Swappers, one family a file or folder. A new one registers itself where it stands."""

from __future__ import annotations

from collections.abc import Callable

from engines.registry import Registry
from engines.swap.contract import Swapper

swappers: Registry[Callable[[], Swapper]] = Registry("swapper", __name__)

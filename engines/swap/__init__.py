"""Swappers, one family a file or folder. A new one registers itself, and is named in the last line."""

from __future__ import annotations

from collections.abc import Callable

from engines.registry import Registry
from engines.swap.contract import Swapper

swappers: Registry[Callable[[], Swapper]] = Registry("swapper")

from engines.swap import blendswap, dfm, ghost, hififace, hyperswap, inswapper, simswap, uniface  # noqa: E402, F401  register themselves
from engines.swap import echo as _echo  # noqa: E402, F401  registers itself
from engines.swap.mesh import swapper as _mesh  # noqa: E402, F401  registers itself

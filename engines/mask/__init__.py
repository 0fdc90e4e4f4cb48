"""Masks: what of a patch is to be seen. A family is a file in this folder, named in the last lines."""

from __future__ import annotations

from collections.abc import Callable

from engines.mask.contract import Mask
from engines.registry import Registry

masks: Registry[Callable[..., Mask]] = Registry("mask")
"""Those that need no model's file; those that do are in ``engines.family.families``."""

from engines.mask import bisenet, hands, mouth, xseg  # noqa: E402, F401  register themselves

"""Masks: what of a patch is to be seen. A family is one file in this folder."""

from __future__ import annotations

from collections.abc import Callable

from engines.mask.contract import Mask
from engines.registry import Registry

masks: Registry[Callable[..., Mask]] = Registry("mask", __name__)
"""Those that need no model's file; those that do are in ``engines.family.families``."""

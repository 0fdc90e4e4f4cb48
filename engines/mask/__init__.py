"""Masks: what of a patch is to be seen. A family is one file in this folder."""

from __future__ import annotations

from collections.abc import Callable

from engines.mask.contract import Mask
from engines.registry import Registry, import_all

masks: Registry[Callable[..., Mask]] = Registry("mask")
"""Those that need no model's file; those that do are in ``engines.family.families``."""

import_all(__name__, __path__)

"""Loads without the garbage collector.

A collector that goes over some hundred thousand objects of numba, NumPy and Qt holds the interpreter, and with it the window and the
line, for 50 to 100 ms, and finds nothing: they live to the end. So what is loaded is put out of its sight once and for all, and nothing
asks for a collection while a line starts, runs or ends; the collections that come by themselves see only what a run has made.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """What is made within stays: the collector does not look through it, neither while it grows (a fifth of a start) nor later.

    Where nothing was loaded after all, nothing is put out of sight: a second window's session would never be freed.
    """
    before = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        gc.enable()

"""Loops over pixels, compiled by numba when they are first run.

numba takes longer to import than most commands to answer: who lists models or asks for help does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any


class Compiled:
    """A function that is compiled at its first call, without the interpreter's lock. Any thread.

    Compiled code is cached beside its file. A compiled function cannot call another one of this kind.
    """

    def __init__(self, function: Callable[..., Any], signature: str | None) -> None:
        self._function = function
        self._signature = signature

    def __call__(self, *arguments: Any) -> Any:
        return self._compiled(*arguments)

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        import numba

        compiled: Callable[..., Any] = numba.njit(self._signature, cache=True, nogil=True)(self._function)
        return compiled


def compiled(signature: str | None = None) -> Callable[[Callable[..., Any]], Compiled]:
    """Decorator. ``signature``: of the one machine code there is to be, as numba writes it; None makes one for every set of types."""
    return lambda function: Compiled(function, signature)

"""Names to factories: how a source, a sink, a swapper or a runtime becomes known by standing in a file of its own."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Filled while modules are imported, read afterwards."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator. Raises ValueError for a name that is taken."""

        def enter(entry: T) -> T:
            if name in self._entries:
                raise ValueError(f"two {self._kind}s are called {name!r}; names must differ")
            self._entries[name] = entry
            return entry

        return enter

    def __getitem__(self, name: str) -> T:
        """Raises KeyError with the known names in its text."""
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(sorted(self._entries)) or "none"
            raise KeyError(f"no {self._kind} is called {name!r}; known are: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))


def import_all(package: str, folders: Iterable[str]) -> None:
    """Imports every module of ``package`` (``folders``: its ``__path__``), so that what stands in them registers itself.

    A new part is then one new file, which is named nowhere else.
    """
    for module in pkgutil.iter_modules(folders):
        importlib.import_module(f"{package}.{module.name}")

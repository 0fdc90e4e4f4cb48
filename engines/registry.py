"""Names to factories: how a source, a swapper, a family or a runtime becomes known by standing in a file of its own."""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Filled by the modules of its rooms, which are imported when it is first read. Any thread."""

    def __init__(self, kind: str, *rooms: str) -> None:
        """``rooms``: packages every module of which is imported, and single modules."""
        self._kind = kind
        self._entries: dict[str, T] = {}
        self._rooms = rooms  # guarded by _filling
        self._filling = threading.RLock()

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
        self._fill()
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(sorted(self._entries)) or "none"
            raise KeyError(f"no {self._kind} is called {name!r}; known are: {known}") from None

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return iter(sorted(self._entries))

    def _fill(self) -> None:
        with self._filling:
            rooms, self._rooms = self._rooms, ()  # taken away first: what is imported may read this registry
            for room in rooms:
                import_all(room)


def import_all(room: str) -> None:
    """Imports ``room`` and, where it is a package, every module in it, so that what stands there registers itself.

    A new part is then one new file, which is named nowhere else.
    """
    package = importlib.import_module(room)
    for module in pkgutil.iter_modules(getattr(package, "__path__", [])):
        importlib.import_module(f"{room}.{module.name}")

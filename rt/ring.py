"""How a frame changes hands: slots that hold pixels, and mailboxes that hold the newest.

The steady state allocates nothing: pixels live in slots made once, a slot returns to its ring when the last holder lets go,
and a mailbox holds a number of items that was decided beforehand.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")

Allocate = Callable[[tuple[int, int, int]], np.ndarray]
"""Makes a slot's memory; a CUDA lane gives one that returns page-locked memory."""


def _plain_memory(shape: tuple[int, int, int]) -> np.ndarray:
    return np.zeros(shape, np.uint8)


class Slot:
    """Memory for one picture, counted by its holders. Made by a ``SlotRing``."""

    def __init__(self, ring: SlotRing, pixels: np.ndarray) -> None:
        self._ring = ring
        self.pixels = pixels
        """uint8 [H, W, 3]; written by the one owner, read-only once it has several holders."""
        self.holders = 0
        """Guarded by the ring's lock."""

    def retain(self, count: int = 1) -> None:
        """Adds holders. Any thread that is a holder itself."""
        self._ring._change(self, count)

    def release(self) -> None:
        """Lets go; the slot is free again when nobody holds it. Raises RuntimeError when nobody does already."""
        self._ring._change(self, -1)


class SlotRing:
    """Slots of one size; there are more only once ``grow_to`` says so. Any thread."""

    def __init__(self, count: int, height: int, width: int, allocate: Allocate = _plain_memory) -> None:
        if count < 1:
            raise ValueError(f"a ring of {count} slots cannot hold a frame; give 1 or more")
        self._lock = threading.Lock()
        self._memory = partial(allocate, (height, width, 3))
        self._count = count  # guarded by _lock, as is all below
        self._held = 0
        self._free = deque(self._made(count))
        self._is_closed = False
        self._freed = threading.Condition(self._lock)

    def grow_to(self, count: int) -> None:
        """Adds free slots until there are ``count``; where there are as many already, does nothing."""
        more = self._made(count - len(self))
        with self._freed:
            self._count += len(more)
            self._free.extend(more)
            self._freed.notify_all()

    def close(self) -> None:
        """Gives the memory back: that of free slots at once, that of others as their holders let go. None comes free any more."""
        with self._freed:
            self._is_closed = True
            self._free.clear()  # a ring and its slots know each other, and would wait for the garbage collector

    def acquire(self, timeout_s: float = 0.0) -> Slot | None:
        """A free slot with the caller as its one holder; None when none comes free in time."""
        with self._freed:
            if not self._free and not self._freed.wait_for(lambda: bool(self._free), timeout_s):
                return None
            slot = self._free.popleft()
            slot.holders = 1
            self._held += 1
            return slot

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        with self._lock:
            return self._count - self._held

    def __len__(self) -> int:
        with self._lock:
            return self._count

    def _made(self, count: int) -> list[Slot]:
        return [Slot(self, self._memory()) for _ in range(count)]

    def _change(self, slot: Slot, by: int) -> None:
        with self._freed:
            if slot.holders < 1:
                raise RuntimeError("a slot that nobody holds was retained or released; its pixels may belong to another frame")
            slot.holders += by
            if slot.holders == 0:
                self._held -= 1
                if not self._is_closed:
                    self._free.append(slot)
                    self._freed.notify()


class Closed(Exception):
    """The mailbox is closed and nothing is left in it."""


class Mailbox(Generic[T]):
    """What stands between two threads: holds ``depth`` items; when full, the oldest gives way (or the sender waits, if lossless)."""

    def __init__(self, depth: int = 1, lossless: bool = False) -> None:
        if depth < 1:
            raise ValueError(f"a mailbox of depth {depth} cannot hold an item; give 1 or more")
        self._depth = depth
        self._lossless = lossless
        self._changed = threading.Condition()
        self._items: deque[T] = deque()  # guarded by _changed, as is all below
        self._closed = False

    def put(self, item: T) -> T | None:
        """Leaves an item; returns what did not fit: the oldest item, or this one when the box is closed.

        The caller owns what it gets back. A lossless box blocks while it is full instead.
        """
        with self._changed:
            if self._lossless:
                self._changed.wait_for(lambda: self._closed or len(self._items) < self._depth)
            if self._closed:
                return item
            displaced = self._items.popleft() if len(self._items) == self._depth else None
            self._items.append(item)
            self._changed.notify_all()
            return displaced

    def take(self, timeout_s: float | None = None) -> T | None:
        """The oldest item, waited for; None when none comes in time. Raises ``Closed`` when none will ever come."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._items), timeout_s)
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._closed:
                raise Closed
            return None

    def close(self) -> None:
        """No further item is let in; what is inside can still be taken. Wakes everyone who waits. May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drain(self) -> list[T]:
        """Takes everything at once, for the one who clears up."""
        with self._changed:
            items = list(self._items)
            self._items.clear()
            self._changed.notify_all()
            return items

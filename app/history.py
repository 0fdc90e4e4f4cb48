"""Undo and redo: the looks that were, and the one that is. Pure; the window holds one, and applies what it is given back."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel

Value = TypeVar("Value")
Settings = TypeVar("Settings", bound=BaseModel)

LENGTH_MAX = 200
"""Steps that can be taken back: more than an evening's."""


class History(Generic[Value]):
    """Values are immutable and compared with ``==``. One thread."""

    def __init__(self, first: Value, length_max: int = LENGTH_MAX) -> None:
        """Raises ``ValueError`` for a length under 1."""
        if length_max < 1:
            raise ValueError(f"a length of {length_max} was given; give 1 or more")
        self._length_max = length_max
        self._values = [first]
        self._at = 0
        self._drag: str | None = None

    @property
    def now(self) -> Value:
        return self._values[self._at]

    @property
    def can_undo(self) -> bool:
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        return self._at < len(self._values) - 1

    def push(self, value: Value, *, drag: str | None = None) -> None:
        """``value`` is the new now; what could be redone is gone. One that is the now already changes nothing.

        ``drag``: the control that is being dragged. Its pushes are one step until ``settle``, or a push without it or of another.
        A drag that ends where it began is no step.
        """
        if value != self.now:
            goes_on = drag is not None and drag == self._drag
            del self._values[self._at + 1 :]
            if goes_on:
                self._values.pop()
            if not self._values or self._values[-1] != value:
                self._values.append(value)
            else:  # back where it began: dragging on begins a step again
                drag = None
            del self._values[: -self._length_max - 1]
            self._at = len(self._values) - 1
            self._drag = drag
        elif drag != self._drag:
            self._drag = None

    def settle(self) -> None:
        """The drag is over: the next one of the same control is a step of its own."""
        self._drag = None

    def undo(self) -> Value:
        """The value before, which is now the now; the first stays."""
        self.settle()
        self._at = max(0, self._at - 1)
        return self.now

    def redo(self) -> Value:
        """What was undone last, which is now the now; the last stays."""
        self.settle()
        self._at = min(len(self._values) - 1, self._at + 1)
        return self.now


def with_default(settings: Settings, *fields: str) -> Settings:
    """``settings`` with these fields as they are when nobody has set them. Raises ``KeyError`` for an unknown one."""
    known = type(settings).model_fields
    return settings.model_copy(update={name: known[name].get_default(call_default_factory=True) for name in fields})


def changed_fields(settings: BaseModel) -> frozenset[str]:
    """Those that are not as by default: where a reset has something to do."""
    fields = type(settings).model_fields.items()
    return frozenset(name for name, field in fields if getattr(settings, name) != field.get_default(call_default_factory=True))

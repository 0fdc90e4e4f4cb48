"""A card whose rows are fields of one part of the Settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from PySide6.QtCore import Signal

from app.gui.cards.card import Bench, Card, changed
from app.gui.fields import Choice, ChoiceField, Field, SliderField, bounds
from app.settings import Settings

DEFAULTS = Settings()


class PartCard(Card):
    """Main thread."""

    dragged = Signal(object, str)
    """A ``Change`` and the name of the setting: one step of the history until ``settled``."""
    settled = Signal()

    def __init__(self, heading: str, bench: Bench, part: str) -> None:
        """``part``: of the Settings, as in ``look``."""
        super().__init__(heading, bench)
        self.fields: dict[str, Field] = {}
        self._matters: dict[str, Callable[[Any], bool]] = {}
        self._part = part
        self._defaults = getattr(DEFAULTS, part)

    def add(self, name: str, field: Field) -> None:
        self.fields[name] = field
        field.wished.connect(partial(self._wish, name))
        field.settled.connect(self.settled)
        self.column.addWidget(field)

    def slider(self, name: str, title: str, step: float, hint: str = "") -> None:
        low, high = bounds(type(self._defaults), name)
        self.add(name, SliderField(title, self.bench.theme, low, high, step, hint))

    def choice(self, name: str, title: str, choices: Iterable[Choice] = (), hint: str = "") -> None:
        field = ChoiceField(title, self.bench.theme, hint)
        field.offer(tuple(choices))
        self.add(name, field)

    def matters(self, names: Iterable[str], where: Callable[[Any], bool]) -> None:
        """These rows are shown where ``where`` says so of the part of the Settings, and where they can be set back."""
        self._matters |= dict.fromkeys(names, where)

    def show_settings(self, settings: Settings) -> None:
        part = getattr(settings, self._part)
        for name, field in self.fields.items():
            field.show_value(getattr(part, name), getattr(self._defaults, name))
            if name in self._matters:
                field.setVisible(self._matters[name](part) or field.is_changed)

    def _wish(self, name: str, value: Any) -> None:
        change = changed(self._part, **{name: value})
        if self.fields[name].is_dragged:
            self.dragged.emit(change, name)
        else:
            self.changed.emit(change)

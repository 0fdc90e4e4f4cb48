"""The pages: a rail of names, and beside it the cards of the page that is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QScrollArea, QSizePolicy, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.gui.cards.card import Card
from app.gui.icons import icon
from app.gui.theme import Theme

PAGE_PX = 346
"""Least width of the cards: they are columns of short lines, and the picture is to have the rest."""

RAIL_PX = 76


class Pages(QWidget):
    """Main thread."""

    def __init__(self, theme: Callable[[], Theme], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.cards: list[Card] = []
        self.foot = QVBoxLayout()
        """What stands below every page."""
        self._names: list[str] = []
        self._stack = QStackedWidget(self)
        self._stack.setMinimumWidth(PAGE_PX)
        self._stack.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Expanding)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self._group.idToggled.connect(lambda at, on: self._stack.setCurrentIndex(at) if on else None)
        self._rail = QVBoxLayout()
        self._rail.setSpacing(4)
        self._rail.addStretch(1)
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addWidget(self._stack, 1)
        column.addLayout(self.foot)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(12)
        line.addLayout(self._rail)
        line.addLayout(column)

    @property
    def count(self) -> int:
        return self._stack.count()

    @property
    def current(self) -> str:
        """The name of the page that is open."""
        return self._names[self._stack.currentIndex()]

    def add(self, name: str, title: str, cards: Sequence[Card]) -> None:
        """``name``: of its icon; ``title``: for people."""
        button = QToolButton()
        button.setObjectName("rail")
        button.setText(title)
        button.setAccessibleName(title)
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        button.setIconSize(QSize(24, 24))
        button.setIcon(icon(name, self._theme().muted, self._theme().accent))
        button.setMinimumWidth(RAIL_PX)
        button.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._rail.insertWidget(len(self._names), button)
        self._group.addButton(button, len(self._names))
        self._names.append(name)
        self._add_scrolled(cards)
        self.cards += cards
        if self.count == 1:
            button.setChecked(True)

    def _add_scrolled(self, cards: Sequence[Card]) -> None:
        """From the outside in: a style sheet looks at all within whatever is given another parent."""
        area, page = _Page(self._stack), QWidget()
        self._stack.addWidget(area)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(page)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for card in cards:
            column.addWidget(card)
        column.addStretch(1)

    def open(self, at: int) -> None:
        """By its place, from 0."""
        button = self._group.button(at)
        button.setChecked(True)
        button.setFocus()

    def open_named(self, name: str) -> None:
        """Does nothing where there is no such page."""
        if name in self._names:
            self._group.button(self._names.index(name)).setChecked(True)


class _Page(QScrollArea):
    """As wide as its cards need, in any language: it scrolls downwards alone."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's names
        page, bar = self.widget(), self.verticalScrollBar()
        wide = 0 if page is None else page.minimumSizeHint().width() + bar.sizeHint().width()
        return QSize(max(PAGE_PX, wide), super().minimumSizeHint().height())

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(self.minimumSizeHint().width(), super().sizeHint().height())

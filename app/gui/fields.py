"""Rows for one setting each: a label, a control, and a button that sets it back. Bounds come from the Settings themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from PySide6.QtCore import QPointF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QLineEdit, QSlider, QSpinBox, QToolButton, QVBoxLayout, QWidget

from app.gui.cards.card import row
from app.gui.icons import icon
from app.gui.theme import Theme
from app.gui.words import tr


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a list."""

    value: Any
    text: str
    reason: str = ""
    """Why it cannot be chosen; empty where it can."""


def bounds(model: type[BaseModel], name: str) -> tuple[float, float]:
    """The least and the greatest value that ``model`` accepts for ``name``."""
    given = model.model_fields[name].metadata
    low, high = (next(value for item in given if (value := getattr(item, key, None)) is not None) for key in ("ge", "le"))
    return float(low), float(high)


class Field(QWidget):
    """One row. Main thread."""

    wished = Signal(object)
    """The value that a person chose."""
    settled = Signal()
    """A drag of the control is over."""
    is_dragged = False
    """Whether one wish of a person may be many of the control."""

    def __init__(self, title: str, theme: Callable[[], Theme], hint: str = "") -> None:
        super().__init__()
        self.title = title
        self.label = QLabel(title)
        self.label.setToolTip(hint)
        self.label.setWordWrap(True)
        self.reset = QToolButton()
        self.reset.setObjectName("quiet")
        self.reset.setIcon(icon("reset", theme().muted, side=18))
        self.reset.setToolTip(tr("Set back: {name}").format(name=title))
        self.reset.setAccessibleName(self.reset.toolTip())
        self.reset.clicked.connect(lambda: self.wished.emit(self.default))
        self.default: Any = None
        self.is_changed = False
        """Whether it is set to something else than it is by itself."""
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(4)

    def show_value(self, value: Any, default: Any) -> None:
        self.default = default
        policy = self.reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(policy)
        self.reset.setVisible(value != default)
        self.is_changed = bool(value != default)


class SliderField(Field):
    """A number between two bounds."""

    is_dragged = True

    def __init__(self, title: str, theme: Callable[[], Theme], low: float, high: float, step: float, hint: str = "") -> None:
        super().__init__(title, theme, hint)
        self._low, self._high, self._step = low, high, step
        self._whole = float(step).is_integer()
        self.slider = _Slider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, round((high - low) / step))
        self.slider.setPageStep(max(1, self.slider.maximum() // 10))
        self.slider.setAccessibleName(title)
        self.slider.setToolTip(hint)
        self.slider.valueChanged.connect(self._choose)
        self.slider.sliderReleased.connect(self.settled)
        self.number = QLabel()
        self.number.setObjectName("value")
        self.label.setBuddy(self.slider)
        self.number.setMinimumWidth(46)  # of the longest, so that the button beside it stays where it is
        self.number.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        self.column.addLayout(row(self.label, self.reset, self.number))
        self.column.addWidget(self.slider)

    def show_value(self, value: float, default: float) -> None:
        super().show_value(value, default)
        with QSignalBlocker(self.slider):
            if not self.slider.isSliderDown():  # what comes back late must not pull it out of the hand
                self.slider.setValue(round((value - self._low) / self._step))
        self.number.setText(self._words(value))

    def _words(self, value: float) -> str:
        """A whole number, a share in hundredths, or how many times as much."""
        if self._whole:
            return f"{value:.0f}"
        return f"{value * 100:.0f} %" if self._high <= 1 else f"× {value:.2f}"

    def _choose(self, position: int) -> None:
        value = self._low + position * self._step
        self.wished.emit(round(value) if self._whole else round(value, 4))


class ChoiceField(Field):
    """One of several. What cannot be chosen is grey, and says why."""

    def __init__(self, title: str, theme: Callable[[], Theme], hint: str = "") -> None:
        super().__init__(title, theme, hint)
        self.box = Combo()
        self.box.setAccessibleName(title)
        self.box.setToolTip(hint)
        self.box.activated.connect(lambda at: self.wished.emit(self.box.itemData(at)))
        self.label.setBuddy(self.box)
        self.column.addLayout(row(self.label, self.reset))
        self.column.addWidget(self.box)
        self._value: Any = None

    def offer(self, choices: Sequence[Choice]) -> None:
        fill(self.box, choices, self._value)

    def show_value(self, value: Any, default: Any) -> None:
        super().show_value(value, default)
        self._value = value
        select(self.box, value)


class SwitchField(Field):
    """On or off."""

    def __init__(self, title: str, theme: Callable[[], Theme], hint: str = "") -> None:
        super().__init__(title, theme, hint)
        self.box = QCheckBox(title)
        self.box.setToolTip(hint)
        self.box.clicked.connect(lambda: self.wished.emit(self.box.isChecked()))
        self.column.addLayout(row(self.box, 1, self.reset))

    def show_value(self, value: bool, default: bool) -> None:
        super().show_value(value, default)
        self.box.setChecked(value)


class SidesField(Field):
    """A share for each side of a picture: left, top, right, bottom."""

    is_dragged = True  # an arrow that is held down counts on

    def __init__(self, title: str, theme: Callable[[], Theme], hint: str = "") -> None:
        super().__init__(title, theme, hint)
        self.sides = [_Percent(f"{title}: {side}", side) for side in (tr("Left"), tr("Top"), tr("Right"), tr("Bottom"))]
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(6)
        for place, side in enumerate(self.sides):
            side.setToolTip(hint)
            side.valueChanged.connect(self._choose)
            side.editingFinished.connect(self.settled)
            name = QLabel(side.side)
            name.setObjectName("muted")
            name.setBuddy(side)
            grid.addWidget(name, place // 2, 2 * (place % 2))
            grid.addWidget(side, place // 2, 2 * (place % 2) + 1)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)
        self.label.setBuddy(self.sides[0])
        self.column.addLayout(row(self.label, self.reset))
        self.column.addLayout(grid)

    def show_value(self, value: Sequence[float], default: Sequence[float]) -> None:
        super().show_value(value, default)
        for side, share in zip(self.sides, value, strict=True):
            with QSignalBlocker(side):
                side.setValue(round(share * 100))

    def _choose(self) -> None:
        self.wished.emit(tuple(side.value() / 100 for side in self.sides))


class TextField(Field):
    """A line of words."""

    def __init__(self, title: str, theme: Callable[[], Theme], longest: int, example: str = "", hint: str = "") -> None:
        super().__init__(title, theme, hint)
        self.line = QLineEdit()
        self.line.setMaxLength(longest)
        self.line.setPlaceholderText(example)
        self.line.setAccessibleName(title)
        self.line.setToolTip(hint)
        self.line.editingFinished.connect(self._choose)
        self.label.setBuddy(self.line)
        self.column.addLayout(row(self.label, self.reset))
        self.column.addWidget(self.line)
        self._value = ""

    def show_value(self, value: str, default: str) -> None:
        super().show_value(value, default)
        self._value = value
        if not self.line.hasFocus() or self.line.text().strip() == value:
            self.line.setText(value)

    def _choose(self) -> None:
        if self.line.text().strip() != self._value:
            self.wished.emit(self.line.text().strip())


class ChecksField(Field):
    """Any number of several."""

    def __init__(self, title: str, theme: Callable[[], Theme], hint: str = "") -> None:
        super().__init__(title, theme, hint)
        self.boxes: dict[Any, QCheckBox] = {}
        self.column.addLayout(row(self.label, self.reset))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(6)
        self.column.addLayout(self._rows)
        self._value: tuple[Any, ...] = ()

    def offer(self, choices: Sequence[Choice]) -> None:
        for box in self.boxes.values():
            box.deleteLater()
        self.boxes.clear()
        for choice in choices:
            box = QCheckBox(choice.text)
            box.setEnabled(not choice.reason)
            box.setToolTip(choice.reason)
            box.setAccessibleName(f"{self.title}: {choice.text}")
            box.setAccessibleDescription(choice.reason)
            box.clicked.connect(self._choose)
            self.boxes[choice.value] = box
            self._rows.addWidget(box)
        self.show_value(self._value, self.default)

    def show_value(self, value: tuple[Any, ...], default: Any) -> None:
        super().show_value(value, default)
        self._value = value
        for name, box in self.boxes.items():
            box.setChecked(name in value)

    def _choose(self) -> None:
        others = tuple(name for name in self._value if name not in self.boxes)
        self.wished.emit((*(name for name, box in self.boxes.items() if box.isChecked()), *others))


class _Slider(QSlider):
    """A page that is scrolled must not move what lies under the wheel."""

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802  Qt's name
        event.ignore()


class _Percent(QSpinBox):
    def __init__(self, name: str, side: str) -> None:
        super().__init__()
        self.side = side
        self.setAccessibleName(name)
        self.setRange(0, 95)
        self.setSuffix(" %")
        self.setKeyboardTracking(False)  # a number that is half typed is none

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        event.ignore()


class Combo(QComboBox):
    """As wide as its place and not as its longest entry."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802  Qt's names
        """With the chevron that a style sheet takes away."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().color(QPalette.ColorRole.PlaceholderText), 1.5))
        x = 16 if self.layoutDirection() == Qt.LayoutDirection.RightToLeft else self.width() - 16
        y = self.height() / 2
        painter.drawPolyline(QPolygonF([QPointF(x - 4, y - 2), QPointF(x, y + 2), QPointF(x + 4, y - 2)]))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        event.ignore()


def fill(box: QComboBox, choices: Sequence[Choice], value: Any) -> None:
    """Offers ``choices`` with ``value`` chosen."""
    box.clear()
    for choice in choices:
        box.addItem(choice.text, choice.value)
        if choice.reason:
            at = box.count() - 1
            box.setItemData(at, choice.reason, Qt.ItemDataRole.ToolTipRole)
            box.model().item(at).setEnabled(False)  # type: ignore[attr-defined]
    select(box, value)


def select(box: QComboBox, value: Any) -> None:
    """Chooses ``value``; one that is not offered (a model's path, a preset from elsewhere) is added; None is no choice then."""
    at = next((at for at in range(box.count()) if box.itemData(at) == value), -1)
    if at < 0 and value is not None:
        box.addItem(str(value), value)
        at = box.count() - 1
    box.setCurrentIndex(at)

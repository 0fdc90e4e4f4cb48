"""Colours and shapes of the window: one accent colour, a light and a dark palette, one style sheet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as #rrggbb."""

    page: str
    card: str
    line: str
    text: str
    muted: str
    accent: str
    accent_hover: str
    on_accent: str
    good: str
    warn: str
    bad: str
    stage: str
    """Behind the picture."""
    tick: str
    """Of a checked box, in ``on_accent``: a file beside this one."""


LIGHT = Theme(
    page="#f5f5f7",
    card="#ffffff",
    line="#e2e2e7",
    text="#1c1c21",
    muted="#62626c",
    accent="#4453d6",
    accent_hover="#3745c0",
    on_accent="#ffffff",
    good="#1f8a4c",
    warn="#a86400",
    bad="#c8323c",
    stage="#e9e9ee",
    tick="tick_light.svg",
)
DARK = Theme(
    page="#17181c",
    card="#212329",
    line="#33363f",
    text="#f1f1f4",
    muted="#a0a3ae",
    accent="#8490ff",
    accent_hover="#98a2ff",
    on_accent="#11131f",
    good="#4cc585",
    warn="#e0a84a",
    bad="#f0717a",
    stage="#0e0f12",
    tick="tick_dark.svg",
)

_SHEET = Template("""
* { font-size: 14px; color: $text; }
QWidget#page, QScrollArea, QScrollArea > QWidget > QWidget { background: $page; border: none; }
QFrame#card { background: $card; border: 1px solid $line; border-radius: 12px; }
QLabel { background: transparent; }
QLabel#title { font-size: 26px; font-weight: 600; }
QLabel#heading { font-size: 16px; font-weight: 600; }
QLabel#muted { color: $muted; font-size: 13px; }
QLabel#value { font-size: 13px; font-weight: 600; }
QLabel#number { font-size: 19px; font-weight: 600; }
QLabel#warn { color: $warn; font-size: 13px; }
QFrame#notice { background: $card; border: 1px solid $warn; border-radius: 10px; }
QFrame#row { background: transparent; border: none; }
QToolButton#quiet { background: transparent; border: 1px solid transparent; padding: 2px 5px; min-height: 18px; color: $muted; }
QToolButton#quiet:hover, QToolButton#quiet:focus { border-color: $accent; }
QToolButton#rail { background: transparent; border: 1px solid transparent; border-radius: 10px; padding: 8px 6px; color: $muted;
  font-size: 12px; }
QToolButton#rail:hover, QToolButton#rail:focus { border-color: $line; }
QToolButton#rail:checked { background: $card; border-color: $line; color: $accent; }
QPushButton, QToolButton { background: $card; border: 1px solid $line; border-radius: 8px; padding: 7px 14px; min-height: 20px; }
QPushButton:hover, QToolButton:hover { border-color: $accent; }
QPushButton:focus, QToolButton:focus, QComboBox:focus, QLineEdit:focus, QSpinBox:focus { border: 1px solid $accent; }
QToolButton#tool { background: transparent; border-color: transparent; padding: 7px 3px; }
QToolButton#view { padding: 7px 8px; }
QToolButton#tool:hover, QToolButton#tool:focus { border-color: $accent; }
QToolButton:checked { background: $accent; color: $on_accent; border-color: $accent; }
QPushButton:disabled, QToolButton:disabled { color: $muted; }
QPushButton#entry { text-align: left; }
QPushButton#live { background: $accent; color: $on_accent; border: none; border-radius: 12px; font-size: 18px; font-weight: 600;
  min-height: 52px; }
QPushButton#live:hover, QPushButton#primary:hover { background: $accent_hover; }
QPushButton#live:focus, QPushButton#primary:focus { border: 2px solid $text; }
QPushButton#live:disabled, QPushButton#primary:disabled { background: $line; color: $muted; }
QPushButton#live[live="true"] { background: $card; color: $bad; border: 2px solid $bad; }
QPushButton#primary { background: $accent; color: $on_accent; border: none; font-weight: 600; padding: 10px 22px; }
QToolButton#face { padding: 2px; border-radius: 10px; border: 2px solid transparent; background: transparent; }
QToolButton#face:hover, QToolButton#face:focus { border-color: $line; }
QToolButton#face:checked { border-color: $accent; background: transparent; color: $text; }
QToolButton#person { padding: 3px 10px 3px 3px; border-radius: 12px; border: 2px solid $line; background: $card; color: $muted;
  font-size: 13px; }
QToolButton#person[worn="true"] { border-color: $accent; color: $text; }
QToolButton#person[there="false"] { background: transparent; color: $muted; }
QToolButton#person:hover, QToolButton#person:focus { border-color: $text; }
QComboBox, QLineEdit, QSpinBox, QPlainTextEdit { background: $page; border: 1px solid $line; border-radius: 8px;
  padding: 6px 10px; min-height: 20px;
  selection-background-color: $accent; selection-color: $on_accent; }
QSpinBox { padding: 2px 6px; }
QSpinBox QLineEdit { border: none; padding: 0 6px; background: transparent; }
QSpinBox::up-button, QSpinBox::down-button { width: 0; border: none; }
QComboBox::drop-down { border: none; width: 22px; }
QComboBox QAbstractItemView { background: $card; border: 1px solid $line;
  selection-background-color: $accent; selection-color: $on_accent; }
QTabBar { background: transparent; }
QTabBar::tab { background: transparent; color: $muted; padding: 8px 14px; border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $accent; font-weight: 600; }
QTabBar::tab:focus { color: $accent; }
QCheckBox { background: transparent; spacing: 10px; }
QCheckBox:disabled, QComboBox QAbstractItemView::item:disabled { color: $muted; }
QCheckBox::indicator:disabled { border-color: $line; }
QCheckBox::indicator { width: 18px; height: 18px; border-radius: 5px; border: 1px solid $muted; background: $page; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; image: url($tick); }
QCheckBox::indicator:checked:disabled { background: $muted; border-color: $muted; }
QCheckBox:focus { color: $accent; }
QToolButton::menu-indicator { image: none; }
QProgressBar { background: $line; border: none; border-radius: 3px; min-height: 6px; max-height: 6px; }
QProgressBar::chunk { background: $accent; border-radius: 3px; }
QSlider { background: transparent; min-height: 24px; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $line; }
QSlider::sub-page:horizontal { height: 4px; border-radius: 2px; background: $accent; }
QSlider::handle:horizontal { width: 16px; height: 16px; margin: -6px 0; border-radius: 8px; background: $accent; border: 2px solid $card; }
QSlider::handle:horizontal:focus { border: 2px solid $text; }
QScrollBar:vertical { background: transparent; width: 12px; }
QScrollBar::handle:vertical { background: $line; border-radius: 4px; min-height: 30px; margin: 0 0 0 4px; }
QScrollBar::handle:vertical:hover { background: $muted; }
QScrollBar:horizontal { background: transparent; height: 8px; }
QScrollBar::handle:horizontal { background: $line; border-radius: 4px; min-width: 30px; }
QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page { height: 0; width: 0; background: none; }
QMenu { background: $card; border: 1px solid $line; padding: 6px; }
QMenu::item { padding: 6px 22px; border-radius: 6px; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $line; margin: 5px 8px; }
QMenu::item:selected { background: $accent; color: $on_accent; }
QToolTip { background: $card; color: $text; border: 1px solid $line; padding: 4px; }
""")


def choose(name: str) -> Theme:
    """``light``, ``dark``, or anything else for what the system has: as it says, or by its colours while they are the application's."""
    said = {Qt.ColorScheme.Light: "light", Qt.ColorScheme.Dark: "dark"}.get(QGuiApplication.styleHints().colorScheme(), "")
    wanted = name if name in ("light", "dark") else said
    if wanted:
        return LIGHT if wanted == "light" else DARK
    return DARK if QGuiApplication.palette().color(QPalette.ColorRole.Window).lightness() < 128 else LIGHT


def apply(application: QApplication, theme: Theme) -> None:
    """Main thread."""
    roles = QPalette.ColorRole
    palette = QPalette()
    for role, colour in (
        (roles.Window, theme.page),
        (roles.Base, theme.page),
        (roles.WindowText, theme.text),
        (roles.Text, theme.text),
        (roles.PlaceholderText, theme.muted),
        (roles.Highlight, theme.accent),
        (roles.HighlightedText, theme.on_accent),
    ):
        palette.setColor(role, QColor(colour))
    application.setPalette(palette)
    words = {name: getattr(theme, name) for name in Theme.__slots__}
    application.setStyleSheet(_SHEET.substitute({**words, "tick": (Path(__file__).parent / theme.tick).as_posix()}))

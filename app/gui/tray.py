"""The system's tray: what a streamer needs while the window is away."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app.gui.icons import icon
from app.gui.live import LiveState
from app.gui.theme import Theme
from app.gui.words import tr


class Tray(QObject):
    """Main thread. There may be no tray on a system: then it shows nothing, and ``is_there`` is False."""

    def __init__(
        self, theme: Callable[[], Theme], show: Callable[[], None], toggle_live: Callable[[], None], leave: Callable[[], None]
    ) -> None:
        super().__init__()
        self._theme = theme
        self.menu = QMenu()
        self.menu.setAccessibleName("ffrt")
        self._state = LiveState.IDLE
        self._show, self.live, self._quit = (QAction(self.menu) for _ in range(3))
        for action, act in ((self._show, show), (self.live, toggle_live), (self._quit, leave)):
            action.triggered.connect(lambda _checked=False, act=act: act())
            self.menu.addAction(action)
        self._icon = QSystemTrayIcon()
        self._icon.setContextMenu(self.menu)
        self._icon.activated.connect(lambda why: show() if why is QSystemTrayIcon.ActivationReason.Trigger else None)
        self.retell()
        if self.is_there:
            self._icon.show()

    @property
    def is_there(self) -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def retell(self) -> None:
        """In the language and the colours of now."""
        self._show.setText(tr("Show the window"))
        self._quit.setText(tr("Quit"))
        self.show_state(self._state)

    def show_state(self, state: LiveState) -> None:
        self._state = state
        live = state is LiveState.LIVE
        self.live.setText(tr("Stop") if live else tr("Go live"))
        self.live.setEnabled(state in (LiveState.IDLE, LiveState.LIVE))
        self._icon.setIcon(icon("face", self._theme().good if live else self._theme().accent))
        self._icon.setToolTip(f"ffrt: {tr('live')}" if live else "ffrt")

    def close(self) -> None:
        self._icon.hide()

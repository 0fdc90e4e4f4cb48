"""The Qt application around the window."""

from __future__ import annotations

import logging
import os
import signal
import sys
from functools import partial

import cv2  # noqa: F401  sets Qt's variables for a Qt of its own, which are taken back below
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication

from app.diagnostics import diagnostics
from app.gui import Opening
from app.gui.appearance import Appearance
from app.gui.consent import ask_once, consent_file
from app.gui.memory import restored
from app.gui.outside import Outside
from app.gui.tray import Tray
from app.gui.trouble import Trouble, told
from app.gui.watchdog import Watchdog
from app.gui.window import Window
from app.leftovers import sweep_leftovers
from app.live_options import CONTROL_PORT
from app.settings import Settings
from app.state import State, StateFile

log = logging.getLogger(__name__)

for _name in ("QT_QPA_PLATFORM_PLUGIN_PATH", "QT_QPA_FONTDIR"):
    os.environ.pop(_name, None)


def run(settings: Settings, opening: Opening) -> int:
    """Until the window is closed. Main thread."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName("ffrt")
    file = StateFile()
    state = file.load()
    appearance = Appearance(application, state.language, state.theme)
    if not ask_once(consent_file()):
        return 0
    with told(partial(diagnostics, settings)):
        window = Window(
            restored(settings, state) if opening.restore else settings,
            appearance.theme,
            choose_camera=opening.restore and state.camera is None,
            memory=(file, state),
        )
    window.bench.worker("state").run(sweep_leftovers, lambda _: None, window.tell_trouble)
    trouble = Trouble()
    trouble.happened.connect(window.tell_trouble)
    tray = Tray(lambda: appearance.theme, lambda: bring_back(window), window.toggle_live, lambda: leave(application, window))
    window.control.state_changed.connect(tray.show_state)
    window.remembered.connect(lambda kept: appearance.become(kept.language, kept.theme))
    appearance.changed.connect(window.furnish_anew, Qt.ConnectionType.QueuedConnection)  # not while a widget of the old one speaks
    appearance.changed.connect(tray.retell)
    outside = listen(application, window, opening, state)
    dog = watch(window) if opening.debug else None
    show(window, tray, minimised=opening.minimised or state.start_minimised)
    if opening.live or state.start_live:
        window.toggle_live()
    signal.signal(signal.SIGINT, lambda *_: leave(application, window))
    awake = QTimer()  # lets Python see a signal, and a second start of ffrt
    awake.timeout.connect(lambda: bring_back(window) if opening.is_wanted() else None)
    awake.start(200)
    status = application.exec()
    if dog is not None:
        log.info("%s", dog)
    outside.shut()
    tray.close()
    trouble.close()
    appearance.end()
    return status


def watch(window: Window) -> Watchdog:
    """Started; what it finds goes into the report of every run. Main thread; whoever calls keeps what comes back."""
    dog = Watchdog()
    window.control.studio.add_to_report = lambda: {"window": dog.facts()}
    dog.start()
    return dog


def show(window: Window, tray: Tray, *, minimised: bool) -> None:
    """Minimised into the tray where there is one."""
    if not minimised:
        window.show()
    elif not tray.is_there:
        window.showMinimized()


def listen(application: QApplication, window: Window, opening: Opening, state: State) -> Outside:
    """Opens the control interface where it is asked for, now or by the switch on the program's page."""
    outside = Outside(window.control.studio, window.bench.worker("control"), opening.announce)
    outside.when_asked(show=lambda: bring_back(window), leave=lambda: leave(application, window))
    outside.told.connect(window.tell_control)
    window.control_wished.connect(lambda on: outside.open(CONTROL_PORT) if on else outside.close())
    if opening.control is not None or state.control:
        outside.open(CONTROL_PORT if opening.control is None else opening.control)
    return outside


def leave(application: QApplication, window: Window) -> None:
    """Also where the window was never shown."""
    window.close()
    application.quit()


def bring_back(window: Window) -> None:
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()

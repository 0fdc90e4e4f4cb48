"""The Qt application around the window."""

from __future__ import annotations

import logging
import os
import signal
import sys

import cv2  # noqa: F401  sets Qt's variables for a Qt of its own, which are taken back below
from PySide6.QtCore import QLibraryInfo, QLocale, Qt, QTimer, QTranslator
from PySide6.QtWidgets import QApplication

from app.gui import Opening, theme
from app.gui.consent import ask_once, consent_file
from app.gui.memory import restored
from app.gui.outside import Outside
from app.gui.tray import Tray
from app.gui.trouble import Trouble
from app.gui.watchdog import Watchdog
from app.gui.window import Window
from app.gui.words import Words, system_language
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
    translators = speak(application, state.language or system_language())
    chosen = theme.choose(state.theme or "system")
    theme.apply(application, chosen)
    if not ask_once(consent_file()):
        return 0
    window = Window(
        restored(settings, state) if opening.restore else settings,
        chosen,
        choose_camera=opening.restore and state.camera is None,
        memory=(file, state),
    )
    trouble = Trouble()
    trouble.happened.connect(window.tell_trouble)
    tray = Tray(lambda: chosen, lambda: bring_back(window), window.toggle_live, lambda: leave(application, window))
    window.control.state_changed.connect(tray.show_state)
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
    del translators  # Qt holds no reference
    return status


def watch(window: Window) -> Watchdog:
    """Started; what it finds goes into the report of every run. Main thread; whoever calls keeps what comes back."""
    dog = Watchdog()
    window.control.studio.add_to_report = lambda: {"window": dog.facts()}
    dog.start()
    return dog


def speak(application: QApplication, language: str) -> list[QTranslator]:
    """The window's words and Qt's own, in ``language``, written in its direction. Main thread; whoever calls keeps what comes back."""
    locale = QLocale(language)
    QLocale.setDefault(locale)
    application.setLayoutDirection(locale.textDirection())
    own, qt = Words(language), QTranslator()
    qt.load(locale, "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
    for translator in (qt, own):
        application.installTranslator(translator)
    return [own, qt]


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
    outside.told.connect(window.program.show_control)
    outside.told.connect(window.tell_control)
    window.program.control_wished.connect(lambda on: outside.open(CONTROL_PORT) if on else outside.close())
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

"""The Qt application around the window."""

from __future__ import annotations

import os
import signal
import sys

import cv2  # noqa: F401  sets Qt's variables for a Qt of its own, which are taken back below
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.gui import theme
from app.gui.consent import ask_once, consent_file
from app.gui.window import Window
from app.gui.words import Words, system_language
from app.settings import Settings

for _name in ("QT_QPA_PLATFORM_PLUGIN_PATH", "QT_QPA_FONTDIR"):
    os.environ.pop(_name, None)


def run(settings: Settings) -> int:
    """Until the window is closed. Main thread."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName("ffrt")
    words = Words(system_language())
    application.installTranslator(words)
    chosen = theme.choose("system")
    theme.apply(application, chosen)
    if not ask_once(consent_file()):
        return 0
    window = Window(settings, chosen)
    window.resize(1280, 820)
    window.show()
    signal.signal(signal.SIGINT, lambda *_: window.close())
    awake = QTimer()  # lets Python see a signal
    awake.timeout.connect(lambda: None)
    awake.start(200)
    return application.exec()

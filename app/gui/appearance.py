"""The window's words and colours: chosen at the start, and changed while it runs."""

from __future__ import annotations

from PySide6.QtCore import QLibraryInfo, QLocale, QObject, QTranslator, Signal
from PySide6.QtWidgets import QApplication

from app.gui import theme
from app.gui.theme import Theme
from app.gui.words import Words, system_language


class Appearance(QObject):
    """Of the whole application. Main thread; whoever made it keeps it, for Qt holds no translator."""

    changed = Signal(object)
    """The ``Theme``; words or colours have become others, and what was written before is still in the old ones."""

    def __init__(self, application: QApplication, language: str | None = None, colours: str | None = None) -> None:
        """``language``: a key of ``LANGUAGES``, ``colours``: ``light`` or ``dark``; None is what the system has."""
        super().__init__()
        self._application = application
        self._of_system = theme.choose("system")  # before the application has colours of its own
        application.styleHints().colorSchemeChanged.connect(self._follow_system)
        self._translators: tuple[QTranslator, ...] = ()
        self._chosen = (language, colours)
        self._speak(language or system_language())
        self.theme = self._coloured(colours)

    def become(self, language: str | None, colours: str | None) -> None:
        """As the constructor takes them; nothing happens where they are so already."""
        before, self._chosen = self._chosen, (language, colours)
        if before == self._chosen:
            return
        if before[0] != language:
            self._speak(language or system_language())
        if before[1] != colours:
            self.theme = self._coloured(colours)
        self.changed.emit(self.theme)

    def _follow_system(self, _scheme: object) -> None:
        """Day has become night, or the other way round."""
        self._of_system = theme.choose("system")
        if self._chosen[1] is None and self.theme != self._of_system:
            self.theme = self._coloured(None)
            self.changed.emit(self.theme)

    def end(self) -> None:
        """The application speaks as it did before."""
        for translator in self._translators:
            self._application.removeTranslator(translator)
        self._translators = ()

    def _speak(self, language: str) -> None:
        """The window's words and Qt's own, written in the direction of ``language``."""
        locale = QLocale(language)
        QLocale.setDefault(locale)
        self._application.setLayoutDirection(locale.textDirection())
        own, qt = Words(language), QTranslator()
        qt.load(locale, "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
        self.end()
        for translator in (qt, own):
            self._application.installTranslator(translator)
        self._translators = (own, qt)

    def _coloured(self, colours: str | None) -> Theme:
        chosen = self._of_system if colours is None else theme.choose(colours)
        theme.apply(self._application, chosen)
        return chosen

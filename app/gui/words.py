"""Translations: English sentences are the keys; a language is one TOML file beside this one."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from PySide6.QtCore import QCoreApplication, QLocale, QTranslator

CONTEXT = "ffrt"
LANGUAGES = {"en": "English", "de": "Deutsch", "zh": "中文"}


class Words(QTranslator):
    """Answers from a TOML file of ``"English" = "other"``; what is missing stays English."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.entries = read_words(language)

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str | None:
        """Called by Qt on the main thread. None: another translator is asked; an empty text would be shown as it is."""
        return self.entries.get(source) if context == CONTEXT else None

    def isEmpty(self) -> bool:  # noqa: N802  Qt's name
        return not self.entries


def read_words(language: str) -> dict[str, str]:
    """Empty for English and for a language that is not here."""
    file = files("app.gui") / f"words_{language}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def tr(text: str) -> str:
    """``text`` in the language of the application. Main thread."""
    return QCoreApplication.translate(CONTEXT, text)


def later(text: str) -> str:
    """Marks a sentence that is given to ``tr`` only when it is shown, for the words' files to be complete."""
    return text


def system_language() -> str:
    """One of ``LANGUAGES``."""
    code = QLocale.system().name().partition("_")[0]
    return code if code in LANGUAGES else "en"

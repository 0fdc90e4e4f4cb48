"""Every sentence of the window is in every language, and nothing in a language's file is left over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

pytest.importorskip("PySide6.QtCore", exc_type=ImportError)

from app.gui.words import LANGUAGES, read_words
from app.photo_check import Hint

MARKS = ("tr", "later")
OTHERS = [code for code in LANGUAGES if code != "en"]


def sentences() -> Iterator[str]:
    """What is given to ``tr`` or ``later``, and the hints, which are shown through ``tr``."""
    yield from map(str, Hint)
    for file in sorted((ROOT / "app" / "gui").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
                (argument,) = node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def test_there_is_much_to_say() -> None:
    assert len(set(sentences())) > 100


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_is_there_and_none_is_left_over(language: str) -> None:
    words = read_words(language)
    assert sorted(set(sentences()) - set(words)) == []
    assert sorted(set(words) - set(sentences())) == []


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_filled_in_is_the_same(language: str) -> None:
    for sentence, other in read_words(language).items():
        assert other.strip(), sentence
        assert sorted(re.findall(r"\{\w*\}", sentence)) == sorted(re.findall(r"\{\w*\}", other)), sentence


def test_english_needs_no_file() -> None:
    assert read_words("en") == {}
    assert not Path("app/gui/words_en.toml").exists()

"""What cameras, outputs and drivers say is said in the language of the window, and each of these sentences is one that they say."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication

from app import doctor
from app.gui.told import KNOWN, _forms, told, told_reasons
from app.gui.words import LANGUAGES, Words, read_words
from rt.capture import open_spec
from rt.capture.request import CaptureRequest
from rt.clock import ManualClock

OTHERS = [code for code in LANGUAGES if code != "en"]


def text_of_the_parts() -> str:
    """All that is written below the window, with what is filled in left out and strings that follow each other joined."""
    files = [*(ROOT / "rt").rglob("*.py"), *(ROOT / "engines").rglob("*.py"), *(ROOT / "app").glob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r"\{[^{}\n]*\}", "{}", re.sub(r"\"\s*\n\s*(?:\+ \(self._in_use\(\) or )?f?\"", "", text))


def test_every_sentence_is_one_that_a_part_says() -> None:
    text = text_of_the_parts()
    lacking = [
        template for template in KNOWN for fixed in re.split(r"\{\w+\}", template) if len(fixed.strip("; :,()")) > 2 and fixed not in text
    ]
    assert lacking == []


def test_the_sentence_with_more_fixed_words_is_found_first() -> None:
    for template in KNOWN:
        filled = re.sub(r"\{\w+\}", "X", template)
        assert next(known for known, form in _forms() if form.fullmatch(filled)) == template


@given(st.sampled_from(KNOWN), st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20))
def test_in_english_nothing_is_changed(template: str, filling: str) -> None:
    sentence = re.sub(r"\{\w+\}", lambda _: filling, template)
    assert told(sentence) == sentence


@pytest.fixture(params=OTHERS)
def language(request: pytest.FixtureRequest, qapp: Any) -> Iterator[str]:
    words = Words(request.param)
    QCoreApplication.installTranslator(words)
    yield request.param
    QCoreApplication.removeTranslator(words)


def test_a_sentence_in_a_sentence_is_translated_too(language: str) -> None:
    words = read_words(language)
    said = told("camera 0 cannot be opened (V4L2); it is in use by zoom (process 7); close it there, or choose another camera")
    inner = words["it is in use by {programs}; close it there, or choose another camera"].format(programs="zoom (process 7)")
    assert said == words["camera {name} cannot be opened ({tried}); {what}"].format(name="0", tried="V4L2", what=inner)


def test_what_is_not_known_stays(language: str) -> None:
    for sentence in ("", "something else; do this", "the model x.onnx is damaged"):
        assert told(sentence) == sentence


@pytest.mark.parametrize("system", ["Linux", "Windows", "Darwin"])
def test_the_drivers_sentences_are_known(system: str, language: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    pytest.importorskip("pyvirtualcam")
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(doctor, "VIRTUAL_DEVICES", tmp_path)
    found = doctor.virtual_camera()
    assert told(found.mend) != found.mend
    assert told(found.what) != found.what


def test_what_a_real_input_says_is_known(language: str, tmp_path: Any) -> None:
    import threading

    from rt.audio import AudioBus
    from rt.errors import SourceError

    (tmp_path / "empty.mp4").touch()
    (tmp_path / "text.txt").write_text("words\n" * 100)
    (tmp_path / "bytes.mp4").write_bytes(bytes(range(256)) * 20)
    for spec in (str(tmp_path), str(tmp_path / "none.mp4"), *map(str, tmp_path.iterdir()), "77", "camera:nobody", "rtmp://127.0.0.1:9/a/b"):
        source = open_spec(spec, CaptureRequest(), ManualClock())
        with pytest.raises(SourceError) as caught:
            source.open(threading.Event(), AudioBus())
        assert told(str(caught.value)) != str(caught.value), str(caught.value)


def test_why_a_runtime_cannot_run_here_is_known(language: str) -> None:
    from engines.session import AUTO_ORDER, choose_runtime, runtimes

    problems = {name: runtimes[name].problem() for name in AUTO_ORDER if runtimes[name].problem()}
    assert problems
    assert [why for why in problems.values() if told(why) == why] == []
    reasons = choose_runtime().reasons
    assert reasons.count("not ") >= len(problems)
    said = told_reasons(reasons)
    assert all(read_words(language)["not {runtime}: {why}"].format(runtime=name, why=told(why)) in said for name, why in problems.items())


def test_why_a_model_has_no_engine_is_known(language: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from engines.tensorrt import find_engine

    monkeypatch.setenv("FFRT_CACHE", str(tmp_path))
    why = find_engine(ROOT / "assets/models/iris_landmark.onnx", "rtx", "1.7", "sm_89")[1]
    assert "is built; run" in why
    assert told(why) != why

"""`--person`, `--others`, `--one-face-each`: what they come to, and what is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ASTRONAUT, HOPPER
from standins.identity import arcface

from app.cli import main
from app.errors import UsageError
from app.models import Models
from app.people_options import PeopleOptions
from app.presets import Preset
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from engines.store.shelf import Shelf
from rt.options import Wear

RECOGNISED = ("--recognise", "arcface_w600k_r50", "--person", "1=hide")

BOTH = SourceSettings(photos=(HOPPER, ASTRONAUT))


def test_each_person_gets_what_was_said_last() -> None:
    options = PeopleOptions(person=("2=leave", f"1={HOPPER}", "2=hide"), others=Wear.LEAVE, recognise="mine")
    worn = PersonSettings(number=1, source=SourceSettings(photos=(HOPPER,)))
    hidden = PersonSettings(number=2, wear=Wear.HIDE)
    assert options.settings(SourceSettings()) == PeopleSettings(others=Wear.LEAVE, named=(worn, hidden), recogniser="mine")


def test_one_face_each_takes_the_photos_apart() -> None:
    each = PeopleOptions(one_face_each=True).settings(BOTH).each
    assert each == (SourceSettings(photos=(HOPPER,)), SourceSettings(photos=(ASTRONAUT,)))
    assert PeopleOptions().settings(BOTH) == PeopleSettings()


@pytest.mark.parametrize("text", ["", "1", "leave", "0=leave", "-1=leave", "1=", "one=hide", "1.5=hide", "²=hide"])
def test_what_is_no_person_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NUMBER=WHAT"):
        PeopleOptions(person=(text,)).settings(SourceSettings())


def test_from_the_command_line_to_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"--headless --null --seconds 0.5 --json --input synthetic:size=320x180 --person 1=hide 2={HOPPER} --others leave"
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert not ended.value.code
    people = json.loads(capsys.readouterr().out)["settings"]["people"]
    assert [(person["number"], person["wear"]) for person in people["named"]] == [(1, "hide"), (2, "swap")]
    assert Path(people["named"][1]["source"]["photos"][0]) == HOPPER
    assert people["others"] == "leave"


def test_a_recogniser_that_is_not_here_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["--headless", "--null", "--seconds", "0.5", "--recognise", "arcface_w600k_r50"])
    assert ended.value.code
    assert "ffrt models pull arcface_w600k_r50" in capsys.readouterr().err


def test_a_recogniser_runs_with_the_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in of ArcFace, imported as a person would."""
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    Models(Shelf(tmp_path / "models")).import_file(arcface(tmp_path / "arcface_w600k_r50.onnx"), "arcface")
    with pytest.raises(SystemExit) as ended:
        main(["--headless", "--null", "--seconds", "1", "--json", "--input", "synthetic:size=320x180", *RECOGNISED])
    assert not ended.value.code
    report = json.loads(capsys.readouterr().out)
    assert report["frames_out"] > 0
    assert "arcface_w600k_r50" in [model["model"] for model in report["models"]]


def test_a_recogniser_is_changed_while_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """…on the same line, and the person keeps the number."""
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    Models(Shelf(tmp_path / "models")).import_file(arcface(tmp_path / "arcface_w600k_r50.onnx"), "arcface")
    settings = Settings(input=InputSettings(spec="synthetic:size=320x180"), output=OutputSettings(null=True))
    session = LiveSession(settings)
    session.start()
    try:
        for recogniser in (None, "arcface_w600k_r50", None):
            people = settings.people.model_copy(update={"recogniser": recogniser})
            session.update(settings.model_copy(update={"people": people}))
            target = session.metrics().frames_out + 5
            while session.metrics().frames_out < target:
                assert not session.wait(0.01)
            assert [person.number for person in session.people()] == [1]
            assert ("arcface_w600k_r50" in [use.model for use in session.uses()]) is (recogniser is not None)
    finally:
        session.close()


def test_a_face_that_is_chosen_for_everybody_is_worn_by_everybody() -> None:
    own = PersonSettings(number=3, source=SourceSettings(photos=(ASTRONAUT,)))
    each = Settings(people=PeopleSettings(each=(BOTH, BOTH), others=Wear.HIDE, named=(own,)))
    chosen = SourceSettings(photos=(HOPPER,))
    for worn in (each.wearing(chosen), Preset(source=chosen).applied(each, str)):
        assert worn.source == chosen
        assert worn.people == PeopleSettings(others=Wear.HIDE, named=(own,))
    assert Preset().applied(each, str).people == each.people


def test_a_person_is_named_once() -> None:
    with pytest.raises(ValueError, match="name each once"):
        PeopleSettings(named=(PersonSettings(number=1), PersonSettings(number=1)))

"""What a person passes on names nobody: secrets are planted in settings, errors, file names and devices, and none of them comes through."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app import doctor
from app.cli import main
from app.diagnostics import diagnostics, examined, public, without_names
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from engines.errors import PhotoError

USER, HOST, FULL_NAME, KEY, MAIL = "wanda.quixly", "quixly-studio", "Wanda Quixly", "live_4401_zXy9kQ", "wanda@quixly.example"
HOME = f"/home/{USER}"
SECRETS = ("quixly", "wanda", "zxy9kq", "s3cretpw", "holiday", "brunhilde", "example", "10.1.2.3", "fe80", "bearertok")

FULL = Settings(
    source=SourceSettings(photos=(Path(f"{HOME}/My Photos/holiday in Rome.jpg"), Path("brunhilde.png")), face=2),
    input=InputSettings(spec=f"rtsp://{USER}:s3cretpw@10.1.2.3/live?token=bearertok", width=1280, height=720, fourcc="MJPG"),
    look=LookSettings(swapper="brunhilde", enhancer="simswap:holiday.onnx", masks=("hands", f"{HOME}/wanda.onnx"), opacity=0.25),
    output=OutputSettings(
        streams=(f"rtmp://live.example.org/app/{KEY}", f"srt://10.1.2.3:9?streamid=#!::r={KEY},m=publish", KEY),
        virtual_camera="Wanda's camera",
        record=Path(f"{HOME}/holiday.brunhilde"),
    ),
)


@pytest.fixture(autouse=True)
def of_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person and the machine have names."""
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.setenv("LOGNAME", USER)
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.example")


def names_nobody(text: str) -> bool:
    found = [secret for secret in SECRETS if secret in text.casefold()]
    assert not found, f"{found} in {text}"
    return True


def test_the_settings_are_told_without_what_is_ones_own() -> None:
    assert names_nobody(diagnostics(FULL))
    tree = public(FULL)
    assert tree["source"] == {"photos": 2, "face": 2}
    assert tree["output"]["streams"] == ["rtmp", "srt", "OWN"]
    assert (tree["look"]["opacity"], tree["look"]["masks"], tree["look"]["detector"]) == (0.25, ["hands", "OWN"], "blazeface-full")
    assert tree["input"]["width"] == 1280


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (f"synthetic:size=640x360,portrait={HOME}/holiday.png,fps=30,timecode=on", "synthetic:size=640x360,fps=30,timecode=on"),
        ("camera:Wanda's phone", "camera"),
        ("/dev/video0", "camera"),
        ("0", "camera"),
        (f"{HOME}/holiday.mp4", "file .mp4"),
        (f"{HOME}/holiday.of.wanda", "file OWN"),
        ("quixly://10.1.2.3/", "OWN"),
        ("-", "-"),
    ],
)
def test_an_input_is_told_by_its_kind(spec: str, told: str) -> None:
    settings = Settings(input=InputSettings(spec=spec))
    assert public(settings)["input"]["spec"] == told
    assert names_nobody(diagnostics(settings))


def text_fields() -> Iterator[tuple[str, str, Any]]:
    """Every place of the Settings that takes a word: part, field, and a value with a secret in it. New ones are found by themselves."""
    plain = Settings()
    for part in Settings.model_fields:
        model = getattr(plain, part)
        for field in type(model).model_fields:
            for value in ("brunhilde", ["brunhilde"], "brun", {"brunhilde": 1.0}):
                try:
                    type(model).model_validate({**dict(model), field: value})
                except ValidationError:
                    continue
                yield part, field, value
                break


def test_there_are_fields_that_take_words() -> None:
    assert {("input", "spec"), ("output", "streams"), ("look", "swapper"), ("source", "photos")} <= {one[:2] for one in text_fields()}


@pytest.mark.parametrize(("part", "field", "value"), list(text_fields()), ids=lambda value: str(value))
def test_no_field_lets_a_word_through(part: str, field: str, value: Any) -> None:
    model = getattr(Settings(), part)
    settings = Settings().model_copy(update={part: type(model).model_validate({**dict(model), field: value})})
    assert "brun" not in diagnostics(settings)


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=5, max_size=30))
def test_no_model_name_that_the_program_does_not_know_is_told(name: str) -> None:
    secret = f"qq{name}qq"
    assert secret not in diagnostics(Settings(look=LookSettings(swapper=secret, landmarks=secret)))


SENTENCES = [
    f"[Errno 13] Permission denied: '{HOME}/My Photos/holiday in Rome.jpg'",
    f"{HOME}/My Photos/Brunhilde Marie Quixly/x.jpg is damaged or cut short",
    f"the photo {HOME}/holiday is a folder",
    f"C:\\Users\\{FULL_NAME}\\holiday.jpg cannot be read",
    f"\\\\{HOST}\\share\\holiday.jpg cannot be read",
    f"~/holiday/{FULL_NAME}.jpg",
    "no face was found in holiday.jpg",
    "no face was found in holiday in Rome.jpg",
    "photos/holiday/a.jpg: no such file",
    "no photo of 'Brunhilde' is left; add one",
    'there is a preset "Brunhilde\'s evening" already',
    "there is no preset `Brunhilde`",
    "“Brunhilde” and «Holiday» and „Wanda“",
    f"rtmp://live.example.org/app/{KEY} refused",
    f"SRT://10.1.2.3:9?streamid={KEY}",
    f"rejected key {KEY}",
    "Authorization: Bearer bearertok-9f8e7d6c5b4a",
    f"mail {MAIL} or <{MAIL}>, mailto:{MAIL}",
    f"cannot connect to {HOST}.example:1935 (10.1.2.3)",
    "cannot connect to [fe80::1ff:fe23:4567:890a]:1935",
    f"user {USER} is not in the group video",
    f"host {HOST} is down",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_loses_what_may_be_a_name(sentence: str) -> None:
    assert names_nobody(diagnostics(FULL, RuntimeError(sentence)))


@pytest.mark.parametrize("sentence", [sentence for sentence in SENTENCES if "Rome" not in sentence])
def test_also_where_the_settings_say_nothing_of_it(sentence: str) -> None:
    assert names_nobody(diagnostics(Settings(), ValueError(sentence)))


@pytest.mark.parametrize(
    "sentence", ["list index out of range", "expected 3 channels, got 4 (uint8)", "division by zero at 12.5 ms, 1280x720"]
)
def test_what_names_nobody_is_kept(sentence: str) -> None:
    assert sentence in diagnostics(Settings(), IndexError(sentence))


def test_a_traceback_names_no_folder_and_tells_what_it_came_of() -> None:
    text = "def swap():\n    raise PhotoError('brunhilde.jpg is damaged')\n"
    own: dict[str, Any] = {"PhotoError": PhotoError}
    exec(compile(text, f"{HOME}/holiday/plug.py", "exec"), own)
    try:
        try:
            own["swap"]()
        except PhotoError as cause:
            raise KeyError("brunhilde") from cause
    except KeyError as error:
        told = diagnostics(FULL, error)
    assert names_nobody(told)
    assert "KeyError" in told
    assert "PhotoError" in told
    assert "tests/test_diagnostics.py" in told
    assert "FILE:2 in swap" in told


def test_an_error_that_is_its_own_cause_comes_to_an_end() -> None:
    error = RuntimeError("round")
    error.__cause__ = error
    assert diagnostics(Settings(), error).count("RuntimeError") == 1


def test_the_doctor_s_text_names_nobody(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    findings = [
        doctor.Finding("cameras", doctor.State.OK, "0 (Brunhilde's phone), 2 (Quixly cam)", personal=True),
        doctor.Finding("SRT", doctor.State.OK, f"through {HOME}/bin/ffmpeg"),
        doctor.Finding("models", doctor.State.MISSING, f"{HOME}/holiday/face.onnx is damaged", "install ffrt again"),
    ]
    assert names_nobody(examined(findings))
    assert "cameras: ok" in examined(findings)
    monkeypatch.setattr(doctor, "PROBES", (lambda: findings,))
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--text"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert names_nobody(shown)
    assert "SRT: ok" in shown


def test_text_without_a_secret_needs_no_second_look() -> None:
    """What was cleaned once stays as it is."""
    for sentence in SENTENCES:
        once = without_names(sentence)
        assert without_names(once) == once

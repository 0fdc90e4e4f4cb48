"""`ffrt faces`, `ffrt presets` and `ffrt addresses`, and what `--source`, `--preset` and `--to` make of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import cv2
import pytest
from conftest import ASTRONAUT, HOPPER, ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.addresses import AddressBook
from app.cli import app, main
from app.errors import PresetError
from app.face_options import LookOptions
from app.gallery import Gallery
from app.preset_options import options_of
from app.presets import OutputPreset, Preset, Presets, SourcePreset
from app.settings import EncoderName, InputSettings, LookSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from engines.face_regions import Region
from rt.options import Blending, Corner, CropFit, OnLost, Wear

KEY = "sk_live_0123"
URL = f"rtmp://server/app/{KEY}"
CHILD = [sys.executable, "-c", "from app.main import main; main()"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("FILE_KEYRING", str(tmp_path / "keys.json"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_keyring.FileKeyring")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))


def ffrt(*words: Any, given_text: str = "") -> subprocess.CompletedProcess[str]:
    """In another process: what it reads on standard input is not a terminal."""
    return subprocess.run([*CHILD, *map(str, words)], capture_output=True, text=True, timeout=100, check=False, input=given_text)


class Answer:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: Any) -> tuple[int, str, str]:
        """Status, what it answered, what it said beside."""
        with pytest.raises(SystemExit) as ended:
            main([*map(str, words)])
        shown = self._capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Answer:
    return Answer(capsys)


# --- faces ---


def test_a_face_is_kept_listed_renamed_and_removed(answer: Answer) -> None:
    status, out, _ = answer("faces", "add", HOPPER, "--name", "Großmutter/1", "--json")
    made = json.loads(out)
    assert (status, made["name"], len(made["photos"])) == (0, "Großmutter/1", 1)
    assert answer("faces", "add", ASTRONAUT, "--into", "großmutter/1")[0] == 0
    assert answer("faces", "rename", "Großmutter/1", "oma")[0] == 0
    rows = json.loads(answer("faces", "list", "--json")[1])
    assert [(row["name"], len(row["photos"]), row["built_in"]) for row in rows] == [
        ("oma", 2, False),
        ("Hopper", 1, True),
        ("Astronaut", 1, True),
    ]
    assert "oma" in answer("faces", "list")[1]
    assert answer("faces", "remove", "oma")[0] == 0
    assert not list(Gallery().folder.glob("*/*.jpg"))
    status, _, said = answer("faces", "remove", "oma")
    assert status == 1
    assert "there are: Hopper, Astronaut" in said


def test_hints_name_the_file_that_was_given(answer: Answer, tmp_path: Path) -> None:
    """Not the gallery's copy, which is called by its content."""
    small = tmp_path / "me on holiday.png"
    picture = cv2.imread(str(HOPPER))
    cv2.imwrite(str(small), cv2.resize(picture, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA))
    status, out, said = answer("faces", "add", small, "--json")
    assert status == 0, said
    assert "me on holiday.png: " in said
    (photo,) = json.loads(out)["photos"]
    assert photo["called"] == "me on holiday.png"
    assert Path(photo["file"]).stem not in said
    assert Gallery().find("me on holiday").photos[0].title == "me on holiday.png"


def test_hints_are_said_and_bad_photos_refused(answer: Answer, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_text("no photo")
    status, out, said = answer("faces", "add", bad)
    assert (status, out) == (1, "")
    assert "is not a picture" in said
    assert answer("faces", "add", HOPPER, "--name", "a", "--into", "b")[0] == 2


def test_a_face_is_worn_by_its_name() -> None:
    Gallery().add([HOPPER], "Oma 👵")
    run = ("--headless", "--input", "synthetic:size=320x180,frames=5", "--null", "--json", "--source", "oma 👵")
    done = ffrt(*run)
    assert done.returncode == 0, done.stderr
    photos = json.loads(done.stdout)["settings"]["source"]["photos"]
    assert photos == [str(Gallery().find("Oma 👵").photos[0].file)]
    wrong = ffrt(*run[:-1], "opa")
    assert wrong.returncode == 1
    assert "there is no photo opa, and no face in the gallery is called 'opa'; there are: Oma 👵, Hopper, Astronaut" in wrong.stderr
    file = ffrt(*run[:-1], "opa.jpg")
    assert "the photo opa.jpg does not exist" in file.stderr


# --- presets ---

looks = st.builds(
    LookSettings,
    swapper=st.sampled_from(["mesh", "a b", "simswap:x.onnx"]),
    landmarks=st.none() | st.just("2dfan4"),
    masks=st.lists(st.sampled_from(["hands", "mouth", "x=1.onnx"])).map(tuple),
    enhancer=st.none() | st.just("gfpgan_1.4"),
    opacity=st.floats(0, 1),
    enhancer_weight=st.floats(0, 1),
    max_faces=st.integers(1, 8),
    regions=st.lists(st.sampled_from(Region), min_size=1).map(tuple),
    colour_match=st.floats(0, 1),
    colour_transfer=st.floats(0, 1),
    seam_width=st.floats(0.1, 2),
    sharpness=st.floats(0, 1),
    badge=st.sampled_from(["", "AI face", "-- 换脸"]),
    badge_corner=st.sampled_from(Corner),
    on_lost=st.sampled_from(OnLost),
    blending=st.sampled_from(Blending),
)
outputs = st.builds(
    OutputPreset,
    addresses=st.lists(st.sampled_from(["twitch", "my server"])).map(tuple),
    virtual_camera=st.sampled_from([None, "", "/dev/video9"]),
    record=st.sampled_from([None, Path("/tmp/a b.mp4")]),
    null=st.booleans(),
    overwrite=st.booleans(),
    bitrate_bps=st.none() | st.integers(50_000, 200_000_000),
    encoder=st.sampled_from(get_args(EncoderName)),
)
inputs = st.builds(
    InputSettings,
    spec=st.sampled_from(["synthetic:size=320x180,fps=30", "0", "-", "camera:Logi tech"]),
    width=st.just(640),
    height=st.just(360),
    fps=st.none() | st.floats(1, 120),
    fourcc=st.none() | st.just("MJPG"),
    loop=st.booleans(),
    timecode=st.booleans(),
    mirror=st.booleans(),
    rotate=st.sampled_from([0, 90, 180, 270]),
    crop=st.tuples(*[st.floats(0, 0.47)] * 4),
    crop_fit=st.sampled_from(CropFit),
    exposure_ms=st.none() | st.floats(0, 1000),
)
sources = st.builds(SourcePreset, photos=st.lists(st.just(HOPPER), min_size=1).map(tuple), face=st.none() | st.integers(1, 9))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(preset=st.builds(Preset, look=looks, source=st.none() | sources, input=st.none() | inputs, output=st.none() | outputs))
def test_every_preset_is_the_same_as_its_options(preset: Preset) -> None:
    Presets().save("it", preset, replace=True)
    _, bound, _ = app.parse_args(["--preset", "it"], exit_on_error=False)
    found = bound.arguments
    assert LookSettings(**found["look"].settings()) == preset.look
    if preset.source is not None:
        assert tuple(map(Path, found["source"])) == preset.source.photos
        assert found.get("source_face") == preset.source.face
    if preset.input is not None:
        assert (found["input"], found["size"], found["loop"]) == (preset.input.spec, "640x360", preset.input.loop)
        assert (found.get("fps"), found.get("fourcc"), found["timecode"]) == (preset.input.fps, preset.input.fourcc, preset.input.timecode)
        framed = found["camera"].settings()
        assert {name: getattr(preset.input, name) for name in framed} == framed
        assert (preset.input.exposure_ms is None) == ("exposure_ms" not in framed)
    if preset.output is not None:
        assert found.get("to", ()) == preset.output.addresses
        assert found.get("virtual_camera") == ("auto" if preset.output.virtual_camera == "" else preset.output.virtual_camera)
        assert (found.get("record"), found["null"], found["overwrite"]) == (
            preset.output.record,
            preset.output.null,
            preset.output.overwrite,
        )
        assert found["encoder"] == preset.output.encoder
        assert found.get("bitrate") == (None if preset.output.bitrate_bps is None else str(preset.output.bitrate_bps))


def test_options_win_over_the_preset_even_where_they_are_the_default() -> None:
    Presets().save("soft", Preset(look=LookSettings(opacity=0.5, smoothing=0.25, masks=("mouth",), on_lost=OnLost.BLUR)))
    _, bound, _ = app.parse_args(["--preset", "soft", "--opacity", "1.0", "--mask", "hands"], exit_on_error=False)
    look = LookSettings(**bound.arguments["look"].settings())
    assert look == LookSettings(opacity=1.0, smoothing=0.25, masks=("hands",), on_lost=OnLost.BLUR)
    _, bound, _ = app.parse_args(["--headless"], exit_on_error=False)
    assert bound.arguments.get("look", LookOptions()).settings() == LookOptions().settings()


def test_people_of_a_preset_are_those_of_its_options() -> None:
    hopper, both = SourceSettings(photos=(HOPPER,)), SourceSettings(photos=(HOPPER, ASTRONAUT), face=1)
    named = (PersonSettings(number=2, source=both), PersonSettings(number=5, wear=Wear.HIDE))
    who = PeopleSettings(others=Wear.LEAVE, each=(hopper,), named=named, recogniser="mine")
    Presets().save("it", Preset.of(Settings(people=who), people=True))

    def found(*words: str) -> PeopleSettings:
        _, bound, _ = app.parse_args(["--preset", "it", *words], exit_on_error=False)
        return bound.arguments["people"].settings(SourceSettings())

    assert found() == who
    assert found("--others", "swap", "--recognise", "other") == who.model_copy(update={"others": Wear.SWAP, "recogniser": "other"})
    assert found("--person", "2=leave") == who.with_person(PersonSettings(number=2, wear=Wear.LEAVE))


def test_people_are_saved_from_the_command_line(answer: Answer) -> None:
    assert answer("presets", "save", "two", "--person", "1=leave", "2=Hopper", "--others", "hide")[0] == 0
    kept = Presets().load("two")
    assert kept.source is None
    assert kept.people is not None
    assert kept.people.others is Wear.HIDE
    assert [(one.number, one.wear, one.source and one.source.identity) for one in kept.people.named] == [
        (1, Wear.LEAVE, None),
        (2, Wear.SWAP, "Hopper"),
    ]
    assert answer("presets", "save", "one", "--opacity", "0.5")[0] == 0
    assert Presets().load("one").people is None


def test_a_width_alone_is_told() -> None:
    with pytest.raises(PresetError, match="both"):
        options_of(Preset(input=InputSettings(width=640)), "it")


def test_presets_from_the_command_line(answer: Answer, tmp_path: Path) -> None:
    assert "no preset" in answer("presets", "list")[2]
    save = ("presets", "save", "Kino: 大", "--opacity", "0.5", "--source", HOPPER, "--input", "synthetic:frames=5", "--size", "320x180")
    assert answer(*save)[0] == 0
    status, _, said = answer(*save)
    assert (status, "already" in said) == (1, True)
    assert answer(*save, "--replace", "--virtual-camera")[0] == 0
    kept = Presets().load("Kino: 大")
    assert kept.output == OutputPreset(virtual_camera="")
    assert kept.source == SourcePreset(identity="Hopper", id="built-in-hopper")
    assert json.loads(answer("presets", "list", "--json")[1]) == ["Kino: 大"]
    shown = answer("presets", "show", "Kino: 大")[1]
    assert Preset.from_toml(shown, "shown") == kept
    file = tmp_path / "out.toml"
    assert answer("presets", "export", "Kino: 大", file)[0] == 0
    assert answer("presets", "export", "Kino: 大", file)[0] == 1
    assert answer("presets", "remove", "Kino: 大")[0] == 0
    assert json.loads(answer("presets", "import", file, "--name", "b", "--json")[1]) == {"name": "b"}
    assert Presets().load("b") == kept
    assert answer("presets", "save", "c", "--to", "nobody")[0] == 1
    assert answer("presets", "save", "c", "--opacity", "2")[0] == 2


def test_a_preset_goes_live() -> None:
    preset = Preset(
        look=LookSettings(opacity=0.5),
        source=SourcePreset(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=320x180,frames=5"),
        output=OutputPreset(null=True),
    )
    Presets().save("it", preset)
    done = ffrt("--headless", "--preset", "it", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)["settings"]
    assert (facts["look"]["opacity"], facts["source"]["photos"]) == (0.5, [str(HOPPER)])
    wrong = ffrt("--headless", "--preset", "other", "--json")
    assert wrong.returncode == 1
    assert wrong.stderr.strip() == "ffrt: there is no preset 'other'; there are: it"


# --- addresses ---


def test_an_address_is_read_from_standard_input_and_its_key_never_shown(tmp_path: Path) -> None:
    pytest.importorskip("keyring")
    added = ffrt("addresses", "add", "twitch", given_text=f"{URL}\n")
    assert added.returncode == 0, added.stderr
    listed = ffrt("addresses", "list", "--json")
    assert json.loads(listed.stdout) == [{"name": "twitch", "shown": "rtmp://server/app/***", "secret": True}]
    shown = "".join(part for done in (added, listed, ffrt("addresses", "list")) for part in (done.stdout, done.stderr))
    assert KEY not in shown
    assert KEY in (tmp_path / "keys.json").read_text()
    assert all(KEY not in file.read_text() for file in (tmp_path / "config").rglob("*") if file.is_file())
    removed = ffrt("addresses", "remove", "twitch")
    assert removed.returncode == 0, removed.stderr
    assert KEY not in (tmp_path / "keys.json").read_text()


@pytest.mark.parametrize("text", ["", "\n", "no address\n", f"ftp://server/{KEY}\n", f"rtmp://s/a/{KEY}" + "x" * 5000 + " y\n"])
def test_what_is_no_address_is_refused_unseen(text: str) -> None:
    pytest.importorskip("keyring")
    done = ffrt("addresses", "add", "twitch", given_text=text)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("ffrt: ")
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert AddressBook().entries() == ()


@pytest.mark.parametrize("backend", ["keyring.backends.fail.Keyring", "keyring.backends.null.Keyring", "nowhere.Keyring"])
def test_a_machine_without_a_keyring_is_told_so(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("keyring")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", backend)
    done = ffrt("addresses", "add", "twitch", given_text=f"{URL}\n")
    assert done.returncode == 1
    assert "keyring" in done.stderr
    assert "--rtmp each time" in done.stderr
    assert "Traceback" not in done.stderr
    assert ffrt("addresses", "add", "studio", given_text="udp://192.0.2.1:5000\n").returncode == 0
    assert [entry.name for entry in AddressBook().entries()] == ["studio"]


def test_a_stream_goes_to_a_saved_address() -> None:
    pytest.importorskip("keyring")
    assert ffrt("addresses", "add", "here", given_text="udp://127.0.0.1:5999\n").returncode == 0
    done = ffrt("--headless", "--input", "synthetic:size=320x180,frames=10", "--to", "here", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["settings"]["output"]["streams"] == ["udp://127.0.0.1:5999"]
    assert report["sinks"]["udp"]["frames"] > 0
    wrong = ffrt("--headless", "--null", "--to", "there")
    assert wrong.returncode == 1
    assert "`ffrt addresses add NAME`" in wrong.stderr

"""Presets: kept whole, told clearly, never with a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ASTRONAUT, HOPPER
from hypothesis import given
from hypothesis import strategies as st

from app.errors import PresetError
from app.gallery import Gallery
from app.presets import Preset, Presets
from app.settings import InputSettings, LookSettings, OutputSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from rt.options import Blending, OnLost, Wear

KEY = "sk_live_0123"
SETTINGS = Settings(
    source=SourceSettings(photos=(Path("/photos/ä b.jpg"),), face=2),
    input=InputSettings(spec="0", width=1280, height=720, fps=29.97),
    look=LookSettings(masks=("mouth",), opacity=0.25, on_lost=OnLost.BLUR, blending=Blending.SEAMLESS),
    output=OutputSettings(streams=(f"rtmp://server/app/{KEY}",), virtual_camera="", record=Path("out.mp4")),
)

looks = st.builds(
    LookSettings,
    swapper=st.text(),
    enhancer=st.none() | st.text(),
    masks=st.lists(st.text()).map(tuple),
    opacity=st.floats(0, 1),
    smoothing=st.floats(0, 1),
    max_faces=st.integers(1, 8),
    on_lost=st.sampled_from(OnLost),
)


@given(looks)
def test_every_look_comes_back_as_it_went(look: LookSettings) -> None:
    preset = Preset(look=look)
    assert Preset.from_toml(preset.to_toml(), "it") == preset


@given(st.text(max_size=300))
def test_every_name_is_kept_or_refused(name: str) -> None:
    presets = Presets(Path("/presets"))
    try:
        path = presets.path(name)
    except PresetError:
        return
    from urllib.parse import unquote

    assert path.parent == presets.folder
    assert not path.name.startswith(".")
    assert unquote(path.stem) == name


def test_a_preset_is_saved_loaded_and_applied(tmp_path: Path) -> None:
    presets = Presets(tmp_path / "none yet")
    assert presets.names() == []
    kept = Preset.of(SETTINGS, source=True, input=True, output=True, addresses=("twitch",))
    path = presets.save("Großes Kino: 大", kept)
    assert presets.names() == ["Großes Kino: 大"]
    assert KEY not in path.read_text()
    back = presets.load("Großes Kino: 大").applied(Settings(), lambda name: f"rtmp://server/app/{KEY}" if name == "twitch" else "")
    assert back == SETTINGS


def test_a_look_alone_leaves_the_rest() -> None:
    changed = Preset(look=LookSettings(opacity=0.5)).applied(SETTINGS, str)
    assert changed == SETTINGS.model_copy(update={"look": LookSettings(opacity=0.5)})


@pytest.mark.parametrize("spec", ["rtsp://me:secret@camera/live", "rtmp://server/app/key"])
def test_an_input_with_a_secret_is_refused(spec: str) -> None:
    with pytest.raises(PresetError, match="secret") as caught:
        Preset.of(Settings(input=InputSettings(spec=spec)), input=True)
    assert spec not in str(caught.value)


BAD = {
    "broken": ("ffrt_preset = ", "not valid TOML"),
    "of the future": ("ffrt_preset = 2\n[look]\nmagic = 1", "newer ffrt"),
    "something else": ("[tool.black]\nline-length = 3", "ffrt_preset = 1"),
    "version as text": ("ffrt_preset = '1'", "ffrt_preset = 1"),
    "version as bool": ("ffrt_preset = true", "ffrt_preset = 1"),
    "unknown field": ("ffrt_preset = 1\n[look]\nopacty = 1.0", "look.opacty is unknown"),
    "stream key": ("ffrt_preset = 1\n[output]\nstreams = ['rtmp://s/a/k']", "output.streams is unknown"),
    "wrong type": ("ffrt_preset = 1\n[look]\nmax_faces = 'many'", "look.max_faces"),
    "out of range": ("ffrt_preset = 1\n[look]\nopacity = 7", "look.opacity"),
    "table expected": ("ffrt_preset = 1\nlook = 3", "look"),
    "deep": ("ffrt_preset = 1\nlook = " + "[" * 5000 + "]" * 5000, "TOML"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_preset_that_cannot_be_read_is_one_sentence_and_stays(case: str, tmp_path: Path) -> None:
    text, words = BAD[case]
    presets = Presets(tmp_path)
    path = presets.path("mine")
    path.write_text(text)
    with pytest.raises(PresetError) as caught:
        presets.load("mine")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value).strip()
    assert path.read_text() == text
    with pytest.raises(PresetError):
        presets.import_file(path, "other")
    assert presets.names() == ["mine"]


def test_what_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Exception, match="not text"):
        Presets(tmp_path).load("a")


def test_nothing_is_replaced_unasked_and_nothing_newer_ever(tmp_path: Path) -> None:
    presets = Presets(tmp_path)
    presets.save("a", Preset())
    with pytest.raises(PresetError, match="already"):
        presets.save("a", Preset(look=LookSettings(opacity=0)))
    presets.save("a", Preset(look=LookSettings(opacity=0)), replace=True)
    assert presets.load("a").look.opacity == 0
    presets.path("b").write_text("ffrt_preset = 9")
    with pytest.raises(PresetError, match="newer"):
        presets.save("b", Preset(), replace=True)
    assert presets.path("b").read_text() == "ffrt_preset = 9"


def test_export_import_remove(tmp_path: Path) -> None:
    presets = Presets(tmp_path / "presets")
    presets.save("a", Preset(look=LookSettings(opacity=0.5)))
    presets.export("a", tmp_path / "passed on.toml")
    with pytest.raises(PresetError, match="exists"):
        presets.export("a", tmp_path / "passed on.toml")
    assert presets.import_file(tmp_path / "passed on.toml") == "passed on"
    assert presets.load("passed on") == presets.load("a")
    presets.remove("a")
    with pytest.raises(PresetError, match="there are: passed on"):
        presets.remove("a")
    with pytest.raises(PresetError, match="does not exist"):
        presets.import_file(tmp_path / "none.toml")
    assert not list((tmp_path / "presets").glob("*.unfinished"))


def test_the_folder_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    Presets().save("a", Preset())
    assert (tmp_path / "presets" / "a.toml").is_file()


# --- on another machine ---


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a person whose name must not travel."""
    home = tmp_path / "wanda"
    home.mkdir()
    monkeypatch.setenv("FFRT_CONFIG", str(home))
    return home


def gallery_with_oma(folder: Path) -> tuple[Gallery, SourceSettings]:
    gallery = Gallery(folder / "gallery")
    return gallery, gallery.add([HOPPER], "Oma").source


def test_a_face_of_the_gallery_travels_by_name(here: Path, tmp_path: Path) -> None:
    gallery, source = gallery_with_oma(here)
    presets = Presets(here / "presets")
    presets.save("a", Preset.of(Settings(source=source), source=True, gallery=gallery))
    presets.export("a", tmp_path / "a.toml", gallery=gallery)
    text = (tmp_path / "a.toml").read_text()
    assert "wanda" not in text
    assert 'identity = "Oma"' in text

    elsewhere, there = Presets(tmp_path / "otto" / "presets"), Gallery(tmp_path / "otto" / "gallery")
    elsewhere.import_file(tmp_path / "a.toml")
    with pytest.raises(PresetError, match="no face in the gallery is called 'Oma'"):
        elsewhere.load("a").applied(Settings(), str, there)
    other = there.add([ASTRONAUT], "oma")
    assert elsewhere.load("a").applied(Settings(), str, there).source == other.source


def test_a_face_is_found_under_its_new_name(here: Path) -> None:
    gallery, source = gallery_with_oma(here)
    preset = Preset.of(Settings(source=source), source=True, gallery=gallery)
    gallery.rename(gallery.find("Oma").id, "Großmutter")
    assert preset.applied(Settings(), str, gallery).source == source


def test_files_travel_by_name_and_are_looked_for_beside_the_preset(here: Path, tmp_path: Path) -> None:
    photo, film = here / "private" / "me.jpg", here / "private" / "talk.mp4"
    photo.parent.mkdir()
    photo.write_bytes(HOPPER.read_bytes())
    settings = Settings(
        source=SourceSettings(photos=(photo,)),
        input=InputSettings(spec=str(film)),
        look=LookSettings(swapper=f"simswap:{here}/mine.onnx", masks=("hands", f"{here}/mask.onnx")),
        output=OutputSettings(record=here / "out.mp4"),
    )
    presets = Presets()
    presets.save("a", Preset.of(settings, source=True, input=True, output=True))
    passed_on = tmp_path / "passed on"
    presets.export("a", passed_on / "a.toml")
    assert "wanda" not in (passed_on / "a.toml").read_text()

    presets.import_file(passed_on / "a.toml", "without")
    with pytest.raises(PresetError, match=r"the photo me\.jpg, which is not here"):
        presets.load("without").applied(Settings(), str)
    for file in (photo, film):
        (passed_on / file.name).write_bytes(b"x")
    presets.import_file(passed_on / "a.toml", "with")
    there = presets.load("with").applied(Settings(), str)
    assert there.source.photos == (passed_on / "me.jpg",)
    assert there.input.spec == str(passed_on / "talk.mp4")
    assert there.look == LookSettings(swapper="simswap:mine.onnx", masks=("hands", "mask.onnx"))
    assert there.output.record == Path("out.mp4")


def test_photos_below_the_exported_file_keep_their_place(here: Path, tmp_path: Path) -> None:
    photo = tmp_path / "kit" / "photos" / "me.jpg"
    photo.parent.mkdir(parents=True)
    photo.write_bytes(HOPPER.read_bytes())
    presets = Presets()
    presets.save("a", Preset.of(Settings(source=SourceSettings(photos=(photo,))), source=True))
    presets.export("a", tmp_path / "kit" / "a.toml")
    (tmp_path / "kit").rename(tmp_path / "moved")
    presets.import_file(tmp_path / "moved" / "a.toml", "b")
    assert presets.load("b").applied(Settings(), str).source.photos == (tmp_path / "moved" / "photos" / "me.jpg",)


@pytest.mark.parametrize(
    "spec", ["0", "-", "synthetic:size=320x180,fps=30", "camera:Logitech", "/dev/video0", "rtsp://camera/live", "pipe:raw,size=2x2"]
)
def test_an_input_that_is_no_file_is_as_good_elsewhere(spec: str, here: Path) -> None:
    preset = (
        Preset.of(Settings(input=InputSettings(spec=spec)), input=True) if "rtsp" not in spec else Preset(input=InputSettings(spec=spec))
    )
    assert preset.portable(here, Gallery()).anchored(here) == preset


# --- who wears what ---

photos = st.lists(st.sampled_from([HOPPER, ASTRONAUT]), min_size=1).map(tuple)
faces = st.builds(SourceSettings, photos=photos, face=st.none() | st.integers(1, 9))
people = st.builds(
    PeopleSettings,
    others=st.sampled_from(Wear),
    each=st.lists(faces, max_size=3).map(tuple),
    named=st.lists(
        st.builds(PersonSettings, number=st.integers(1, 64), wear=st.sampled_from(Wear), source=st.none() | faces),
        unique_by=lambda person: person.number,
    ).map(tuple),
    recogniser=st.none() | st.text(),
)


@given(people, st.booleans())
def test_people_come_back_as_they_went(who: PeopleSettings, with_face: bool) -> None:
    settings = Settings(source=SourceSettings(photos=(HOPPER,)), people=who)
    kept = Preset.from_toml(Preset.of(settings, source=with_face, people=True).to_toml(), "it")
    back = kept.applied(Settings(people=PeopleSettings(others=Wear.HIDE)), str)
    assert back.people == who
    assert Preset().applied(settings, str) == settings.model_copy(update={"look": LookSettings()})  # one without leaves who wears what


def test_faces_of_people_travel_by_name_and_photos_beside_the_file(here: Path, tmp_path: Path) -> None:
    gallery, oma = gallery_with_oma(here)
    photo = here / "private" / "me.jpg"
    photo.parent.mkdir()
    photo.write_bytes(HOPPER.read_bytes())
    mine = SourceSettings(photos=(photo,))
    named = (PersonSettings(number=1, source=oma), PersonSettings(number=2, wear=Wear.LEAVE), PersonSettings(number=3, source=mine))
    presets = Presets(here / "presets")
    who = PeopleSettings(named=named, each=(oma,), recogniser=f"{here}/r.onnx")
    presets.save("a", Preset.of(Settings(people=who), people=True, gallery=gallery))
    presets.export("a", tmp_path / "out" / "a.toml", gallery=gallery)
    text = (tmp_path / "out" / "a.toml").read_text()
    assert "wanda" not in text
    elsewhere, there = Presets(tmp_path / "otto" / "presets"), Gallery(tmp_path / "otto" / "gallery")
    elsewhere.import_file(tmp_path / "out" / "a.toml", "without")
    with pytest.raises(PresetError, match="no face in the gallery is called 'Oma'"):
        elsewhere.load("without").applied(Settings(), str, there)
    theirs = there.add([ASTRONAUT], "oma").source
    with pytest.raises(PresetError, match=r"the photo me\.jpg, which is not here"):
        elsewhere.load("without").applied(Settings(), str, there)
    (tmp_path / "out" / "me.jpg").write_bytes(HOPPER.read_bytes())
    elsewhere.import_file(tmp_path / "out" / "a.toml", "with")
    found = elsewhere.load("with").applied(Settings(), str, there).people
    assert [person.source for person in found.named] == [theirs, None, SourceSettings(photos=(tmp_path / "out" / "me.jpg",))]
    assert (found.each, found.recogniser) == ((theirs,), "r.onnx")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[people]\nothers = 'dance'", "people.others"),
        ("[people]\nhats = true", "the field people.hats is unknown; remove it, or update ffrt"),
        ("[[people.named]]\nnumber = 0", "people.named.0.number"),
        ("[[people.named]]\nnumber = 2\n[[people.named]]\nnumber = 2", "name each once"),
        ("people = 3", "people"),
    ],
)
def test_people_that_cannot_be_are_one_sentence(lines: str, said: str) -> None:
    with pytest.raises(PresetError) as caught:
        Preset.from_toml(f"ffrt_preset = 1\n{lines}\n", "it.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("it.toml: ")


def test_people_of_a_newer_ffrt_are_one_sentence() -> None:
    with pytest.raises(PresetError, match=r"written by a newer ffrt .* update ffrt, the file is kept"):
        Preset.from_toml("ffrt_preset = 2\n[people]\nhats = true\n", "it.toml")


def test_one_that_cannot_be_read_is_removed_and_put_back_as_it_was(tmp_path: Path) -> None:
    presets = Presets(tmp_path)
    for text in (b"broken = ", b"ffrt_preset = 9\n", b"\xff"):
        presets.path("a").write_bytes(text)
        kept = presets.remove("a")
        assert presets.names() == []
        presets.put_back("a", kept)
        assert presets.path("a").read_bytes() == text
    with pytest.raises(PresetError, match="already"):
        presets.put_back("a", b"")

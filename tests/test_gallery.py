"""The gallery keeps what it was given, whatever it is called and whatever becomes of its files."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from app.errors import GalleryError, StoreError
from app.gallery import BYTES_MAX, DOCUMENT, NAME_MAX, THUMBNAIL_PX, Gallery, built_in, checked_name
from app.photo_check import Hint, PhotoCheck
from engines.errors import PhotoError
from engines.identity.photo import open_photo

CHECK = PhotoCheck()


@pytest.fixture
def gallery(tmp_path: Path) -> Gallery:
    return Gallery(tmp_path / "gallery", CHECK.look_at)


def own(gallery: Gallery) -> list[str]:
    return [identity.name for identity in gallery.identities() if not identity.built_in]


def test_it_keeps_a_copy(gallery: Gallery, tmp_path: Path) -> None:
    given_photo = tmp_path / "Grace.jpg"
    shutil.copy(HOPPER, given_photo)
    made = gallery.add([given_photo, given_photo])
    given_photo.unlink()
    assert made.name == "Grace"
    assert len(made.photos) == 1, "the same content is kept once"
    again = Gallery(gallery.folder, CHECK.look_at).find("grace")
    assert again == made
    assert again.source.photos[0].read_bytes() == HOPPER.read_bytes()
    left, top, width, height = again.photos[0].box or (0, 0, 0, 0)
    assert 0 < left < left + width < 1
    assert 0 < top < top + height < 1


def test_photos_come_and_go(gallery: Gallery) -> None:
    made = gallery.add([HOPPER], "someone")
    both = gallery.add_photos(made.id, [ASTRONAUT, HOPPER])
    assert [photo.file.read_bytes() for photo in both.photos] == [HOPPER.read_bytes(), ASTRONAUT.read_bytes()]
    removed = gallery.remove_photo(made.id, both.photos[0].file)
    left = gallery.find("someone")
    assert [photo.file for photo in left.photos] == [both.photos[1].file]
    with pytest.raises(GalleryError, match="only photo"):
        gallery.remove_photo(made.id, left.photos[0].file)
    assert {photo.file for photo in gallery.restore(removed).photos} == {photo.file for photo in both.photos}
    with pytest.raises(GalleryError, match="removed already"):
        gallery.remove_photo(made.id, made.photos[0].file.with_name("0" * 32))


def test_a_thumbnail_shows_the_face(gallery: Gallery) -> None:
    made = gallery.add([HOPPER])
    for identity in (made, *built_in()):
        file = gallery.thumbnail(identity)
        picture = open_photo(file)
        assert picture.shape == (THUMBNAIL_PX, THUMBNAIL_PX, 3)
        faces = CHECK.look_at(file).faces
        middle = faces[0][:, :2].mean(0) / THUMBNAIL_PX
        assert np.abs(middle - 0.5).max() < 0.1
        assert 0.4 < np.ptp(faces[0][:, :2], 0).max() / THUMBNAIL_PX < 0.8
    gallery.thumbnail(made).unlink()
    assert gallery.thumbnail(made).is_file(), "one that is gone is made again"


def test_a_photo_on_its_side_is_shown_upright(gallery: Gallery, tmp_path: Path) -> None:
    lying = tmp_path / "lying.png"
    cv2.imwrite(str(lying), cv2.rotate(open_photo(HOPPER), cv2.ROTATE_90_CLOCKWISE))
    by_exif = tmp_path / "exif.jpg"
    picture = Image.fromarray(cv2.rotate(open_photo(HOPPER), cv2.ROTATE_90_COUNTERCLOCKWISE)[..., ::-1])
    facts = Image.Exif()
    facts[0x0112] = 6  # the camera was turned: to be shown turned clockwise
    picture.save(by_exif, exif=facts, quality=95)
    for photo in (lying, by_exif):
        made = gallery.add([photo])
        assert made.photos[0].file.read_bytes() == photo.read_bytes(), "the copy is the file as it was given"
        assert CHECK.look_at(gallery.thumbnail(made)).faces
        assert made.photos[0].hints == CHECK.look_at(HOPPER).hints


def test_hints_are_kept(gallery: Gallery, tmp_path: Path) -> None:
    dark = tmp_path / "dark.png"
    small = cv2.resize(open_photo(HOPPER), None, fx=0.4, fy=0.4, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(dark), (small * 0.3).astype(np.uint8))
    made = gallery.add([dark])
    assert {Hint.DARK, Hint.SMALL} <= set(made.photos[0].hints)
    assert gallery.find(made.id) == made


NAMES = st.text(min_size=1, max_size=NAME_MAX).filter(lambda name: name.strip().isprintable() and name.strip())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
def test_any_name_that_can_be_shown_will_do(name: str, gallery: Gallery) -> None:
    try:
        wished = checked_name(name)
    except GalleryError:
        assert len(name) > 0  # longer in its normal form
        return
    identity = next((one for one in gallery.identities() if not one.built_in), None) or gallery.add([HOPPER], "first")
    gallery.rename(identity.id, "between")
    renamed = gallery.rename(identity.id, name)
    assert renamed.name == wished
    assert gallery.find(name) == renamed
    assert {path.name for path in gallery.folder.iterdir() if not path.name.startswith(".")} == {identity.id}


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[2J", "x" * (NAME_MAX + 1), "\u202e"])
def test_what_is_no_name_is_refused(name: str, gallery: Gallery) -> None:
    with pytest.raises(GalleryError, match="name"):
        gallery.add([HOPPER], name)
    assert own(gallery) == []


def test_names_are_told_apart(gallery: Gallery, tmp_path: Path) -> None:
    first = gallery.add([HOPPER], "Zoë/😀 ../x")
    with pytest.raises(GalleryError, match="already"):
        gallery.add([ASTRONAUT], "ZOE\u0308/😀 ../X")
    with pytest.raises(GalleryError, match="already"):
        gallery.add([ASTRONAUT], "hopper")
    other = gallery.add([ASTRONAUT], "other")
    with pytest.raises(GalleryError, match="already"):
        gallery.rename(other.id, first.name)
    assert gallery.rename(first.id, first.name.upper()).name == first.name.upper()
    long = tmp_path / ("n" * 200 + ".png")
    shutil.copy(ASTRONAUT, long)
    names = [gallery.add([long]).name for _ in range(2)]
    assert len(set(names)) == 2
    assert all(len(name) <= NAME_MAX for name in names)
    assert gallery.add([HOPPER]).name == "hopper 2", "the program's own portrait has that name"


def test_order_and_favourites(gallery: Gallery) -> None:
    ids = {name: gallery.add([HOPPER], name).id for name in "abc"}
    assert own(gallery) == ["a", "b", "c"]
    gallery.arrange([ids["c"], "gone", ids["a"]])
    assert own(gallery) == ["c", "a", "b"]
    gallery.set_favourite(ids["b"], True)
    assert own(gallery) == ["b", "c", "a"]
    assert [identity.built_in for identity in gallery.identities()] == [False] * 3 + [True] * 2
    gallery.add([ASTRONAUT], "d")
    assert own(gallery)[-1] == "d"


def test_a_face_that_was_removed_comes_back_until_the_end(gallery: Gallery) -> None:
    made = gallery.add([HOPPER], "a")
    removed = gallery.remove(made.id)
    assert own(gallery) == []
    gallery.add([ASTRONAUT], "a")
    back = gallery.restore(removed)
    assert (back.id, back.name, back.photos) == (made.id, "a 2", made.photos)
    with pytest.raises(GalleryError, match="brought back"):
        gallery.restore(removed)
    gallery.remove(made.id)
    gallery.close()
    assert not any(made.id in str(path) for path in gallery.folder.rglob("*"))
    with pytest.raises(GalleryError, match="brought back"):
        gallery.restore(removed)
    with pytest.raises(GalleryError, match="no longer"):
        gallery.remove(made.id)


def test_what_another_program_set_aside_is_left_to_it_for_a_day(gallery: Gallery) -> None:
    made = gallery.add([HOPPER], "a")
    gallery.remove(made.id)
    other = Gallery(gallery.folder, CHECK.look_at)
    other.close()
    aside = gallery.folder / ".removed" / made.id
    assert aside.is_dir()
    os.utime(aside, (0, 0))
    other.close()
    assert not aside.exists()


@pytest.mark.parametrize("identity", ["built-in-hopper", "", ".", "..", "../x", "a/b", ".removed", "unknown"])
def test_only_a_face_of_a_persons_own_is_changed(identity: str, gallery: Gallery) -> None:
    gallery.folder.mkdir()
    (gallery.folder.parent / "x").mkdir()
    for change in (
        lambda: gallery.remove(identity),
        lambda: gallery.rename(identity, "new"),
        lambda: gallery.set_favourite(identity, True),
        lambda: gallery.add_photos(identity, [HOPPER]),
    ):
        with pytest.raises(GalleryError):
            change()
    assert (gallery.folder.parent / "x").is_dir()


def test_what_is_no_photo_changes_nothing(gallery: Gallery, tmp_path: Path) -> None:
    text, empty, plain, folder = tmp_path / "t.jpg", tmp_path / "e.jpg", tmp_path / "p.png", tmp_path / "d"
    text.write_text("no picture")
    empty.touch()
    folder.mkdir()
    cv2.imwrite(str(plain), np.full((200, 200, 3), 128, np.uint8))
    huge = tmp_path / "huge.jpg"
    with huge.open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    for bad in (text, empty, plain, folder, huge, tmp_path / "none.jpg"):
        with pytest.raises(PhotoError):
            gallery.add([HOPPER, bad])
    with pytest.raises(GalleryError, match="no photo"):
        gallery.add([])
    assert own(gallery) == []
    made = gallery.add([HOPPER], "a")
    with pytest.raises(PhotoError):
        gallery.add_photos(made.id, [ASTRONAUT, text])
    assert gallery.find("a") == made


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff", b"[]", b'{"ffrt_identity": 2, "name": "x"}', b'{"ffrt_identity": 1, "name": ""}', b"[" * 100_000]
    + [b'{"ffrt_identity": 1, "name": "x", "photos": [{"file": "../../secret.jpg"}]}', b'{"ffrt_identity": 1, "name": "a\\u001b"}'],
)
def test_a_damaged_face_hides_no_other(data: bytes, gallery: Gallery) -> None:
    whole, broken = gallery.add([HOPPER], "whole"), gallery.add([ASTRONAUT], "broken")
    document = gallery.folder / broken.id / DOCUMENT
    document.write_bytes(data)
    shown = {identity.id: identity for identity in gallery.identities()}
    assert shown[whole.id] == whole
    assert shown[broken.id].problem
    assert [photo.file for photo in shown[broken.id].photos] == [photo.file for photo in broken.photos], "it can still be worn"
    with pytest.raises(StoreError):
        gallery.rename(broken.id, "new")
    assert document.read_bytes() == data
    gallery.arrange([broken.id, whole.id])
    removed = gallery.remove(broken.id)
    gallery.restore(removed)
    gallery.remove(broken.id)
    gallery.close()
    assert own(gallery) == ["whole"]


def test_a_photo_that_vanished_breaks_nothing(gallery: Gallery) -> None:
    made = gallery.add([HOPPER, ASTRONAUT], "a")
    made.photos[0].file.unlink()
    here = gallery.find("a")
    assert [photo.is_there for photo in here.photos] == [False, True]
    assert here.source.photos == (made.photos[1].file,)
    assert gallery.thumbnail(here).is_file()
    made.photos[1].file.unlink()
    with pytest.raises(GalleryError, match="no photo"):
        _ = gallery.find("a").source
    shutil.rmtree(gallery.folder / made.id)
    assert own(gallery) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError):
        Gallery(tmp_path / "file" / "gallery", CHECK.look_at).add([HOPPER])


def _add(folder: Path, start: str) -> None:
    gallery = Gallery(folder)
    for number in range(4):
        gallery.add([HOPPER], f"{start}{number}")
        gallery.add([HOPPER])


def test_two_processes_lose_nothing_of_each_other(gallery: Gallery) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_add, args=(gallery.folder, name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    names = own(gallery)
    assert len(names) == len(set(names)) == 16
    assert {f"hopper {number}" for number in range(2, 10)} <= set(names)

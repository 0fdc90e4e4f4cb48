"""From photos to the faces to wear: which face is taken, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from engines.detect import detectors
from engines.errors import NoFaceError, PhotoError
from engines.identity.source import load_source
from engines.landmarks.facemesh import FaceMesh

PORTRAIT = Path(__file__).resolve().parent.parent / "assets" / "portraits" / "astronaut.png"

NOSE = 1


@pytest.fixture(scope="module")
def load():
    detector, mesh = detectors["blazeface-full"](), FaceMesh()
    return lambda *paths, face=None: load_source(paths, face, detector, mesh)


@pytest.fixture(scope="module")
def portrait() -> np.ndarray:
    return cv2.imread(str(PORTRAIT))


@pytest.fixture
def pair(tmp_path, portrait) -> Path:
    """The portrait twice: at three quarters of its size on the left, whole on the right."""
    both = np.full((512, 896, 3), 128, np.uint8)
    both[:384, :384], both[:, 384:] = cv2.resize(portrait, (384, 384), interpolation=cv2.INTER_AREA), portrait
    cv2.imwrite(str(tmp_path / "pair.png"), both)
    return tmp_path / "pair.png"


@pytest.fixture
def wall(tmp_path) -> Path:
    cv2.imwrite(str(tmp_path / "wall.png"), np.full((300, 400, 3), 128, np.uint8))
    return tmp_path / "wall.png"


def test_one_face_a_photo_under_its_name(load, pair):
    first, second = load(PORTRAIT, pair)
    assert (first.name, second.name) == ("astronaut.png", "pair.png")
    assert first.image.shape == (512, 512, 3)
    assert first.landmarks.points.shape == (468, 3)


def test_the_largest_face_is_number_one_and_the_default(load, pair):
    (default,), (first,), (second,) = load(pair), load(pair, face=1), load(pair, face=2)
    np.testing.assert_array_equal(default.landmarks.points, first.landmarks.points)
    assert first.landmarks.points[NOSE, 0] > 384 > second.landmarks.points[NOSE, 0]


@pytest.mark.parametrize("number", [3, 0, -1])
def test_a_number_there_is_no_face_for_is_told_how_many_there_are(load, pair, number):
    with pytest.raises(NoFaceError, match=rf"pair\.png shows 2 faces; face {number} was asked for.*1 to 2"):
        load(pair, face=number)


@pytest.mark.parametrize("turn", [cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_180, cv2.ROTATE_90_COUNTERCLOCKWISE])
def test_a_photo_on_its_side_is_turned_upright(load, portrait, turn, tmp_path):
    cv2.imwrite(str(tmp_path / "turned.png"), cv2.rotate(portrait, turn))
    (face,) = load(tmp_path / "turned.png")
    points = face.landmarks.points
    assert points[33, 0] < points[263, 0]
    assert points[10, 1] < points[NOSE, 1] < points[152, 1]


def test_a_photo_without_a_face_is_named(load, wall):
    with pytest.raises(NoFaceError, match=r"no face was found in .*wall\.png; give a photo"):
        load(PORTRAIT, wall)


def test_a_photo_that_cannot_be_opened_is_named(load, tmp_path):
    with pytest.raises(PhotoError, match=r"nothing\.jpg does not exist"):
        load(PORTRAIT, tmp_path / "nothing.jpg")


WITHOUT_FACE = {"noface_cat.png", "noface_coffee.png"}


def photos(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in {".jpg", ".png", ".webp", ".heic"})


def test_every_photo_of_a_person_gives_its_face(load, shared_data):
    refused = []
    for path in photos(shared_data / "images"):
        if path.name in WITHOUT_FACE:
            continue
        try:
            (face,) = load(path)
        except PhotoError as error:
            refused.append(str(error))
            continue
        assert face.landmarks.score > 0.9, path.name
    assert not refused


@pytest.mark.parametrize("name", sorted(WITHOUT_FACE))
def test_pictures_without_a_face_give_none(load, shared_data, name):
    with pytest.raises(NoFaceError):
        load(shared_data / "images" / name)


BROKEN = ["text_named.png", "truncated.jpg", "zero_bytes.jpg", "audio_only.mp4", "truncated.mp4"]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(load, shared_data, name):
    with pytest.raises(PhotoError, match=name.replace(".", r"\.")):
        load(shared_data / "broken" / name)


def test_a_far_face_is_found_where_it_was_put(load, shared_data):
    """30 pixels high in 1280x720; its place was seen on the picture."""
    (face,) = load(shared_data / "images" / "very_small_face.jpg")
    np.testing.assert_allclose(face.landmarks.points[:, :2].mean(0), [775, 533], atol=8)


def test_all_of_a_group_can_be_chosen(load, shared_data):
    (last,) = load(shared_data / "images" / "group_seven_elderly.jpg", face=7)
    assert last.landmarks.score > 0.5

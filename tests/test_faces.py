"""Detectors, FaceMesh and iris on a portrait that ships with the program, moved about in ways whose result is known."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.detect import detectors
from engines.detect.blazeface import BlazeFace, anchor_centres, close_canvas, letterbox
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.landmarks.find import face_area, find_faces
from engines.landmarks.iris import Iris

PORTRAIT = Path(__file__).resolve().parent.parent / "assets" / "portraits" / "astronaut.png"

EYES = np.array([[203.3, 100.8], [246.3, 103.0]], np.float32)
"""Middles of the astronaut's irises, the viewer's left first: pixels, read by eye off the picture enlarged 18 times."""

MIDLINE = [10, 151, 9, 8, 168, 6, 197, 195, 5, 4, 1, 2, 164, 0, 17, 18, 200, 199, 175, 152]
"""FaceMesh points on the symmetry plane of the face."""


@pytest.fixture(scope="module")
def portrait() -> np.ndarray:
    return cv2.imread(str(PORTRAIT))


@pytest.fixture(scope="module")
def mesh() -> FaceMesh:
    return FaceMesh()


@pytest.fixture(scope="module")
def detector():
    return detectors["blazeface-full"]()


@pytest.mark.parametrize("name", ["blazeface-full", "blazeface-short"])
def test_finds_the_eyes_of_the_portrait(name, portrait):
    (face,) = detectors[name]().detect(portrait)
    assert 0.5 < face.score <= 1
    np.testing.assert_allclose(face.keypoints[:2], EYES, atol=8)
    left, top, right, bottom = face.box
    assert left < EYES[0, 0] < EYES[1, 0] < right
    assert top < EYES[:, 1].min() < bottom


@pytest.mark.parametrize("name", ["blazeface-full", "blazeface-short"])
@pytest.mark.parametrize("shape", [(1080, 1920), (720, 1280), (900, 500)], ids=lambda shape: f"{shape[1]}x{shape[0]}")
def test_coordinates_are_the_pictures_own_at_every_size(name, shape, portrait):
    """The head enlarged by a known factor and laid at a known place in a grey picture."""
    factor = min(shape) / 256 * 0.9
    picture = np.full((*shape, 3), 128, np.uint8)
    large = cv2.resize(portrait[10:266, 97:353], None, fx=factor, fy=factor)
    top, left = shape[0] - large.shape[0], shape[1] - large.shape[1]
    picture[top:, left:] = large
    (face,) = detectors[name]().detect(picture)
    np.testing.assert_allclose(face.keypoints[:2], (EYES - [97, 10]) * factor + [left, top], atol=8 * factor)


@pytest.mark.parametrize("shape", [(2, 2), (2, 700), (700, 2), (192, 192), (193, 191)])
def test_odd_shapes_are_looked_at(shape, detector):
    assert detector.detect(np.full((*shape, 3), 90, np.uint8)) == []


@pytest.mark.parametrize(("height", "width"), [(720, 1280), (1080, 1920), (300, 451), (100, 60), (1920, 1080)])
def test_a_letterbox_undoes_itself(height, width):
    """A soft bright spot is found in the square, and the way back leads to where it was put."""
    rows, columns = np.mgrid[:height, :width]
    x, y, sigma = width * 0.3, height * 0.6, max(height, width) / 60
    light = (250 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))).astype(np.uint8)
    box = letterbox(np.repeat(light[..., None], 3, 2), 192, 192)
    seen = box.pixels[..., 0].astype(np.float64)
    middles = np.arange(192) + 0.5
    at = np.array([seen.sum(0) @ middles, seen.sum(1) @ middles]) / seen.sum()
    np.testing.assert_allclose(box.to_picture(at) - 0.5, [x, y], atol=0.5 / box.scale)


def test_a_letterbox_is_rgb_and_as_good_as_an_average():
    noise = np.random.default_rng(0).integers(0, 256, (45, 80, 3), np.uint8)
    picture = cv2.resize(noise, (1280, 720), interpolation=cv2.INTER_CUBIC)
    square = letterbox(picture, 192, 192).pixels
    average = cv2.resize(picture, (192, 108), interpolation=cv2.INTER_AREA)
    assert np.abs(square[42:150, :, ::-1].astype(int) - average).mean() < 2
    assert not square[:42].any()
    assert not square[150:].any()


SIZES = st.integers(1, 5000)


@given(height=SIZES, width=SIZES)
def test_a_canvas_has_whole_strides_and_just_holds_the_picture(height: int, width: int) -> None:
    canvas = close_canvas(height, width, 192)
    assert max(canvas) == 192
    for length, room in zip((height, width), canvas, strict=True):
        assert room % 32 == 0
        assert 0 <= room - max(1, round(length * 192 / max(height, width))) < 32


@pytest.mark.parametrize(
    ("size", "canvas"), [((720, 1280), (128, 192)), ((1280, 720), (192, 128)), ((480, 640), (160, 192)), ((9, 9), (192, 192))]
)
def test_a_wide_picture_gets_a_wide_canvas(size: tuple[int, int], canvas: tuple[int, int]) -> None:
    assert close_canvas(*size, 192) == canvas


@pytest.mark.parametrize(("height", "width"), [(720, 1280), (1280, 720), (600, 800), (540, 1280)])
def test_a_face_at_the_border_of_any_canvas_is_where_it_is(height: int, width: int, portrait: np.ndarray, detector: BlazeFace) -> None:
    picture = np.full((height, width, 3), 90, np.uint8)
    picture[:512, -512:] = portrait
    (face, *_) = detector.detect(picture)
    np.testing.assert_allclose(face.keypoints[:2], EYES + [width - 512, 0], atol=16)  # by so much it is off in the square, too


def test_a_camera_that_changes_its_shape_is_followed(portrait: np.ndarray, detector: BlazeFace) -> None:
    """The network is open for one shape, and for the next one that comes."""
    for height, width in [(512, 910), (910, 512), (512, 683), (512, 910)]:
        picture = np.full((height, width, 3), 90, np.uint8)
        picture[:512, :512] = portrait
        (face, *_) = detector.detect(picture)
        np.testing.assert_allclose(face.keypoints[:2], EYES, atol=12)
        assert list(detector.networks) == ["face_detection_full_range_sparse"]


def test_anchors_are_the_centres_of_cells_row_by_row():
    np.testing.assert_array_equal(anchor_centres(4, 8, [(4, 1)]), [[2, 2], [6, 2]])
    anchors = anchor_centres(8, 8, [(4, 2), (8, 1)])
    np.testing.assert_array_equal(anchors, [[2, 2], [2, 2], [6, 2], [6, 2], [2, 6], [2, 6], [6, 6], [6, 6], [4, 4]])


def test_unknown_detectors_are_named_with_the_known_ones():
    with pytest.raises(KeyError, match="blazeface-full, blazeface-short"):
        detectors["haar"]


def test_the_mesh_lies_on_the_face(portrait, detector, mesh):
    (face,) = find_faces(portrait, detector, mesh)
    assert face.points.shape == (468, 3)
    assert face.points.dtype == np.float32
    assert face.score > 0.99
    left_eye, right_eye = face.points[[33, 133, 159, 145], :2].mean(0), face.points[[362, 263, 386, 374], :2].mean(0)
    np.testing.assert_allclose([left_eye, right_eye], EYES, atol=3)
    assert face.points[1, 2] < face.points[[127, 356], 2].min()  # the tip of the nose is nearer than the ears


@pytest.mark.parametrize("degrees", [-40, -15, 25, 60])
def test_the_mesh_turns_with_the_picture(degrees, portrait, detector, mesh):
    (upright,) = find_faces(portrait, detector, mesh)
    matrix = cv2.getRotationMatrix2D((225.0, 115.0), degrees, 1.0)
    turned = cv2.warpAffine(portrait, matrix, (512, 512), borderMode=cv2.BORDER_REPLICATE)
    expected = upright.points.copy()
    expected[:, :2] = upright.points[:, :2] @ matrix[:, :2].T + matrix[:, 2]
    found = mesh.locate(turned, roi_from_points(expected))
    eyes_px = np.linalg.norm(upright.points[33, :2] - upright.points[263, :2])
    errors = np.linalg.norm(found.points[:, :2] - expected[:, :2], axis=1)
    assert np.median(errors) < 0.02 * eyes_px


def test_the_mesh_of_a_mirrored_picture_is_mirrored(portrait, detector, mesh):
    (plain,) = find_faces(portrait, detector, mesh)
    (mirrored,) = find_faces(np.ascontiguousarray(portrait[:, ::-1]), detector, mesh)
    back = np.array([511, 0, 0]) + np.array([-1, 1, 1]) * mirrored.points[MIDLINE]
    np.testing.assert_allclose(back[:, :2], plain.points[MIDLINE, :2], atol=3)


def test_no_face_scores_low(mesh):
    noise = np.random.default_rng(4).integers(0, 256, (300, 300, 3), np.uint8)
    everywhere = np.tile(np.array([[150, 150, 0]], np.float32), (468, 1))
    everywhere[:, :2] += np.random.default_rng(5).uniform(-80, 80, (468, 2)).astype(np.float32)
    assert mesh.locate(noise, roi_from_points(everywhere)).score < 0.1


def test_irises_lie_in_the_eyes_the_persons_right_one_first(portrait, detector, mesh):
    (face,) = find_faces(portrait, detector, mesh)
    irises = Iris().locate(portrait, face.points)
    assert irises.shape == (2, 5, 2)
    assert irises.dtype == np.float32
    np.testing.assert_allclose(irises[:, 0], EYES, atol=1.5)
    np.testing.assert_allclose(irises[:, 1:].mean(1), irises[:, 0], atol=1)


def test_irises_of_a_mirrored_picture_change_places(portrait, detector, mesh):
    """The model knows one side of the face; the other eye must reach it mirrored."""
    (face,) = find_faces(portrait, detector, mesh)
    mirrored = np.ascontiguousarray(portrait[:, ::-1])
    points = face.points.copy()
    points[:, 0] = 511 - points[:, 0]
    points[[33, 133, 362, 263]] = points[[263, 362, 133, 33]]
    iris = Iris()
    plain, other = iris.locate(portrait, face.points)[:, 0], iris.locate(mirrored, points)[::-1, 0]
    np.testing.assert_allclose(np.array([511, 0]) + np.array([-1, 1]) * other, plain, atol=0.6)


def test_faces_come_the_largest_first_and_once(portrait, detector, mesh):
    small = cv2.resize(portrait, (384, 384), interpolation=cv2.INTER_AREA)
    both = np.full((512, 896, 3), 128, np.uint8)
    both[:384, :384], both[:, 384:] = small, portrait
    for tiles in (1, 2):
        faces = find_faces(both, detector, mesh, tiles)
        assert len(faces) == 2
        assert face_area(faces[0]) > face_area(faces[1])
        np.testing.assert_allclose(faces[0].points[1, 0] - 384, faces[1].points[1, 0] / 0.75, atol=4)


def test_tiles_find_what_is_too_small_for_the_whole(portrait, detector, mesh):
    scene = np.full((720, 1280, 3), 128, np.uint8)
    scene[400:640, 900:1140] = cv2.resize(portrait, (240, 240), interpolation=cv2.INTER_AREA)
    assert find_faces(scene, detector, mesh) == []
    (face,) = find_faces(scene, detector, mesh, tiles=2)
    np.testing.assert_allclose(face.points[:, :2].mean(0), EYES.mean(0) * 240 / 512 + [900, 400], atol=15)

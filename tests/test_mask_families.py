"""Every mask, on stand-ins that answer to colours and places: layout, colour order, norm, template, way back; and the mouth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from faces import face_at, in_crop, to_crop_by_hand
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import FolderKit, model_file
from scipy.stats import norm
from standins import bisenet as parsers
from standins.xseg import xseg

from engines.align import TEMPLATES
from engines.errors import ModelError
from engines.face import Patch
from engines.family import families
from engines.mask import masks
from engines.mask.contract import Mask

LAYOUTS: dict[str, dict[str, Any]] = {
    "facefusion": {},
    "roop": {"name": "xseg_input:0"},
    "visomaster": {"planar": True},
}

FACES = [(320.0, 250.0, 110.0, 0.0), (300.0, 260.0, 45.0, 25.0), (350.0, 240.0, 140.0, -70.0)]


def opened(path: Path, family: str, **options: Any) -> Mask:
    mask: Mask = families[family].open(model_file(path, family), FolderKit(options))
    return mask


def limit(mask: Mask, image: np.ndarray, points: np.ndarray, patch: Patch) -> None:
    """What a frame with one face does."""
    (cover,) = mask.covers(image, [points])
    cover(patch)


def whole(left: int = 0, top: int = 0, height: int = 480, width: int = 640, level: int = 255) -> Patch:
    return Patch(np.zeros((height, width, 3), np.uint8), np.full((height, width), level, np.uint8), left, top)


def slopes(height: int = 480, width: int = 640) -> np.ndarray:
    """uint8 [H, W, 3] BGR: three slow slopes in three directions."""
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    planes = [rows / height, 1 - columns / width, (columns / width + rows / height) / 2]
    return np.round(255 * np.stack(planes, -1)).astype(np.uint8)


def half_by_hand(points: np.ndarray, template: str, patch: Patch) -> np.ndarray:
    """float64 like ``patch.alpha``: a step in the middle of a crop of 256, blurred by 5 and drawn out from its upper half."""
    matrix = to_crop_by_hand(points, np.array(TEMPLATES[template]), 256)
    places = in_crop(matrix, patch.left, patch.top, *patch.alpha.shape)
    return np.clip(2 * norm.cdf((127.5 - places[..., 0]) / 5) - 1, 0, 1) * 255


def inner(points: np.ndarray, template: str, patch: Patch) -> np.ndarray:
    """bool like ``patch.alpha``: well inside of the crop."""
    matrix = to_crop_by_hand(points, np.array(TEMPLATES[template]), 256)
    places = in_crop(matrix, patch.left, patch.top, *patch.alpha.shape)
    return ((places > 20) & (places < 235)).all(-1)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_xseg_reads_red_as_red_and_lays_it_back(layout: str, face: tuple[float, ...], tmp_path: Path) -> None:
    image, points, patch = slopes(), face_at(*face), whole(30, 20, 440, 590)
    limit(opened(xseg(tmp_path / "x.onnx", **LAYOUTS[layout]), "xseg"), image, points, patch)
    red = image[20:460, 30:620, 2].astype(np.float64)
    wanted = np.clip(2 * red - 255, 0, 255)
    apart = np.abs(patch.alpha - wanted)[inner(points, "dfl_whole_face", patch) & (np.abs(red - 127.5) > 6)]
    assert apart.max() < 6  # two levels from rounding, doubled


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("layout", ["facefusion", "visomaster"])
def test_xseg_stands_in_its_template(layout: str, face: tuple[float, ...], tmp_path: Path) -> None:
    points, patch = face_at(*face), whole(30, 20, 440, 590)
    limit(opened(xseg(tmp_path / "x.onnx", **LAYOUTS[layout], half=True), "xseg"), slopes(), points, patch)
    apart = np.abs(patch.alpha - half_by_hand(points, "dfl_whole_face", patch))
    assert apart[inner(points, "dfl_whole_face", patch)].max() < 12  # 40 levels are a pixel; 10 of them the kink takes in sampling


@pytest.mark.parametrize("face", FACES)
def test_bisenet_stands_in_its_template(face: tuple[float, ...], tmp_path: Path) -> None:
    points, patch = face_at(*face), whole(30, 20, 440, 590)
    limit(opened(parsers.half(tmp_path / "x.onnx"), "bisenet"), slopes(), points, patch)
    apart = np.abs(patch.alpha - half_by_hand(points, "ffhq_512", patch))
    assert apart[inner(points, "ffhq_512", patch)].max() < 20  # every other column is read: the step may be a quarter of a pixel off


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_bisenet_norms_each_colour_as_imagenet(channel: int, tmp_path: Path) -> None:
    """Where one colour passes a level that the stand-in knows in ImageNet's units, the mask begins."""
    image = np.full((480, 640, 3), 77, np.uint8)
    image[..., 2 - channel] = np.round(np.linspace(255, 0, 640))
    points, patch = face_at(320, 250, 100), whole()
    limit(opened(parsers.threshold(tmp_path / "x.onnx", channel, 128), "bisenet"), image, points, patch)
    row = patch.alpha[250].astype(int)
    begins = int(np.flatnonzero(row > 0).max())
    assert abs(begins - 639 * (1 - 128 / 255)) < 4  # a level is 2.5 pixels wide


def painted(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A picture with a block of every class's colour inside of the crop, and the blocks' middles [19, 2]."""
    matrix = to_crop_by_hand(points, np.array(TEMPLATES["ffhq_512"]), 512)
    middles = np.array([[56 + 100 * (number % 5), 70 + 120 * (number // 5)] for number in range(19)], np.float64)
    crop = np.zeros((512, 512, 3), np.uint8)
    for (x, y), colour in zip(middles.astype(int), parsers.COLOURS, strict=True):
        crop[max(0, y - 60) : y + 60, max(0, x - 50) : x + 50] = colour[::-1]
    back = np.linalg.inv(matrix[:, :2])
    picture = cv2.warpAffine(crop, matrix, (640, 480), flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE)
    return picture, (middles - matrix[:, 2]) @ back.T


FACE = {1, 2, 3, 4, 5, 10, 11, 12, 13}
"""Skin, brows, eyes, nose, mouth, lips, by CelebAMask-HQ's numbers."""


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize(
    ("options", "kept"),
    [({}, FACE), ({"mask_regions": ["skin", "hair"]}, {1, 17}), ({"mask_regions": []}, set())],
    ids=["default", "asked", "none"],
)
def test_bisenet_keeps_the_regions_asked_for(options: dict, kept: set[int], others: int, tmp_path: Path) -> None:
    points, patch = face_at(310, 240, 90, 12), whole()
    image, middles = painted(points)
    limit(opened(parsers.bisenet(tmp_path / "x.onnx", others=others), "bisenet", **options), image, points, patch)
    seen = {number for number, (x, y) in enumerate(np.round(middles).astype(int)) if patch.alpha[y, x] > 250}
    hidden = {number for number, (x, y) in enumerate(np.round(middles).astype(int)) if patch.alpha[y, x] < 5}
    assert (seen, hidden) == (kept, set(range(19)) - kept)


def test_a_region_that_is_none_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"beard is no region of a face; known are skin, left_brow"):
        opened(parsers.bisenet(tmp_path / "x.onnx"), "bisenet", mask_regions=["skin", "beard"])


@pytest.mark.parametrize(("family", "make"), [("xseg", xseg), ("bisenet", parsers.half)])
def test_a_mask_takes_away_and_never_gives(family: str, make: Any, tmp_path: Path) -> None:
    mask, points = opened(make(tmp_path / "x.onnx"), family), face_at(320, 250, 110)
    full, faint = whole(), whole(level=90)
    limit(mask, slopes(), points, full)
    limit(mask, slopes(), points, faint)
    np.testing.assert_array_equal(faint.alpha, np.minimum(full.alpha, 90))


@pytest.mark.parametrize(("family", "make"), [("xseg", xseg), ("bisenet", parsers.half)])
def test_a_part_of_a_patch_is_a_part_of_the_mask(family: str, make: Any, tmp_path: Path) -> None:
    mask, points = opened(make(tmp_path / "x.onnx"), family), face_at(320, 250, 110)
    full, part = whole(), whole(210, 133, 150, 220)
    limit(mask, slopes(), points, full)
    limit(mask, slopes(), points, part)
    assert np.abs(part.alpha.astype(int) - full.alpha[133:283, 210:430]).max() <= 8  # warpAffine places to 1/32 of a pixel


@pytest.mark.parametrize(("family", "make"), [("xseg", xseg), ("bisenet", parsers.half)])
def test_a_mask_that_lies_about_its_output_is_one_clear_error(family: str, make: Any, tmp_path: Path) -> None:
    mask = opened(make(tmp_path / "x.onnx"), family)
    session = type("Wrong", (), {"run": lambda self, feeds: {"o": np.zeros((1, 5), np.float32)}})()
    mask._network._session = session
    with pytest.raises(ModelError, match=r"x gave \[1, 5\] where .* was expected"):
        limit(mask, slopes(), face_at(320, 250, 110), whole())


# --- the mouth ---

OUTER = [61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185]
"""MediaPipe's outline of the lips."""


def depth_in_lips(points: np.ndarray, patch: Patch) -> np.ndarray:
    """float64 like ``patch.alpha``: pixels from the outline of the lips, inside of it positive."""
    ring = points[OUTER, :2].astype(np.float32).reshape(-1, 1, 2)
    depth = np.full(patch.alpha.shape, -99.0)
    left, top = np.floor(ring.min((0, 1))).astype(int) - 9
    right, bottom = np.ceil(ring.max((0, 1))).astype(int) + 9
    for y in range(top, bottom):
        for x in range(left, right):
            depth[y - patch.top, x - patch.left] = cv2.pointPolygonTest(ring, (float(x), float(y)), True)
    return depth


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("face", [(150.0, 110.0, 80.0, 0.0), (140.3, 100.7, 60.0, 35.0)])
def test_the_mouth_alone_is_the_targets(face: tuple[float, ...], strength: float) -> None:
    points, patch = face_at(*face), whole(10, 5, 220, 260)
    limit(masks["mouth"](strength), np.zeros((240, 300, 3), np.uint8), points, patch)
    depth = depth_in_lips(points, patch)
    edge = 0.06 * float(np.ptp(points[OUTER, 0]))
    assert (patch.alpha[depth < -1] == 255).all()
    assert np.abs(patch.alpha[depth > edge + 1].astype(int) - 255 * (1 - strength)).max() <= 1
    if strength == 1:
        ramp = (depth > 1) & (depth < edge)
        assert np.abs(patch.alpha[ramp] - 255 * (1 - depth[ramp] / edge)).max() < 255 * 1.6 / edge  # a pixel and a half of its depth


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(15, 200), st.floats(-180, 180), st.floats(-60, 260), st.floats(-60, 260))
def test_more_strength_is_more_of_the_mouth(a: float, b: float, size: float, degrees: float, x: float, y: float) -> None:
    points = face_at(x, y, size, degrees)
    alphas = []
    for strength in sorted((a, b)):
        patch = whole(0, 0, 200, 220)
        limit(masks["mouth"](strength), np.zeros((200, 220, 3), np.uint8), points, patch)
        alphas.append(patch.alpha)
    assert (alphas[0] >= alphas[1]).all()


@pytest.mark.parametrize(
    "points", [np.full((468, 3), np.nan, np.float32), np.full((468, 3), -1e6, np.float32), np.zeros((468, 3), np.float32)]
)
def test_points_that_are_no_mouth_change_nothing_beyond_them(points: np.ndarray) -> None:
    patch = whole(0, 0, 100, 100)
    limit(masks["mouth"](), np.zeros((100, 100, 3), np.uint8), points, patch)
    assert (patch.alpha[3:, 3:] == 255).all()


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
def test_a_strength_that_is_none_is_refused(strength: float) -> None:
    with pytest.raises(ValueError, match="give a number from 0"):
        masks["mouth"](strength)

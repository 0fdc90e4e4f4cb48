"""Every enhancer family, on a stand-in that mixes a colour into its crop: norm, colour order, weight, template, way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faces import face_at, in_crop, to_crop_by_hand
from kit import FolderKit, model_file
from standins.codeformer import codeformer
from standins.gfpgan import by_hand, gfpgan
from standins.gpen import gpen
from standins.restoreformer import restoreformer

import engines.enhance  # noqa: F401  registers the families
from engines.align import TEMPLATES
from engines.enhance.contract import Enhancer
from engines.errors import ModelError
from engines.face import Patch
from engines.family import families
from engines.paste import paste

CASES: dict[str, tuple[str, Callable[..., Path], dict[str, Any], str, int]] = {
    "gfpgan_1.4": ("gfpgan", gfpgan, {}, "ffhq_512", 512),
    "gfpgan of roop": ("gfpgan", gfpgan, {"output": "1288"}, "ffhq_512", 512),
    "restoreformer": ("restoreformer", restoreformer, {}, "ffhq_512", 512),
    "restoreformer of visomaster": ("restoreformer", restoreformer, {"others": True}, "ffhq_512", 512),
    "gpen_256": ("gpen", gpen, {"side": 256}, "arcface_128", 256),
    "gpen_512": ("gpen", gpen, {"side": 512}, "ffhq_512", 512),
    "gpen_1024": ("gpen", gpen, {"side": 1024}, "ffhq_512", 1024),
    "gpen_2048": ("gpen", gpen, {"side": 2048}, "ffhq_512", 2048),
}

FACE = (320.0, 250.0, 90.0, 17.0)


def opened(path: Path, family: str, **options: Any) -> Enhancer:
    enhancer: Enhancer = families[family].open(model_file(path, family), FolderKit(options))
    return enhancer


def slopes(height: int = 480, width: int = 640) -> np.ndarray:
    """uint8 [H, W, 3] BGR: three slow slopes in three directions."""
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    planes = [rows / height, 1 - columns / width, (columns / width + rows / height) / 2]
    return np.round(255 * np.stack(planes, -1)).astype(np.uint8)


def check(patch: Patch | None, image: np.ndarray, points: np.ndarray, place: str, side: int, brightness: float = 1.0) -> None:
    """The patch is the crop's box, opaque in its middle, clear at its border, and holds what the stand-in makes of the picture."""
    assert patch is not None
    height, width = patch.alpha.shape
    below = image[patch.top : patch.top + height, patch.left : patch.left + width]
    opaque = patch.alpha == 255
    assert np.abs(patch.pixels - by_hand(below, brightness))[opaque].max() < 3
    places = in_crop(to_crop_by_hand(points, np.array(TEMPLATES[place]), side), patch.left, patch.top, height, width) / side
    from_border = np.minimum(places, 1 - places).min(-1)
    assert (patch.alpha[from_border < 0] <= 2).all()
    corners = to_corners(points, place, side)
    pixel = 1 / np.linalg.norm(corners[1] - corners[0])
    assert (patch.alpha[from_border > 0.12 + 1.5 * pixel] == 255).all()
    assert opaque.mean() > 0.2
    wanted = np.r_[np.maximum(corners.min(0), 0), np.minimum(corners.max(0), [image.shape[1], image.shape[0]])]
    assert np.abs(wanted - [patch.left, patch.top, patch.left + width, patch.top + height]).max() < 3


def to_corners(points: np.ndarray, place: str, side: int) -> np.ndarray:
    matrix = to_crop_by_hand(points, np.array(TEMPLATES[place]), side)
    corners = np.array([[0, 0], [side, 0], [side, side], [0, side]], np.float64)
    found: np.ndarray = (corners - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_face_becomes_what_the_network_makes_of_it(name: str, tmp_path: Path) -> None:
    family, make, given, place, side = CASES[name]
    enhancer = opened(make(tmp_path / "x.onnx", **given), family)
    image, points = slopes(), face_at(*FACE)
    check(enhancer.enhance(image, points), image, points, place, side)
    assert enhancer.name == "x"


@pytest.mark.parametrize(
    "face", [(320.0, 250.0, 60.0, -75.0), (40.0, 250.0, 110.0, 0.0), (600.0, 460.0, 80.0, 150.0), (300.0, 200.0, 20.0, 5.0)]
)
@pytest.mark.parametrize("name", ["gfpgan_1.4", "gpen_256"])
def test_faces_anywhere(name: str, face: tuple[float, ...], tmp_path: Path) -> None:
    family, make, given, place, side = CASES[name]
    image, points = slopes(), face_at(*face)
    check(opened(make(tmp_path / "x.onnx", **given), family).enhance(image, points), image, points, place, side)


@pytest.mark.parametrize("visomaster", [False, True])
@pytest.mark.parametrize(("options", "weight"), [({}, 0.5), ({"enhancer_weight": 0.0}, 0.0), ({"enhancer_weight": 0.9}, 0.9)])
def test_codeformer_is_given_its_weight(options: dict[str, float], weight: float, visomaster: bool, tmp_path: Path) -> None:
    image, points = slopes(), face_at(*FACE)
    enhancer = opened(codeformer(tmp_path / "x.onnx", visomaster=visomaster), "codeformer", **options)
    check(enhancer.enhance(image, points), image, points, "ffhq_512", 512, weight)


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_a_weight_that_is_none_is_refused(weight: float, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the weight of x is .*; give a number from 0"):
        opened(codeformer(tmp_path / "x.onnx"), "codeformer", enhancer_weight=weight)


@pytest.mark.parametrize("place", [np.nan, -5000.0, 0.0])
def test_points_that_are_no_face_give_no_patch(place: float, tmp_path: Path) -> None:
    enhancer = opened(gpen(tmp_path / "x.onnx"), "gpen")
    assert enhancer.enhance(slopes(), np.full((468, 3), place, np.float32)) is None


def test_a_face_outside_of_the_picture_gives_no_patch(tmp_path: Path) -> None:
    assert opened(gpen(tmp_path / "x.onnx"), "gpen").enhance(slopes(), face_at(-900, 200, 90)) is None


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (np.zeros((1, 3, 9, 9), np.float32), r"x gave \[1, 3, 9, 9\] where \[1, 3, 256, 256\] was expected"),
        (np.full((1, 3, 256, 256), np.nan, np.float32), "x gave values that are no numbers"),
    ],
)
def test_a_file_that_lies_about_its_output_is_one_clear_error(result: np.ndarray, said: str, tmp_path: Path) -> None:
    enhancer = opened(gpen(tmp_path / "x.onnx"), "gpen")
    enhancer._network._session = type("Wrong", (), {"run": lambda self, feeds: {"o": result}})()
    with pytest.raises(ModelError, match=said):
        enhancer.enhance(slopes(), face_at(*FACE))


def test_a_fine_crop_is_averaged_where_it_is_pasted_small() -> None:
    """A checkerboard of single pixels, eight of them for one of the picture's, is grey, and stays in its place."""
    crop = np.indices((1024, 1024)).sum(0) % 2 * np.uint8(255)
    crop = np.repeat(crop[..., None], 3, 2).astype(np.uint8)
    crop[512:], alpha = 255, np.full((1024, 1024), 255, np.uint8)
    matrix = np.array([[8, 0, -80.0], [0, 8, -160.0]], np.float32)
    patch = paste(crop, alpha, matrix, (300, 300, 3))
    assert patch is not None
    row = (512 + 160) / 8 - 0.5 - patch.top + 0.5 / 8  # where the upper half ends
    above, below = patch.pixels[8 : int(row) - 2, 8:-8], patch.pixels[int(row) + 2 : -8, 8:-8]
    assert np.abs(above.astype(int) - 128).max() <= 1
    assert (below == 255).all()
    column = patch.pixels[:, 50, 0].astype(np.float64)
    crossing = np.interp(191.5, column[int(row) - 2 : int(row) + 4], np.arange(int(row) - 2, int(row) + 4))
    assert crossing == pytest.approx((511.5 + 160) / 8 - patch.top, abs=0.07)

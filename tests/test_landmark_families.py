"""Every landmark family, on a stand-in whose points stand around a coloured blob: crop, scale, colour order, norm, way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit import FolderKit, model_file
from standins import blob
from standins.fan4_2d import fan4_2d
from standins.fan_68_5 import SHIFT, fan_68_5, shares
from standins.insight_3d68 import DEPTHS, insight_3d68
from standins.insight_106 import insight_106
from standins.peppa_wutz import peppa_wutz

import engines.landmarks  # noqa: F401  registers the families
from engines.align import TEMPLATES
from engines.errors import ModelError
from engines.family import families
from engines.landmarks.contract import Landmarker, Points, Sought

RED = blob.COLOUR[0] / 255

CASES: dict[str, tuple[Callable[[Path], Path], int, int, float, float]] = {
    "2dfan4": (fan4_2d, 68, 256, 195 / 256, 0.7 * RED / 0.9),
    "peppa_wutz": (peppa_wutz, 68, 256, 195 / 256, 0.7 * RED / 0.95),
    "insight_106": (insight_106, 106, 192, 1 / 1.5, 1.0),
    "insight_3d68": (insight_3d68, 68, 192, 1 / 1.5, 1.0),
}
"""Stand-in, points, pixels of the crop, share of it that the box takes, and the score."""


def opened(make: Callable[[Path], Path], family: str, folder: Path) -> Landmarker:
    landmarker: Landmarker = families[family].open(model_file(make(folder / f"{family}.onnx"), family), FolderKit())
    return landmarker


@pytest.fixture(scope="module")
def landmarkers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Landmarker]:
    folder = tmp_path_factory.mktemp("landmarks")
    return {name: opened(case[0], name, folder) for name, case in CASES.items()}


def picture(height: int, width: int, middle: np.ndarray, decoy: np.ndarray, sigma: float) -> np.ndarray:
    """uint8 [height, width, 3] BGR: two soft blobs on black."""
    rows, columns = np.mgrid[:height, :width]
    light = np.zeros((height, width, 3))
    for (x, y), colour in ((middle, blob.COLOUR), (decoy, blob.DECOY)):
        light += np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2))[..., None] * np.array(colour[::-1])
    return np.round(light).astype(np.uint8)


def turned(degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def five_around(centre: np.ndarray, side: float, degrees: float) -> np.ndarray:
    upright = np.array([[-0.2, -0.15], [0.2, -0.15], [0, 0.05], [-0.15, 0.25], [0.15, 0.25]]) * side
    return (centre + upright @ turned(degrees).T).astype(np.float32)


def looked(landmarker: Landmarker, degrees: float, width: float, height: float) -> tuple[Points, np.ndarray]:
    """What the model says of a face whose box is ``width`` × ``height``; and where its blob is."""
    side = max(width, height)
    centre = np.array([side * 0.9 + 3.3, side * 0.8 + 1.7])
    middle = centre + turned(degrees) @ [0.13 * side, -0.21 * side]
    decoy = centre + turned(degrees) @ [-0.25 * side, 0.2 * side]
    image = picture(round(1.7 * side), round(1.9 * side), middle, decoy, 0.05 * side)
    box = np.r_[centre - [width / 2, height / 2], centre + [width / 2, height / 2]].astype(np.float32)
    return landmarker.locate(image, [Sought(box, five_around(centre, side, degrees))])[0], middle


@pytest.mark.parametrize(("width", "height"), [(90, 110), (180, 240), (260, 200), (420, 560)])
@pytest.mark.parametrize("degrees", [0, 20, -55])
@pytest.mark.parametrize("name", CASES)
def test_points_are_where_the_blob_is(name: str, degrees: float, width: int, height: int, landmarkers: dict[str, Landmarker]) -> None:
    _, count, side, share, score = CASES[name]
    found, middle = looked(landmarkers[name], degrees, width, height)
    pixel = max(width, height) / share / side
    wanted = middle + blob.pattern(count) @ turned(degrees).T * pixel
    assert found.points.dtype == found.five.dtype == np.float32
    assert found.points.shape == (count, 3 if name == "insight_3d68" else 2)
    np.testing.assert_allclose(found.points[:, :2], wanted, atol=0.4)
    if name == "insight_3d68":
        np.testing.assert_allclose(found.points[:, 2], DEPTHS * pixel, atol=0.01)
    assert found.score == pytest.approx(score, abs=0.02)


@pytest.mark.parametrize("degrees", [0, 25])
@pytest.mark.parametrize("name", CASES)
def test_the_crop_stands_in_the_middle_of_the_box(name: str, degrees: float, landmarkers: dict[str, Landmarker]) -> None:
    """Without a blob the stand-ins' points are at places of the crop that are known."""
    _, count, side, share, _ = CASES[name]
    box, centre = np.array([110, 60, 290, 300], np.float32), np.array([200.0, 180.0])
    (found,) = landmarkers[name].locate(np.zeros((400, 500, 3), np.uint8), [Sought(box, five_around(centre, 180, degrees))])
    from_middle = blob.pattern(count) - [blob.BRIGHT_PX, 0] - side / 2
    np.testing.assert_allclose(found.points[:, :2], centre + from_middle @ turned(degrees).T * (240 / share / side), atol=0.05)


@pytest.mark.parametrize("name", ["2dfan4", "peppa_wutz", "insight_3d68"])
def test_five_of_68(name: str, landmarkers: dict[str, Landmarker]) -> None:
    found, _ = looked(landmarkers[name], 0, 180, 240)
    p = found.points[:, :2].astype(np.float64)
    np.testing.assert_allclose(found.five, [p[36:42].mean(0), p[42:48].mean(0), p[30], p[48], p[54]], atol=1e-3)


def test_five_of_106(landmarkers: dict[str, Landmarker]) -> None:
    found, _ = looked(landmarkers["insight_106"], 0, 180, 240)
    p = found.points.astype(np.float64)
    left, right = (p[33] + p[35] + p[39] + p[40]) / 4, (p[87] + p[89] + p[93] + p[94]) / 4
    np.testing.assert_allclose(found.five, [left, right, p[86], p[52], p[61]], atol=1e-3)


@pytest.mark.parametrize("degrees", [0, 33, -120])
def test_68_from_five(degrees: float, tmp_path: Path) -> None:
    """The stand-in mixes the five as they lie in a crop of ffhq_512 whose side is 1: by a similarity that lstsq finds."""
    given = five_around(np.array([333.0, 222.0]), 150, degrees)
    given[2] += [4, -7]  # no exact copy of the template
    sought = Sought(np.zeros(4, np.float32), given)
    (found,) = opened(fan_68_5, "fan_68_5", tmp_path).locate(np.zeros((4, 4, 3), np.uint8), [sought])
    wanted = np.array(TEMPLATES["ffhq_512"])
    rows = [[x, -y, 1, 0] for x, y in given] + [[y, x, 0, 1] for x, y in given]
    cos, sin, right, down = np.linalg.lstsq(np.array(rows, np.float64), np.r_[wanted[:, 0], wanted[:, 1]], rcond=None)[0]
    turn, shift = np.array([[cos, -sin], [sin, cos]]), np.array([right, down])
    mixed = shares().astype(np.float64) @ (given @ turn.T + shift) + SHIFT
    np.testing.assert_allclose(found.points, (mixed - shift) @ np.linalg.inv(turn).T, atol=0.05)
    np.testing.assert_array_equal(found.five, given)


@pytest.mark.parametrize("name", [*CASES, "fan_68_5"])
def test_a_face_of_no_numbers_is_one_clear_error(name: str, tmp_path: Path) -> None:
    make = CASES[name][0] if name in CASES else fan_68_5
    landmarker = opened(make, name, tmp_path)
    bad = np.full((5, 2), np.nan, np.float32)
    with pytest.raises(ModelError, match=f"{name} was given .* no numbers"):
        landmarker.locate(np.zeros((50, 50, 3), np.uint8), [Sought(np.array([0, 0, 9, 9], np.float32), bad)])


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_lies_about_its_output_is_one_clear_error(name: str, tmp_path: Path) -> None:
    landmarker = opened(CASES[name][0], name, tmp_path)
    session = type("Wrong", (), {"run": lambda self, feeds: {"o": np.zeros((1, 5), np.float32)}})()
    landmarker._view._network._session = session
    with pytest.raises(ModelError, match=rf"{name} gave \[1, 5\] where .* was expected"):
        landmarker.locate(np.zeros((50, 50, 3), np.uint8), [Sought(np.array([0, 0, 9, 9], np.float32), five_around(np.zeros(2), 9, 0))])


@pytest.mark.parametrize("box", [(-900, -900, -800, -800), (5, 5, 5, 5), (0, 0, 20000, 20000)])
@pytest.mark.parametrize("name", CASES)
def test_odd_boxes_are_looked_at(name: str, box: tuple[float, ...], landmarkers: dict[str, Landmarker]) -> None:
    sought = Sought(np.array(box, np.float32), five_around(np.zeros(2), 9, 0))
    (found,) = landmarkers[name].locate(np.full((40, 60, 3), 90, np.uint8), [sought])
    assert np.isfinite(found.points).all()

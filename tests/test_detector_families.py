"""Every detector family, on a stand-in that fires where a marker is: colour order, norm, letterbox, decode, way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from kit import FolderKit, model_file
from standins.marker import SCORES, WEAK, Marker, scene
from standins.scrfd import scrfd
from standins.yoloface import yoloface
from standins.yunet import SCORES_BY_HAND, yunet

import engines.detect  # noqa: F401  registers the families
from engines.detect.canvas import canvas_size
from engines.detect.contract import Detector
from engines.errors import ModelError
from engines.family import families

CASES: dict[str, tuple[str, Callable[..., Path], dict[str, object], tuple[float, float]]] = {
    "insightface": ("scrfd", scrfd, {}, SCORES),
    "facefusion": ("scrfd", scrfd, {"insightface": False}, SCORES),
    "fixed": ("scrfd", scrfd, {"insightface": False, "side": 320}, SCORES),
    "yoloface": ("yoloface", yoloface, {}, SCORES),
    "visomaster": ("yoloface", yoloface, {"name": "images"}, SCORES),
    "yunet": ("yunet", yunet, {}, SCORES_BY_HAND),
}

SIZES = [(720, 1280), (1080, 1920), (1920, 1080), (900, 500), (300, 451), (130, 160), (641, 643)]


def opened(path: Path, family: str) -> Detector:
    detector: Detector = families[family].open(model_file(path, family), FolderKit())
    return detector


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("detectors")


@pytest.fixture(scope="module")
def detectors(folder: Path) -> dict[str, Detector]:
    return {name: opened(make(folder / f"{name}.onnx", **given), family) for name, (family, make, given, _) in CASES.items()}


def placed(height: int, width: int, where: str) -> tuple[Marker, Marker]:
    """A strong and a weak marker, large enough for a cell of 32, on either side of the middle."""
    w, h = round(0.28 * width), round(0.3 * height)
    left, top = {"corner": (0, 0), "inside": (round(0.13 * width), round(0.37 * height))}[where]
    return Marker(left, top, left + w, top + h), Marker(width - w - left, height - h, width - left, height, WEAK)


@pytest.mark.parametrize("where", ["corner", "inside"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[1]}x{size[0]}")
@pytest.mark.parametrize("name", CASES)
def test_boxes_and_keypoints_are_the_markers(name: str, size: tuple[int, int], where: str, detectors: dict[str, Detector]) -> None:
    markers = placed(*size, where)
    found = detectors[name].detect(scene(*size, *markers))
    assert len(found) == 2
    fixed = {"fixed": 320}.get(name, 640)
    pixel = max(1.0, max(size) / fixed)  # an edge that falls into a pixel of the canvas takes its colour away
    for detection, marker, score in zip(found, markers, CASES[name][3], strict=True):
        np.testing.assert_allclose(detection.box, marker.box, atol=1.3 * pixel if pixel > 1 else 0.02)
        np.testing.assert_allclose(detection.keypoints, marker.keypoints, atol=1.3 * pixel if pixel > 1 else 0.02)
        assert detection.score == pytest.approx(score, abs=1e-3)
        assert detection.box.dtype == detection.keypoints.dtype == np.float32


@pytest.mark.parametrize("layer", [8, 16, 32])
@pytest.mark.parametrize("name", ["insightface", "facefusion", "yoloface", "yunet"])
def test_every_layer_is_decoded_exactly(name: str, layer: int, tmp_path: Path) -> None:
    """Halved exactly: 1280 → 640."""
    family, make, given, scores = CASES[name]
    detector = opened(make(tmp_path / "x.onnx", **given, layer=layer), family)
    markers = Marker(130, 66, 410, 330), Marker(700, 402, 1004, 702, WEAK)
    found = detector.detect(scene(720, 1280, *markers))
    assert [round(detection.score, 3) for detection in found] == [round(score, 3) for score in scores]
    for detection, marker in zip(found, markers, strict=True):
        np.testing.assert_allclose(detection.box, marker.box, atol=0.02)
        np.testing.assert_allclose(detection.keypoints, marker.keypoints, atol=0.02)


@pytest.mark.parametrize("name", CASES)
def test_colours_are_not_swapped_and_an_empty_picture_is_empty(name: str, detectors: dict[str, Detector]) -> None:
    swapped = Marker(100, 100, 300, 300, (90, 40, 200)), Marker(400, 100, 600, 300, (120, 190, 40))
    assert detectors[name].detect(scene(480, 640, *swapped)) == []
    assert detectors[name].detect(np.zeros((480, 640, 3), np.uint8)) == []


@pytest.mark.parametrize("shape", [(1, 1), (2, 900), (900, 2), (33, 31)])
@pytest.mark.parametrize("name", CASES)
def test_odd_shapes_are_looked_at(name: str, shape: tuple[int, int], detectors: dict[str, Detector]) -> None:
    assert detectors[name].detect(np.full((*shape, 3), 90, np.uint8)) == []


def test_a_wide_picture_takes_a_wide_canvas() -> None:
    assert canvas_size(("height", "width"), (720, 1280, 3)) == (384, 640)
    assert canvas_size(("height", "width"), (1280, 720, 3)) == (640, 384)
    assert canvas_size(("height", "width"), (100, 160, 3)) == (128, 160)
    assert canvas_size((320, 320), (720, 1280, 3)) == (320, 320)


def test_yunet_is_decoded_as_opencv_does_it(tmp_path: Path) -> None:
    """OpenCV's own reader of the same file, on a picture that needs no letterbox."""
    path = yunet(tmp_path / "yunet.onnx")
    picture = scene(640, 640, Marker(30, 66, 290, 330), Marker(351, 402, 603, 606, WEAK))
    rows = cv2.FaceDetectorYN.create(str(path), "", (640, 640), 0.5, 0.4).detect(picture)[1]
    found = opened(path, "yunet").detect(picture)
    assert len(found) == len(rows) == 2
    for row, detection in zip(rows, found, strict=True):
        np.testing.assert_allclose(np.r_[row[:2], row[:2] + row[2:4]], detection.box, atol=1)
        np.testing.assert_allclose(row[4:14].reshape(5, 2), detection.keypoints, atol=1)
        assert row[14] == pytest.approx(detection.score, abs=1e-3)


class _Wrong:
    """A session that gives something else than its file says."""

    runtime = "test"

    def __init__(self, honest: object, results: dict[str, np.ndarray]) -> None:
        self.inputs, self._results = honest.inputs, results

    def run(self, feeds: object) -> dict[str, np.ndarray]:
        return self._results


@pytest.mark.parametrize("name", ["insightface", "yoloface", "yunet"])
def test_a_file_that_lies_about_its_outputs_is_one_clear_error(name: str, folder: Path, detectors: dict[str, Detector]) -> None:
    detector = opened(folder / f"{name}.onnx", CASES[name][0])
    network = detector._network
    network._session = _Wrong(network._session, {"a": np.zeros((7, 4), np.float32)})
    with pytest.raises(ModelError, match=rf"{name} gave \[7, 4\] where .* was expected"):
        detector.detect(np.zeros((480, 640, 3), np.uint8))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_no_faces(bad: float, folder: Path) -> None:
    detector = opened(folder / "yoloface.onnx", "yoloface")
    network = detector._network
    network._session = _Wrong(network._session, {"a": np.full((1, 20, 8400), bad, np.float32)})
    assert detector.detect(np.zeros((480, 640, 3), np.uint8)) == []


def test_a_network_that_fires_everywhere_is_bounded(folder: Path) -> None:
    detector = opened(folder / "yoloface.onnx", "yoloface")
    rows = np.random.default_rng(0).uniform(0.5, 640, (1, 20, 8400)).astype(np.float32)
    rows[:, 2:4], rows[:, 4] = 2, 0.9
    network = detector._network
    network._session = _Wrong(network._session, {"a": rows})
    assert 0 < len(detector.detect(np.zeros((480, 640, 3), np.uint8))) <= 3000

"""Several faces of a frame are one run of a network that takes any number, and come out as one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from faces import face_at
from kit import FolderKit, model_file
from one_lane import OneLane
from standins import identity as identities
from standins import swappers as standins
from standins.bisenet import bisenet
from standins.fan4_2d import fan4_2d
from standins.fan_68_5 import fan_68_5
from standins.gpen import gpen
from standins.insight_3d68 import insight_3d68
from standins.insight_106 import insight_106
from standins.peppa_wutz import peppa_wutz
from standins.swappers import Contract
from standins.xseg import xseg

import engines.enhance
import engines.identity
import engines.swap  # noqa: F401  register families
from engines.detect import detectors
from engines.enhance.contract import BatchEnhancer
from engines.face import Patch
from engines.family import families
from engines.landmarks.aligner import ModelAligner
from engines.landmarks.contract import Landmarker, sought_by_mesh
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.landmarks.find import find_faces
from engines.mask.contract import Cover, Mask
from engines.swap.contract import BatchSwapper
from engines.swap.neural import NeuralSwapper
from rt.clock import ManualClock
from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Look
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker

FACES = [face_at(150, 160, 60), face_at(450, 240, 80, 20), np.full((468, 3), np.nan, np.float32), face_at(120, 410, 40, -30)]
HALF = ((0.5,) * 3, (0.5,) * 3)


class Counted:
    """A session that counts its runs and the pictures in each."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.batches: list[int] = []

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.batches.append(max(len(value) for value in feeds.values()))
        answer: dict[str, np.ndarray] = self._session.run(feeds)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def swapper(folder: Path, batch: int | str, boost: int) -> tuple[NeuralSwapper, Counted]:
    """hyperswap, whose mask is to be told apart face by face as well."""
    contract = Contract(256, given=HALF, made=HALF, mask=True, outputs=("output", "mask"), batch=batch)
    parts = {"arcface_w600k_r50": model_file(identities.arcface(folder / "arcface_w600k_r50.onnx"), "arcface")}
    model = model_file(standins.swapper(folder / f"{batch}.onnx", contract), "hyperswap")
    made: NeuralSwapper = families["hyperswap"].open(model, FolderKit({"pixel_boost": boost}, **parts))
    made._session = counted = Counted(made._session)  # type: ignore[assignment]
    return made, counted


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    return np.random.default_rng(4).integers(0, 256, (480, 640, 3), np.uint8)


@pytest.fixture(scope="module")
def identity() -> np.ndarray:
    return np.random.default_rng(5).normal(0, 1, (1, 512)).astype(np.float32)


@pytest.mark.parametrize(("batch", "boost", "runs"), [("batch", 1, [3]), ("batch", 2, [12]), (1, 1, [1, 1, 1]), (1, 2, [1] * 12)])
def test_together_is_as_one_by_one(
    batch: int | str, boost: int, runs: list[int], picture: np.ndarray, identity: np.ndarray, tmp_path: Path
) -> None:
    made, counted = swapper(tmp_path, batch, boost)
    assert isinstance(made, BatchSwapper)
    alone = [made.swap(picture, points, identity, 1, 0) for points in FACES]
    counted.batches.clear()
    together = made.swap_all(picture, FACES, identity)
    assert counted.batches == runs
    assert [patch is None for patch in together] == [False, False, True, False]
    for one, other in zip(alone, together, strict=True):
        if one is None or other is None:
            assert one is other
            continue
        assert (one.left, one.top) == (other.left, other.top)
        assert np.array_equal(one.alpha, other.alpha)
        assert np.abs(one.pixels.astype(int) - other.pixels).max() <= 1


def test_no_face_is_no_run(picture: np.ndarray, identity: np.ndarray, tmp_path: Path) -> None:
    made, counted = swapper(tmp_path, "batch", 1)
    assert made.swap_all(picture, [], identity) == []
    assert made.swap_all(picture, [FACES[2]], identity) == [None]
    assert counted.batches == []


class Fixed:
    """A tracker that sees the same faces in every picture."""

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        points = [FACES[0], FACES[1], FACES[3]]
        return tuple(TrackedFace(number, face, FaceState.SEEN, 1.0) for number, face in enumerate(points, 1))


def test_a_lane_runs_the_network_once_a_frame(picture: np.ndarray, identity: np.ndarray, tmp_path: Path) -> None:
    shown = []
    for batch in ("batch", 1):
        made, counted = swapper(tmp_path, batch, 1)
        lane = OneLane(Fixed(), clock=ManualClock())
        frame = Frame(picture.copy(), 1, 0)
        lane.process(frame, Look(made, identity))
        lane.close()
        assert counted.batches == ([3] if batch == "batch" else [1, 1, 1])
        shown.append(frame.pixels)
    assert np.abs(shown[0].astype(int) - shown[1]).max() <= 1
    assert not np.array_equal(shown[0], picture)


@pytest.mark.parametrize(("batch", "runs"), [("batch", [3]), (1, [1, 1, 1])])
def test_an_enhancer_does_likewise(batch: int | str, runs: list[int], picture: np.ndarray, tmp_path: Path) -> None:
    model = model_file(gpen(tmp_path / "gpen.onnx", batch=batch), "gpen")
    enhancer = families["gpen"].open(model, FolderKit())
    enhancer._network._session = counted = Counted(enhancer._network._session)
    assert isinstance(enhancer, BatchEnhancer)
    alone = [enhancer.enhance(picture, points) for points in FACES]
    counted.batches.clear()
    together = enhancer.enhance_all(picture, FACES)
    assert counted.batches == runs
    assert [patch is None for patch in together] == [False, False, True, False]
    for one, other in zip(alone, together, strict=True):
        if one is not None and other is not None:
            assert np.array_equal(one.alpha, other.alpha)
            assert np.abs(one.pixels.astype(int) - other.pixels).max() <= 1


@pytest.mark.parametrize("fixed", [False, True])
def test_a_dfm_file_does_likewise(fixed: bool, picture: np.ndarray, tmp_path: Path) -> None:
    path = standins.dfm(tmp_path / "person.dfm")
    if fixed:
        model = onnx.load(path)
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
        onnx.save(model, path)
    made = families["dfm"].open(model_file(path, "dfm"), FolderKit())
    made._session = counted = Counted(made._session)
    assert isinstance(made, BatchSwapper)
    alone = [made.swap(picture, points, "person", 1, 0) for points in FACES]
    counted.batches.clear()
    together = made.swap_all(picture, FACES, "person")
    assert counted.batches == ([1, 1, 1] if fixed else [3])
    assert [patch is None for patch in together] == [False, False, True, False]
    for one, other in zip(alone, together, strict=True):
        if one is not None and other is not None:
            assert np.array_equal(one.alpha, other.alpha)
            assert np.array_equal(one.pixels, other.pixels)
    assert made.swap_all(picture, [], "person") == []


OTHERS: dict[str, tuple[str, Callable[..., Path]]] = {
    "xseg": ("xseg", xseg),
    "xseg in planes": ("xseg", partial(xseg, planar=True)),
    "bisenet": ("bisenet", bisenet),
}


@pytest.mark.parametrize("batch", ["n", 1])
@pytest.mark.parametrize("name", OTHERS)
def test_a_mask_does_likewise(name: str, batch: int | str, picture: np.ndarray, tmp_path: Path) -> None:
    family, make = OTHERS[name]
    mask: Mask = families[family].open(model_file(make(tmp_path / "mask.onnx", batch=batch), family), FolderKit())
    mask._network._session = counted = Counted(mask._network._session)  # type: ignore[attr-defined]
    image = cv2.blur(picture, (41, 41))

    def alphas(covers: Sequence[Cover]) -> list[np.ndarray]:
        patches = [Patch(image, np.full(image.shape[:2], 255, np.uint8), 0, 0) for _ in covers]
        for cover, patch in zip(covers, patches, strict=True):
            cover(patch)
        return [patch.alpha for patch in patches]

    alone = alphas([mask.covers(image, [points])[0] for points in FACES])
    counted.batches.clear()
    together = alphas(mask.covers(image, FACES))
    assert counted.batches == ([3] if batch == "n" else [1, 1, 1])
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)
    assert (together[2] == 255).all(), "a face whose points are no numbers is left alone"
    assert not np.array_equal(together[0], together[1])
    assert mask.covers(image, []) == []


LANDMARKERS: dict[str, tuple[str, Callable[..., Path], list[int]]] = {
    "2dfan4": ("2dfan4", partial(fan4_2d, batch="n"), [3]),
    "2dfan4 of one": ("2dfan4", fan4_2d, [1, 1, 1]),
    "peppa_wutz": ("peppa_wutz", partial(peppa_wutz, batch="n"), [3]),
    "peppa_wutz of one": ("peppa_wutz", peppa_wutz, [1, 1, 1]),
    "2d106det": ("insight_106", insight_106, [3]),
    "1k3d68": ("insight_3d68", insight_3d68, [3]),
    "fan_68_5": ("fan_68_5", partial(fan_68_5, batch="n"), [3]),
    "fan_68_5 of one": ("fan_68_5", fan_68_5, [1, 1, 1]),
}


@pytest.mark.parametrize("name", LANDMARKERS)
def test_a_landmark_model_does_likewise(name: str, picture: np.ndarray, tmp_path: Path) -> None:
    family, make, runs = LANDMARKERS[name]
    model: Landmarker = families[family].open(model_file(make(tmp_path / "landmarks.onnx"), family), FolderKit())
    network = model._view._network if hasattr(model, "_view") else model._network  # type: ignore[attr-defined]
    network._session = counted = Counted(network._session)
    sought = [sought_by_mesh(points) for points in (FACES[0], FACES[1], FACES[3])]
    alone = [model.locate(picture, [face])[0] for face in sought]
    counted.batches.clear()
    together = model.locate(picture, sought)
    assert counted.batches == runs
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.points, other.points, atol=1e-3)
        np.testing.assert_allclose(one.five, other.five, atol=1e-3)
        assert one.score == pytest.approx(other.score)
    assert np.abs(together[0].points - together[1].points).max() > 20


def test_a_file_that_promises_more_than_it_can_is_found_out_once(
    picture: np.ndarray, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    family = families["insight_106"]
    model: Landmarker = family.open(model_file(insight_106(tmp_path / "2d106det.onnx", honest=False), "insight_106"), FolderKit())
    network = model._view._network  # type: ignore[attr-defined]
    network._session = counted = Counted(network._session)
    sought = [sought_by_mesh(points) for points in (FACES[0], FACES[1])]
    alone = [model.locate(picture, [face])[0] for face in sought]
    counted.batches.clear()
    for _ in range(2):
        for one, other in zip(alone, model.locate(picture, sought), strict=True):
            np.testing.assert_array_equal(one.points, other.points)
    assert counted.batches == [2, 1, 1, 1, 1]
    (record,) = caplog.records
    assert record.getMessage().startswith("2d106det takes one picture at a time, whatever its file says")


def test_an_aligner_asks_its_model_once(picture: np.ndarray, tmp_path: Path) -> None:
    """And so a swapper does whose points come from it."""
    model = families["insight_106"].open(model_file(insight_106(tmp_path / "2d106det.onnx"), "insight_106"), FolderKit())
    model._view._network._session = counted = Counted(model._view._network._session)
    made, _ = swapper(tmp_path, "batch", 1)
    made._aligner = ModelAligner(model)
    made.swap_all(picture, FACES, np.zeros((1, 512), np.float32))
    assert counted.batches == [3]


def test_facemesh_looks_at_all_faces_at_once(astronaut: np.ndarray) -> None:
    mesh = FaceMesh()
    mesh._session = counted = Counted(mesh._session)  # type: ignore[assignment]
    (face,) = find_faces(astronaut, detectors["blazeface-full"](), mesh)
    roi = roi_from_points(face.points)
    rois = [roi, replace(roi, angle=roi.angle + 0.3), replace(roi, x=roi.x + 200)]
    alone = [mesh.locate(astronaut, one) for one in rois]
    counted.batches.clear()
    together = mesh.locate_all(astronaut, rois)
    assert counted.batches == [3]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.points, other.points, atol=1e-3)
        assert one.score == pytest.approx(other.score, abs=1e-4)
    assert mesh.locate_all(astronaut, []) == []


def test_the_tracker_follows_all_faces_in_one_run(astronaut: np.ndarray) -> None:
    mesh = FaceMesh()
    mesh._session = counted = Counted(mesh._session)  # type: ignore[assignment]
    tracker = Tracker(detectors["blazeface-full"](), mesh, TrackOptions(max_faces=2))
    image = np.concatenate([astronaut, astronaut], 1)
    assert len(tracker.update(image, 0)) == 2
    counted.batches.clear()
    assert [face.state for face in tracker.update(image, 40_000_000)] == [FaceState.SEEN] * 2
    assert counted.batches == [2]

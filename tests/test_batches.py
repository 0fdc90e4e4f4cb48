"""Several faces of a frame are one run of a network that takes any number, and come out as one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from faces import face_at
from kit import FolderKit, model_file
from standins import identity as identities
from standins import swappers as standins
from standins.gpen import gpen
from standins.swappers import Contract

import engines.enhance
import engines.identity
import engines.swap  # noqa: F401  register families
from engines.device.host import HostDevice
from engines.enhance.contract import BatchEnhancer
from engines.family import families
from engines.swap.contract import BatchSwapper
from engines.swap.neural import NeuralSwapper
from rt.clock import ManualClock
from rt.frame import FaceState, Frame, TrackedFace
from rt.lane import Lane
from rt.metrics import Metrics
from rt.options import Look

FACES = [face_at(150, 160, 60), face_at(450, 240, 80, 20), np.full((468, 3), np.nan, np.float32), face_at(330, 380, 40, -30)]
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
        lane = Lane(HostDevice(), Fixed(), Metrics(), ManualClock())
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

"""Faces that overlap are drawn from the back to the front, each from the frame as it is then; masks look once, before any swap."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from faces import face_at, to_crop_by_hand
from hypothesis import given
from hypothesis import strategies as st
from kit import FolderKit, model_file
from one_lane import OneLane
from standins import identity as identities
from standins.gpen import gpen
from standins.swappers import centring
from standins.xseg import xseg
from test_batches import Counted

import engines.mask  # noqa: F401  registers families
from engines.align import TEMPLATES
from engines.face import Patch
from engines.family import families
from engines.paste import soft_box
from engines.swap.neural import NeuralSwapper
from rt.clock import ManualClock
from rt.compose.lay import lay
from rt.compose.layers import RESIZED, Layers, reach_of
from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Blending, Look
from rt.track.track import box_of, overlap

BACK, FRONT, APART = face_at(310, 220, 60), face_at(220, 250, 75), face_at(560, 410, 30)


def tracked(*points: np.ndarray) -> list[TrackedFace]:
    return [TrackedFace(number, face, FaceState.SEEN, 1.0) for number, face in enumerate(points, 1)]


def ids(layers: list[list[TrackedFace]]) -> list[list[int]]:
    return [[face.id for face in layer] for layer in layers]


placed = st.tuples(st.floats(0, 800), st.floats(0, 600), st.floats(10, 150), st.floats(-180, 180))


@given(st.lists(placed, max_size=6))
def test_what_touches_goes_from_the_back_to_the_front(places: list[tuple[float, float, float, float]]) -> None:
    faces = tracked(*(face_at(*place) for place in places))
    layers = Layers().of(faces)
    assert sorted(itertools.chain(*ids(layers))) == [face.id for face in faces]
    assert all(layers)
    depth = {face.id: number for number, layer in enumerate(layers) for face in layer}
    size = {face.id: float(np.ptp(face.points[:, :2], 0).max()) for face in faces}
    for one, other in itertools.permutations(faces, 2):
        if overlap(reach_of(one.points), box_of(other.points)) > 0:
            assert depth[one.id] != depth[other.id]
            if size[one.id] < size[other.id]:
                assert depth[one.id] < depth[other.id]


def test_faces_apart_are_one_layer() -> None:
    assert ids(Layers().of(tracked(FRONT, APART))) == [[2, 1]]
    assert Layers().of([]) == []


@given(st.sampled_from(sorted(TEMPLATES)), st.floats(-180, 180))
def test_the_reach_holds_what_is_drawn(template: str, degrees: float) -> None:
    """By hand: where the soft border of a crop of any family lets a fifth of it through, whatever way the head is tilted."""
    points, side = face_at(400, 300, 50, degrees), 128
    matrix = to_crop_by_hand(points, np.array(TEMPLATES[template]), side)
    shown = np.argwhere(soft_box(side) > 51)[:, ::-1]
    seen = (shown - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T
    left, top, right, bottom = reach_of(points)
    assert (seen >= [left, top]).all()
    assert (seen <= [right, bottom]).all()


def test_two_of_nearly_one_size_do_not_change_places_from_frame_to_frame() -> None:
    layers = Layers()
    orders = []
    for grown in (1.0, 1.05, 0.97, 1.1, 1 / RESIZED + 0.01):
        orders.append(ids(layers.of(tracked(face_at(330, 220, 60 * grown), face_at(270, 240, 62)))))
    assert orders == [[[1], [2]]] * 5
    assert ids(layers.of(tracked(face_at(330, 220, 60 * 1.3), face_at(270, 240, 62)))) == [[2], [1]], "one came nearer"


class Fixed:
    """A tracker that sees the same faces in every picture."""

    def __init__(self, *points: np.ndarray) -> None:
        self._points = points

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        return tuple(tracked(*self._points))


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    """Dark on the left, bright on the right."""
    image = np.full((480, 640, 3), 20, np.uint8)
    image[:, 265:] = 230
    return image


@pytest.fixture(scope="module")
def swapper(tmp_path_factory: pytest.TempPathFactory) -> NeuralSwapper:
    """What it makes of a crop depends on all of it."""
    folder = tmp_path_factory.mktemp("models")
    parts = {"arcface_w600k_r50": model_file(identities.arcface(folder / "arcface_w600k_r50.onnx"), "arcface")}
    model = model_file(centring(folder / "inswapper.onnx", 128, "batch"), "inswapper")
    made: NeuralSwapper = families["inswapper"].open(model, FolderKit(**parts))
    return made


IDENTITY = np.random.default_rng(5).normal(0, 1, (1, 512)).astype(np.float32)


def worn(picture: np.ndarray, look: Look, *points: np.ndarray) -> np.ndarray:
    lane = OneLane(Fixed(*points), clock=ManualClock())
    frame = Frame(picture.copy(), 1, 0)
    lane.process(frame, look)
    lane.close()
    return frame.pixels


def one_after_the_other(picture: np.ndarray, swapper: NeuralSwapper, *points: np.ndarray) -> np.ndarray:
    image = picture.copy()
    for face in points:
        patch = swapper.swap(image, face, IDENTITY, 1, 0)
        assert patch is not None
        lay(image, patch, (), Blending.SOFT, 1.0)
    return image


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_face_in_front_is_drawn_last_from_the_frame_as_it_is_then(
    order: tuple[int, ...], picture: np.ndarray, swapper: NeuralSwapper
) -> None:
    """Whatever the order in which the tracker found them."""
    shown = worn(picture, Look(swapper, IDENTITY), *([BACK, FRONT, APART][number] for number in order)).astype(int)
    assert np.abs(shown - one_after_the_other(picture, swapper, APART, BACK, FRONT)).max() <= 1
    assert np.abs(shown - one_after_the_other(picture, swapper, APART, FRONT, BACK)).max() > 10
    stale = one_after_the_other(picture, swapper, APART, BACK)
    patch = swapper.swap(picture, FRONT, IDENTITY, 1, 0)
    assert patch is not None
    lay(stale, patch, (), Blending.SOFT, 1.0)
    assert np.abs(shown - stale).max() > 10, "a crop of the untouched frame would bring back the real face behind"


def test_masks_look_once_a_frame_before_any_swap_and_hold_for_the_enhancer(
    picture: np.ndarray, swapper: NeuralSwapper, tmp_path: Path
) -> None:
    mask = families["xseg"].open(model_file(xseg(tmp_path / "xseg.onnx"), "xseg"), FolderKit())
    mask._network._session = counted = Counted(mask._network._session)
    enhancer = families["gpen"].open(model_file(gpen(tmp_path / "gpen.onnx"), "gpen"), FolderKit())
    look = Look(swapper, IDENTITY, masks=(mask,), enhancer=enhancer, enhancer_opacity=1.0)
    shown = worn(picture, look, BACK, FRONT)
    assert counted.batches == [2]
    assert not np.array_equal(shown, picture)
    untouched = np.full((480, 640), True)
    for cover in mask.covers(picture, [BACK, FRONT]):
        patch = Patch(picture, np.full((480, 640), 255, np.uint8), 0, 0)
        cover(patch)
        untouched &= patch.alpha == 0
    assert untouched.mean() > 0.1
    assert np.array_equal(shown[untouched], picture[untouched]), "what the masks leave to the target is the target's to the end"

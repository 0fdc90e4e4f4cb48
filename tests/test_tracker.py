"""The tracker on scenes made of the embedded portraits, with the real models, and on the shared clips."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.detect import detectors
from engines.face import Detection
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.iris import Iris
from rt.frame import FaceState, TrackedFace
from rt.track.cut import CutDetector
from rt.track.options import TrackOptions
from rt.track.track import overlap
from rt.track.tracker import Tracker

FRAME_NS = 40_000_000


class CountedDetector:
    """The real detector, with a count of how often it was asked."""

    def __init__(self) -> None:
        self._detector = detectors["blazeface-full"]()
        self.calls = 0

    def detect(self, image: np.ndarray) -> list[Detection]:
        self.calls += 1
        return self._detector.detect(image)


@pytest.fixture(scope="module")
def models() -> tuple[CountedDetector, FaceMesh]:
    return CountedDetector(), FaceMesh()


def portrait(name: str, height: int) -> np.ndarray:
    image = cv2.imread(str(files("assets") / "portraits" / name))
    assert image is not None
    return cv2.resize(image, (round(image.shape[1] * height / image.shape[0]), height), interpolation=cv2.INTER_AREA)


HOPPER, ASTRONAUT = portrait("hopper.jpg", 260), portrait("astronaut.png", 340)


def scene(*placed: tuple[np.ndarray, int]) -> np.ndarray:
    """Portraits on grey, each with its left edge."""
    image = np.full((360, 800, 3), 110, np.uint8)
    for picture, left in placed:
        image[: picture.shape[0], left : left + picture.shape[1]] = picture
    return image


class Show:
    """Plays scenes to a tracker, a frame each."""

    def __init__(self, models: tuple[CountedDetector, FaceMesh], options: TrackOptions | None = None, **more: object) -> None:
        self.tracker = Tracker(*models, options or TrackOptions(), **more)  # type: ignore[arg-type]
        self.now_ns = 0

    def __call__(self, image: np.ndarray, frames: int = 1) -> tuple[TrackedFace, ...]:
        for _ in range(frames):
            self.now_ns += FRAME_NS
            faces = self.tracker.update(image, self.now_ns)
        return faces


def middle(face: TrackedFace) -> float:
    return float(face.points[:, 0].mean())


def test_a_moving_face_keeps_its_id_and_needs_the_detector_once(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    before = models[0].calls
    ids, places = set(), []
    for left in range(0, 400, 10):
        (face,) = show(scene((HOPPER, left)))
        ids.add(face.id)
        places.append(middle(face) - left)
        assert face.state is FaceState.SEEN
    assert len(ids) == 1
    assert np.ptp(places) < 10  # never later than the frame before
    assert models[0].calls - before == 1


def test_a_face_that_goes_is_held_then_lost_then_forgotten(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models, TrackOptions(hold_frames=3, lost_seconds=1.0))
    (seen,) = show(scene((HOPPER, 300)), 20)
    states = [tuple(face.state for face in show(scene())) for _ in range(27)]
    assert states[:3] == [(FaceState.HELD,)] * 3
    assert states[3:25] == [(FaceState.LOST,)] * 22
    assert states[25:] == [()] * 2
    assert show.tracker.take_removed() == (seen.id,)
    assert show.tracker.take_removed() == ()


def test_a_face_that_comes_back_to_its_place_keeps_its_id(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    (before,) = show(scene((HOPPER, 300)), 20)
    show(scene(), 12)
    (after,) = show(scene((HOPPER, 340)), 3)
    assert (after.id, after.state) == (before.id, FaceState.SEEN)


def test_a_face_that_moves_faster_than_it_can_be_followed_keeps_its_id(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    (before,) = show(scene((HOPPER, 300)), 3)
    (after,) = show(scene((HOPPER, 420)))
    assert (after.id, after.state) == (before.id, FaceState.SEEN)
    assert abs(middle(after) - middle(before) - 120) < 5


def test_a_prediction_goes_on_a_little_and_stops(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models, TrackOptions(hold_frames=20))
    for left in range(100, 260, 16):
        (last,) = show(scene((HOPPER, left)))
    moved = [middle(show(scene())[0]) - middle(last) for _ in range(20)]
    width = float(np.ptp(last.points[:, 0]))
    assert 5 < moved[0] <= moved[-1] < width
    assert abs(moved[-1] - moved[-2]) < 0.5


def test_a_larger_face_does_not_take_the_place_of_the_one_that_is_followed(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    (first,) = show(scene((HOPPER, 20)), 3)
    (still,) = show(scene((HOPPER, 20), (portrait("astronaut.png", 360), 400)), 40)
    assert still.id == first.id
    assert abs(middle(still) - middle(first)) < 3


def test_one_frame_without_the_face_does_not_hand_its_place_to_another(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    (first,) = show(scene((HOPPER, 20)), 3)
    both = scene((HOPPER, 20), (ASTRONAUT, 440))
    show(both, 3)
    covered = both.copy()
    left, top, right, bottom = np.r_[first.points[:, :2].min(0) - 20, first.points[:, :2].max(0) + 20].astype(int)
    covered[max(0, top) : bottom, max(0, left) : right] = 110
    (held,) = show(covered)
    (again,) = show(both)
    assert (held.id, held.state) == (first.id, FaceState.HELD)
    assert (again.id, again.state) == (first.id, FaceState.SEEN)


def test_two_faces_have_two_ids_that_stay(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models, TrackOptions(max_faces=2, detect_every=5))
    show(scene((HOPPER, 20)), 2)
    start = {face.id: middle(face) for face in show(scene((HOPPER, 20), (ASTRONAUT, 440)), 8)}
    for shift in range(0, 50, 5):
        end = {face.id: middle(face) for face in show(scene((HOPPER, 20 + shift), (ASTRONAUT, 440 - shift)))}
    assert len(start) == 2
    assert start.keys() == end.keys()
    assert all(abs(start[k] - end[k]) < 80 for k in start)


def test_two_tracks_never_share_a_face(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models, TrackOptions(max_faces=4, detect_every=1))
    for left in range(440, 20, -20):  # one portrait is pushed over the other
        faces = [face for face in show(scene((HOPPER, 20), (ASTRONAUT, left))) if face.state is FaceState.SEEN]
        boxes = [np.r_[face.points[:, :2].min(0), face.points[:, :2].max(0)] for face in faces]
        assert all(overlap(a, b) < 0.5 for k, a in enumerate(boxes) for b in boxes[:k])


def test_fewer_faces_may_be_asked_for_while_it_runs(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models, TrackOptions(max_faces=2))
    both = show(scene((HOPPER, 20), (ASTRONAUT, 440)), 2)
    show.tracker.configure(TrackOptions(max_faces=1))
    (left,) = show(scene((HOPPER, 20), (ASTRONAUT, 440)))
    assert len(both) == 2
    assert left.id == both[0].id
    assert show.tracker.take_removed() == (both[1].id,)


def test_without_smoothing_the_points_are_the_models_own(models: tuple[CountedDetector, FaceMesh]) -> None:
    raw, smooth = Show(models, TrackOptions(smoothing=0)), Show(models)
    noise = np.random.default_rng(0)
    still = scene((HOPPER, 300)).astype(np.float64)
    noisy = [np.clip(still + noise.normal(0, 6, still.shape), 0, 255).astype(np.uint8) for _ in range(25)]
    trembling = [np.stack([show(image)[0].points for image in noisy])[10:, :, :2].std(0).mean() for show in (raw, smooth)]
    assert trembling[1] < trembling[0] / 2


def test_the_iris_is_found_where_its_model_is_given(models: tuple[CountedDetector, FaceMesh]) -> None:
    (face,) = Show(models, iris=Iris())(scene((HOPPER, 300)))
    assert face.iris is not None
    assert face.iris.shape == (2, 5, 2)
    left, top = face.points[:, :2].min(0)
    right, bottom = face.points[:, :2].max(0)
    assert ((face.iris > [left, top]) & (face.iris < [right, bottom])).all()


def test_a_brighter_picture_is_no_cut_and_another_scene_is() -> None:
    cuts = CutDetector()
    assert not cuts.is_cut(scene((HOPPER, 300)))
    assert not cuts.is_cut(np.clip(scene((HOPPER, 300)).astype(np.int16) + 60, 0, 255).astype(np.uint8))
    stripes = np.where(np.arange(800) // 100 % 2, 255, 0).astype(np.uint8)
    assert cuts.is_cut(np.broadcast_to(stripes[None, :, None], (360, 800, 3)))


@pytest.mark.parametrize("size", [(2, 2), (7, 300), (300, 7)])
def test_any_size_of_picture_is_taken(models: tuple[CountedDetector, FaceMesh], size: tuple[int, int]) -> None:
    assert Show(models)(np.zeros((*size, 3), np.uint8), 2) == ()


BOXES = st.tuples(*[st.floats(-100, 100)] * 2, *[st.floats(1, 100)] * 2).map(lambda b: np.array([b[0], b[1], b[0] + b[2], b[1] + b[3]]))


@given(BOXES, BOXES)
def test_overlap_is_symmetric_and_between_none_and_all(one: np.ndarray, other: np.ndarray) -> None:
    assert overlap(one, other) == pytest.approx(overlap(other, one))
    assert 0 <= overlap(one, other) <= 1 + 1e-9
    assert overlap(one, one) == pytest.approx(1)


@pytest.mark.parametrize("wrong", [{"max_faces": 0}, {"detect_every": 0}, {"hold_frames": -1}, {"smoothing": 1.5}, {"lost_seconds": -1.0}])
def test_options_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TrackOptions(**wrong)  # type: ignore[arg-type]


def play(clip: Path, models: tuple[CountedDetector, FaceMesh], frames: int) -> list[tuple[TrackedFace, ...]]:
    capture, show, seen = cv2.VideoCapture(str(clip)), Show(models), []
    while len(seen) < frames and (read := capture.read())[0]:
        seen.append(show(read[1]))
    capture.release()
    assert seen
    return seen


def test_clip_hard_cut_gives_the_second_person_another_id_at_once(
    models: tuple[CountedDetector, FaceMesh], shared_data: Path
) -> None:
    faces = play(shared_data / "videos" / "hard_cut_two_people.mp4", models, 100)
    assert all(len(frame) == 1 and frame[0].state is FaceState.SEEN for frame in faces)
    ids = [frame[0].id for frame in faces]
    assert ids == [1] * ids.count(1) + [2] * ids.count(2)
    assert 70 <= ids.count(1) <= 80  # the cut is at 3.0 s of 25 frames each


def test_clip_hand_over_face_never_loses_it(
    models: tuple[CountedDetector, FaceMesh], shared_data: Path
) -> None:
    faces = play(shared_data / "videos" / "hand_over_face.mp4", models, 150)
    assert {frame[0].id for frame in faces if frame} == {1}
    assert all(frame and frame[0].state is FaceState.SEEN for frame in faces)


def test_clip_without_a_face_is_not_hidden_for_long(
    models: tuple[CountedDetector, FaceMesh], shared_data: Path
) -> None:
    faces = play(shared_data / "videos" / "noface_animation.mp4", models, 95)
    assert sum(bool(frame) for frame in faces) <= 15
    assert not any(face.state is FaceState.LOST for frame in faces for face in frame)


def test_a_fleeting_face_is_held_and_not_hidden_for_seconds(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models, TrackOptions(hold_frames=3))
    show(scene((HOPPER, 300)), 5)
    states = [tuple(face.state for face in show(scene())) for _ in range(6)]
    assert states[:3] == [(FaceState.HELD,)] * 3
    assert states[3:] == [()] * 3


def test_clip_in_the_dark_shows_no_frame_before_the_face_is_found(
    models: tuple[CountedDetector, FaceMesh], shared_data: Path
) -> None:
    faces = play(shared_data / "videos" / "lowlight_noisy_15fps.mp4", models, 60)
    assert all(faces)

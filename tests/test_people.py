"""Who is who, on scenes made of the embedded portraits with the real models; and what each person's face gets, in every case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_lane import OneLane

from engines.align import crop_bgr, similarity, template
from engines.face import Patch, SourceFace
from engines.identity.contract import Embedding
from engines.landmarks.facemesh import FaceMesh
from rt.compose.lost import Treatment, treatments
from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Look, OnLost, Role, Wear
from rt.track.options import TrackOptions
from rt.track.people import ALL_MAX, LOOKS, THUMBNAIL_PX, People, Person, Register, thumbnail_of
from rt.track.tracker import Tracker
from tests.faces import face_at
from tests.test_tracker import ASTRONAUT, FRAME_NS, HOPPER, CountedDetector, scene

SEEN, HELD, LOST = FaceState.SEEN, FaceState.HELD, FaceState.LOST


class CropRecogniser:
    """Keeps ``engines.identity.contract.Recogniser`` by the coarse detail of a face's crop: 0.99 for two views of one of the portraits,
    0.1 between the two."""

    name = "crop"

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, image: np.ndarray, five: np.ndarray) -> Embedding:
        self.calls += 1
        crop = crop_bgr(image, similarity(five, template("arcface_112_v2", 112)), 112).astype(np.float32)
        cells = crop.reshape(16, 7, 16, 7, 3).mean((1, 3))
        detail = (cells - cv2.GaussianBlur(cells, (0, 0), 1))[2:-2, 2:-2].ravel()
        return Embedding(np.pad(detail, (0, 512 - len(detail))))


@pytest.fixture(scope="module")
def models() -> tuple[CountedDetector, FaceMesh]:
    return CountedDetector(), FaceMesh()


class Show:
    """Plays scenes to people, a frame each."""

    def __init__(
        self, models: tuple[CountedDetector, FaceMesh], recogniser: CropRecogniser | None = None, register: Register | None = None
    ) -> None:
        options = TrackOptions(max_faces=3, detect_every=1, lost_seconds=0.5)
        self.people = People(Tracker(*models, options), recogniser, register)
        self.now_ns = 0

    def __call__(self, image: np.ndarray, frames: int = 1) -> tuple[TrackedFace, ...]:
        for _ in range(frames):
            self.now_ns += FRAME_NS
            faces = self.people.update(image, self.now_ns)
        return faces

    @property
    def known(self) -> dict[int, Person]:
        return {person.number: person for person in self.people.register.people}


def numbers(faces: Sequence[TrackedFace]) -> list[int]:
    return [face.person for face in sorted(faces, key=lambda face: face.points[:, 0].mean())]


def test_people_are_counted_as_they_come_and_keep_their_numbers(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    assert numbers(show(scene((HOPPER, 450)), 3)) == [1]
    for left in range(0, 60, 10):
        assert numbers(show(scene((ASTRONAUT, left), (HOPPER, 450)))) == [2, 1]
    assert [person.in_sight for person in show.known.values()] == [True, True]
    thumbnails = [person.thumbnail for person in show.known.values()]
    assert {thumbnail.shape for thumbnail in thumbnails} == {(THUMBNAIL_PX, THUMBNAIL_PX, 3)}
    assert np.abs(thumbnails[0].astype(int) - thumbnails[1]).mean() > 20


def test_without_a_recogniser_who_comes_after_somebody_left_may_be_that_one(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    show(scene((HOPPER, 450)), 20)
    show(scene(), 40)
    assert not show.known[1].in_sight
    (face,) = show(scene((HOPPER, 450)))
    assert (face.person, face.perhaps) == (2, frozenset({1}))
    assert show.known[2].perhaps == frozenset({1})


def test_whoever_is_in_sight_is_nobody_else(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    show(scene((HOPPER, 450)), 20)
    faces = show(scene((ASTRONAUT, 0), (HOPPER, 450)))
    assert [face.perhaps for face in faces] == [frozenset(), frozenset()]


def test_with_a_recogniser_somebody_who_comes_back_is_known(models: tuple[CountedDetector, FaceMesh]) -> None:
    recogniser = CropRecogniser()
    show = Show(models, recogniser)
    show(scene((HOPPER, 450)), 20)
    show(scene(), 40)
    (stranger,) = show(scene((ASTRONAUT, 450)), 20)
    assert (stranger.person, stranger.perhaps) == (2, frozenset())
    show(scene(), 40)
    (back,) = show(scene((HOPPER, 100)))
    assert (back.person, back.perhaps) == (1, frozenset())


def test_somebody_else_in_the_same_place_is_noticed(models: tuple[CountedDetector, FaceMesh]) -> None:
    """The tracker takes the only face in sight for the one that it lost."""
    show = Show(models, CropRecogniser())
    show(scene((HOPPER, 450)), 20)
    show(scene(), 8)
    (face,) = show(scene((ASTRONAUT, 400)))
    assert face.person == 2


def test_a_face_is_compared_a_few_times_and_no_more(models: tuple[CountedDetector, FaceMesh]) -> None:
    recogniser = CropRecogniser()
    show = Show(models, recogniser)
    show(scene((HOPPER, 450)), 200)
    assert recogniser.calls == LOOKS


def test_numbers_go_on_from_line_to_line(models: tuple[CountedDetector, FaceMesh]) -> None:
    register = Register()
    Show(models, register=register)(scene((HOPPER, 450)), 3)
    (face,) = Show(models, register=register)(scene((ASTRONAUT, 100)))
    assert (face.person, face.perhaps) == (2, frozenset({1}))
    assert [person.in_sight for person in register.people] == [False, True]


def test_a_recogniser_knows_people_of_the_line_before(models: tuple[CountedDetector, FaceMesh]) -> None:
    register, recogniser = Register(), CropRecogniser()
    Show(models, recogniser, register)(scene((HOPPER, 450)), 3)
    (face,) = Show(models, recogniser, register)(scene((HOPPER, 100)))
    assert face.person == 1


def test_another_recogniser_starts_afresh_and_keeps_the_numbers(models: tuple[CountedDetector, FaceMesh]) -> None:
    show, other = Show(models), CropRecogniser()
    show(scene((HOPPER, 450)), 3)
    show.people.recognise_with(other)
    (face,) = show(scene((HOPPER, 450)))
    assert (face.person, other.calls) == (1, 1)
    assert set(show.people.register.embeddings) == {1}


def test_seats_are_each_ones_own_and_given_again(models: tuple[CountedDetector, FaceMesh]) -> None:
    show = Show(models)
    show(scene((ASTRONAUT, 0), (HOPPER, 450)), 20)
    show(scene((HOPPER, 450)), 40)
    seats = {face.person: face.seat for face in show(scene((ASTRONAUT, 0), (HOPPER, 450)), 3)}
    assert len(set(seats.values())) == 2
    assert set(seats.values()) == {0, 1}


def test_the_register_is_bounded() -> None:
    register, picture = Register(), np.zeros((2, 2, 3), np.uint8)
    people = {number: Person(number, picture, number == 1, seen_ns=number) for number in range(1, ALL_MAX + 10)}
    register.embeddings = {number: np.zeros(512, np.float32) for number in people}
    register.put(people)
    assert len(register.people) == ALL_MAX
    assert register.find(1) is not None
    assert register.find(2) is None
    assert set(register.embeddings) == {person.number for person in register.people}


@given(st.floats(-50, 250), st.floats(-50, 200), st.floats(2, 200), st.integers(16, 200), st.integers(16, 200))
def test_a_thumbnail_is_taken_wherever_a_face_may_lie(x: float, y: float, size: float, width: int, height: int) -> None:
    image = np.full((height, width, 3), 7, np.uint8)
    thumbnail = thumbnail_of(image, face_at(x, y, size))
    assert thumbnail.shape == (THUMBNAIL_PX, THUMBNAIL_PX, 3)
    assert (thumbnail == 7).all()


# --- what everybody gets ---


def seen(person: int, state: FaceState = SEEN, **more: Any) -> TrackedFace:
    return TrackedFace(person, face_at(0, 0, 20), state, 1.0, person=person, **more)


def treated(look: Look, *faces: TrackedFace) -> list[Treatment]:
    return [what for _, what in treatments(faces, look)]


def look(swapper: Any = "swapper", identity: Any = "worn", **more: Any) -> Look:
    return Look(swapper, identity, **more)


def test_only_one_person_is_swapped() -> None:
    only_one = look(roles={1: Role()}, others=Role(Wear.LEAVE))
    assert treated(only_one, seen(1), seen(2)) == [Treatment.SWAP, Treatment.SHOW]


def test_who_is_hidden_is_hidden_in_every_state_and_without_a_photo_too() -> None:
    hidden = Look(roles={2: Role(Wear.HIDE)})
    assert treated(hidden, seen(1), *(seen(2, state) for state in FaceState)) == [Treatment.SHOW] + [Treatment.BLUR] * 3


def test_of_those_who_wear_something_so_many_do_and_the_others_are_hidden() -> None:
    one = look(roles={1: Role(Wear.LEAVE)}, faces=1)
    assert treated(one, seen(1), seen(2), seen(3)) == [Treatment.SHOW, Treatment.SWAP, Treatment.BLUR]


def test_each_wears_what_is_theirs() -> None:
    each = look(roles={1: Role(identity="own"), 4: Role()}, seats=("first", "second"))
    worn = [each.role(seen(person, seat=seat)).identity for person, seat in ((1, 0), (2, 1), (3, 2), (4, 1))]
    assert worn == ["own", "second", "first", "second"]
    assert look(roles={1: Role()}).role(seen(1)).identity == "worn"


def test_who_may_be_one_that_is_to_be_hidden_is_not_shown() -> None:
    only_one = look(roles={1: Role()}, others=Role(Wear.LEAVE))
    newcomer = seen(2, perhaps=frozenset({1}))
    assert treated(only_one, newcomer) == [Treatment.BLUR]
    assert treated(look(roles={1: Role(), 2: Role(Wear.LEAVE)}, others=Role(Wear.LEAVE)), newcomer) == [Treatment.SHOW]
    assert treated(look(roles={1: Role(Wear.LEAVE)}, others=Role(Wear.LEAVE)), newcomer) == [Treatment.SHOW]
    assert treated(look(roles={1: Role()}, others=Role(Wear.LEAVE), on_lost=OnLost.SHOW), newcomer) == [Treatment.SHOW]


@given(
    st.sampled_from(list(Wear)),
    st.sampled_from(list(FaceState)),
    st.sampled_from([policy for policy in OnLost if policy is not OnLost.SHOW]),
    st.sampled_from(list(Wear)),
    st.booleans(),
    st.integers(1, 3),
)
def test_the_face_of_one_who_is_to_wear_something_is_never_shown(
    others: Wear, state: FaceState, policy: OnLost, second: Wear, has_own: bool, faces: int
) -> None:
    roles = {1: Role(identity="own" if has_own else None), 2: Role(second)}
    what = look(roles=roles, others=Role(others), on_lost=policy, faces=faces)
    assert treated(what, seen(3), seen(2), seen(1, state))[2] is not Treatment.SHOW


class PaintingSwapper:
    """Paints the middle of a face with the grey level that its identity is."""

    name = "painting"
    needs_photo = True

    def warm_up(self) -> None:
        """Nothing to prepare."""

    def prepare(self, faces: Sequence[SourceFace]) -> Any:
        return 255

    def swap(self, image: np.ndarray, points: np.ndarray, identity: Any, face_id: int, captured_ns: int) -> Patch | None:
        x, y = points[:, :2].mean(0).astype(int)
        return Patch(np.full((4, 4, 3), identity, np.uint8), np.full((4, 4), 255, np.uint8), x - 2, y - 2)

    def swap_all(self, image: np.ndarray, faces: Sequence[np.ndarray], identity: Any) -> Sequence[Patch | None]:
        return [self.swap(image, points, identity, 0, 0) for points in faces]

    def forget(self, face_id: int) -> None:
        """Nothing is remembered."""


class Four:
    """Four people side by side, seen in every frame."""

    patience = 1
    places = (60, 160, 260, 360)

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        return tuple(
            TrackedFace(number, face_at(x, 60, 20), SEEN, 1.0, person=number, seat=number - 1) for number, x in enumerate(self.places, 1)
        )


def middles(what: Look) -> list[int]:
    """The grey level in the middle of each face, of a picture that was 100 all over."""
    lane = OneLane(Four())
    pixels = np.full((120, 420, 3), 100, np.uint8)
    lane.process(Frame(pixels, 0, 0), what)
    lane.close()
    points = [face_at(x, 60, 20)[:, :2].mean(0).astype(int) for x in Four.places]
    return [int(pixels[y, x, 0]) for x, y in points]


def test_the_picture_shows_on_everybody_what_they_wear() -> None:
    roles = {1: Role(identity=200), 3: Role(Wear.LEAVE)}
    assert middles(Look(PaintingSwapper(), 255, roles=roles)) == [200, 255, 100, 255]


def test_one_face_each_goes_round() -> None:
    assert middles(Look(PaintingSwapper(), None, seats=(200, 210, 220))) == [200, 210, 220, 200]


def test_nobody_wears_anything_where_no_face_was_prepared() -> None:
    assert middles(Look(PaintingSwapper(), None, roles={2: Role()})) == [100] * 4

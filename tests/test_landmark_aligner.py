"""A landmark model of the user's choice looks at each face of a frame once, however many parts ask where its points are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import HOPPER
from kit import FolderKit, model_file
from standins.fan4_2d import fan4_2d
from standins.shelf import OTHERS, fill

import engines.landmarks  # noqa: F401  registers the families
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from engines.face import Landmarks
from engines.family import families
from engines.landmarks.aligner import FACES_KEPT, ModelAligner
from engines.landmarks.contract import Landmarker, Points, Sought
from engines.landmarks.fan4_2d import Fan4
from rt.frame import FaceState, Frame
from rt.track.track import Track


class Counted:
    """A landmark model, and how many faces it was shown in each run."""

    def __init__(self, model: Landmarker) -> None:
        self.name = model.name
        self.shown: list[int] = []
        self._model = model

    def locate(self, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        self.shown.append(len(faces))
        return self._model.locate(image, faces)


@pytest.fixture
def model(tmp_path: Path) -> Counted:
    return Counted(families["2dfan4"].open(model_file(fan4_2d(tmp_path / "2dfan4.onnx"), "2dfan4"), FolderKit()))


def faces(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [rng.uniform(20, 200, (468, 3)).astype(np.float32) for _ in range(count)]


def test_what_was_seen_is_not_looked_at_again(model: Counted) -> None:
    aligner, image = ModelAligner(model), np.zeros((240, 240, 3), np.uint8)
    one, two, three = faces(3)
    first = aligner.fives(image, [one, two])
    again = aligner.fives(image, [three, two, one])
    assert model.shown == [2, 1]
    assert again[1] is first[1]
    assert again[2] is first[0]
    assert aligner.fives(image, []) == []
    assert model.shown == [2, 1]


def test_equal_landmarks_of_another_frame_are_another_face(model: Counted) -> None:
    aligner, image = ModelAligner(model), np.zeros((240, 240, 3), np.uint8)
    (one,) = faces(1)
    aligner.fives(image, [one])
    aligner.fives(image, [one.copy()])
    assert model.shown == [1, 1]


def test_memory_is_bounded(model: Counted) -> None:
    aligner, image = ModelAligner(model), np.zeros((240, 240, 3), np.uint8)
    many = faces(FACES_KEPT + 1)
    for face in many:
        aligner.fives(image, [face])
    aligner.fives(image, [many[-1], many[1]])
    assert model.shown == [1] * (FACES_KEPT + 1)
    aligner.fives(image, [many[0]])
    assert model.shown == [1] * (FACES_KEPT + 2)


class Worn:
    """How many faces were swapped."""

    def __init__(self) -> None:
        self.faces = 0

    def before(self, frame: Frame) -> None:
        pass

    def after(self, frame: Frame) -> None:
        self.faces += sum(face.state is not FaceState.LOST for face in frame.faces)


def test_swapper_masks_and_enhancer_ask_once_in_the_line(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(fill(tmp_path_factory.mktemp("given"), tmp_path, OTHERS)))
    shown: list[int] = []
    locate = Fan4.locate

    def counted(self: Fan4, image: np.ndarray, faces: Sequence[Sought]) -> list[Points]:
        shown.append(len(faces))
        return locate(self, image, faces)

    monkeypatch.setattr(Fan4, "locate", counted)
    look = LookSettings(
        swapper="inswapper_128", masks=("xseg_1", "bisenet_resnet_34"), enhancer="gpen_bfr_256", landmarks="2dfan4", pixel_boost=2
    )
    settings = Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=640x360,fps=30,frames=12"),
        look=look,
        output=OutputSettings(null=True),
    )
    witness = Worn()
    session = LiveSession(settings, witness=witness)
    shown.clear()  # what was tried before the first picture
    session.start()
    try:
        assert session.wait(60)
    finally:
        session.close()
    assert session.report()["error"] is None
    assert witness.faces > 0
    assert shown == [1] * witness.faces


def test_a_face_has_landmarks_of_its_own_in_every_frame_in_which_it_is_drawn() -> None:
    """Seen or held: else what was found of it would be taken for a later frame's."""
    (points,) = faces(1)
    track = Track(1, Landmarks(points, 1.0), 0, smoothing=0.5)
    drawn = [track.report(2).points]
    for number in range(1, 4):
        track.accept(Landmarks(points, 1.0), number, 0.5)
        drawn.append(track.report(2).points)
    for number in range(4, 6):
        track.miss(number, 2)
        drawn.append(track.report(2).points)
        assert track.report(2).state is FaceState.HELD
    assert len({id(each) for each in drawn}) == len(drawn)

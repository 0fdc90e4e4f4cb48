"""LiveSession: what the command line and a window use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER
from paired import Paired

from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from engines.errors import NoFaceError
from rt.frame import Frame
from rt.options import Wear


class Changes(Paired):
    """Counts, for each frame, how many pixels the work changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[int] = []

    def compare(self, before: np.ndarray, frame: Frame) -> None:
        self.changed.append(int((before != frame.pixels).any(-1).sum()))


def settings(*photos: Path, opacity: float = 1.0) -> Settings:
    return Settings(
        source=SourceSettings(photos=photos),
        input=InputSettings(spec="synthetic:size=640x360,fps=30"),
        look=LookSettings(opacity=opacity),
        output=OutputSettings(null=True),
    )


def frames_pass(session: LiveSession, count: int) -> None:
    target = session.metrics().frames_out + count
    while session.metrics().frames_out < target:
        assert not session.wait(0.01)


def test_the_face_is_put_on_and_taken_off_while_live() -> None:
    witness = Changes()
    session = LiveSession(settings(), witness=witness)
    session.start()
    try:
        frames_pass(session, 5)
        session.update(settings(HOPPER))
        switched = len(witness.changed) + 2  # at most two frames were under way
        frames_pass(session, 10)
        session.update(settings(HOPPER, opacity=0.0))
        taken_off = len(witness.changed) + 2
        frames_pass(session, 10)
    finally:
        session.close()
    assert not any(witness.changed[:3])
    assert min(witness.changed[switched : switched + 5]) > 1000
    assert not any(witness.changed[taken_off:])
    assert session.report()["settings"]["look"]["opacity"] == 0.0


def test_a_photo_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (100, 100)).save(tmp_path / "black.png")
    session = LiveSession(settings(ASTRONAUT))
    session.start()
    try:
        with pytest.raises(NoFaceError):
            session.update(settings(tmp_path / "black.png"))
        frames_pass(session, 3)
    finally:
        session.close()
    assert session.settings.source.photos == (ASTRONAUT,)


def test_several_photos_make_one_identity() -> None:
    session = LiveSession(settings(HOPPER, HOPPER))
    session.start()
    frames_pass(session, 5)
    session.close()
    assert session.report()["error"] is None
    assert session.report()["sinks"]["null"]["frames"] >= 4


def test_what_a_person_gets_changes_on_the_same_line_within_two_frames() -> None:
    witness = Changes()
    session = LiveSession(settings(HOPPER), witness=witness)
    session.start()

    def wear(**person: object) -> list[int]:
        """What the next ten frames changed, once at most two were under way."""
        people = session.settings.people.with_person(PersonSettings(number=1, **person))  # type: ignore[arg-type]
        session.update(session.settings.model_copy(update={"people": people}))
        begin = len(witness.changed) + 2
        frames_pass(session, 12)
        return witness.changed[begin : begin + 8]

    try:
        frames_pass(session, 5)
        look = session.line.economy.look()
        assert not any(wear(wear=Wear.LEAVE))
        assert min(wear(wear=Wear.HIDE)) > 1000
        assert min(wear(source=SourceSettings(photos=(ASTRONAUT,)))) > 1000
        own = session.line.economy.look()
        assert own.swapper is look.swapper
        assert own.identity is look.identity
        assert own.roles[1].identity is not None
        assert own.roles[1].identity is not look.identity
        wear(wear=Wear.SWAP)
        assert session.line.economy.look().roles[1].identity is None
        (person,) = session.people()
        assert (person.number, person.in_sight) == (1, True)
    finally:
        session.close()


def test_a_person_may_wear_a_face_where_nobody_else_does() -> None:
    witness = Changes()
    session = LiveSession(settings(), witness=witness)
    session.start()
    try:
        frames_pass(session, 5)
        people = PeopleSettings(named=(PersonSettings(number=1, source=SourceSettings(photos=(HOPPER,))),))
        session.update(settings().model_copy(update={"people": people}))
        begin = len(witness.changed) + 2
        frames_pass(session, 10)
    finally:
        session.close()
    assert not any(witness.changed[:3])
    assert min(witness.changed[begin:]) > 1000


def test_a_photo_of_a_person_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (100, 100)).save(tmp_path / "black.png")
    people = PeopleSettings(named=(PersonSettings(number=1, source=SourceSettings(photos=(tmp_path / "black.png",))),))
    session = LiveSession(settings(ASTRONAUT))
    session.start()
    try:
        with pytest.raises(NoFaceError):
            session.update(settings(ASTRONAUT).model_copy(update={"people": people}))
        frames_pass(session, 3)
    finally:
        session.close()
    assert session.settings.people == PeopleSettings()

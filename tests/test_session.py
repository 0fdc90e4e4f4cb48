"""LiveSession: what the command line and a window use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER

from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from engines.errors import NoFaceError
from rt.frame import Frame


class Changes:
    """Counts, for each frame, how many pixels the work changed, and calls back once a number of frames has passed."""

    def __init__(self) -> None:
        self.changed: list[int] = []
        self._before = np.empty(0)

    def before(self, frame: Frame) -> None:
        self._before = frame.pixels.copy()

    def after(self, frame: Frame) -> None:
        self.changed.append(int((self._before != frame.pixels).any(-1).sum()))


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

"""The line goes on while something better is made, and takes it when it is there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kept_runtime
import pytest
from conftest import HOPPER
from standins import swappers as standins
from standins.scrfd import scrfd
from standins.swappers import Contract
from standins.xseg import xseg

from app import build
from app.parts import Parts
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, RunSettings, Settings, SourceSettings
from app.upgrade import Upgrade, UpgradeState
from engines.detect.contract import Detector
from engines.errors import ModelError
from rt.frame import FaceState, Frame
from rt.options import Look

CONTRACT = Contract(256, source_side=112)
"""Blendswap's: it needs no other model."""

SLOW = "synthetic:size=640x360,fps=10"
"""So that a machine which does something else beside drops no picture for that."""


class Drawn:
    """Which frames had a face, and which of those were drawn by a kept graph."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.old: list[int] = []
        self.new: list[int] = []
        self._runs = 0

    def before(self, frame: Frame) -> None:
        self.seqs.append(frame.seq)
        self._runs = self._count()

    def after(self, frame: Frame) -> None:
        if any(face.state is FaceState.SEEN for face in frame.faces):
            (self.new if self._count() > self._runs else self.old).append(frame.seq)

    @staticmethod
    def _count() -> int:
        return sum(not name.startswith("warm-up") for name in kept_runtime.RUNS)  # which is no frame of the line


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    kept_runtime.RUNS.clear()
    return standins.swapper(tmp_path / "blendswap_256.onnx", CONTRACT)


def settings(model: Path, runtime: str) -> Settings:
    return Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec=SLOW),
        look=LookSettings(swapper=str(model), runtime=runtime),
        output=OutputSettings(null=True),
        run=RunSettings(build_engines=True),
    )


def watched(session: LiveSession, witness: Drawn | Runs) -> LiveSession:
    """``witness`` is told before and after its lane works on a frame."""
    (runner,) = session.line.lanes._runners
    process = runner.lane.process

    def told(frame: Frame, *how: Any) -> None:
        witness.before(frame)
        process(frame, *how)
        witness.after(frame)

    runner.lane.process = told  # type: ignore[method-assign]
    return session


def noted_when_ready(session: LiveSession, where: Callable[[], int]) -> list[int]:
    """A list that gets what ``where`` says at the moment in which the line is given what was made."""
    ready: list[int] = []
    take = session.line.update

    def noted(*looks: Look) -> threading.Event:
        ready.append(where())
        return take(*looks)

    session.line.update = noted  # type: ignore[method-assign]
    return ready


def frames_pass(session: LiveSession, count: int) -> None:
    target = session.metrics().frames_out + count
    while session.metrics().frames_out < target:
        assert not session.wait(0.01)


def upgrade_of(session: LiveSession) -> Upgrade:
    assert session.upgrade is not None
    return session.upgrade


def test_the_line_takes_what_was_made_within_two_frames(model: Path) -> None:
    witness = Drawn()
    session = watched(LiveSession(settings(model, "kept,ort")), witness)
    ready = noted_when_ready(session, lambda: witness.seqs[-1])
    before = session._worn.open_models
    session.start()
    try:
        assert upgrade_of(session).wait(100)
        frames_pass(session, 8)
    finally:
        session.close()
    assert session.report()["upgrade"]["state"] == "ready"
    (at,) = ready
    assert len(witness.old) > 3, "it went on while the graph was made"
    assert sum(seq > at for seq in witness.old) <= 2
    assert len(witness.new) >= 5
    assert set(range(at - 2, at + 6)) <= set(witness.seqs), "no frame was dropped for it"
    assert [use["runtime"] for use in session.report()["models"] if use["model"] == "blendswap_256"] == ["ort:CPUExecutionProvider"]
    for opened in (*before, *session._worn.open_models):
        with pytest.raises(ModelError, match="closed"):
            opened.session.run({})


def test_pictures_go_on_while_what_was_made_is_opened(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening waits here for pictures, so that it would wait for ever if the line waited for it."""
    session = LiveSession(settings(model, "kept,ort"))
    passed: list[int] = []
    open_detector = build.detector

    def waits_for_pictures(settings: Settings, here: Parts) -> Detector:
        before = session.metrics().frames_out
        frames_pass(session, 5)
        passed.append(session.metrics().frames_out - before)
        return open_detector(settings, here)

    monkeypatch.setattr(build, "detector", waits_for_pictures)
    session.start()
    try:
        assert upgrade_of(session).wait(100)
        frames_pass(session, 2)
    finally:
        session.close()
    assert session.report()["upgrade"]["state"] == "ready"
    assert len(passed) == 1
    assert passed[0] >= 5


def test_pictures_go_on_while_every_model_that_was_made_is_opened(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A swapper's and a mask's graph, each as slow to open as five frames: the line draws them with what it has."""
    given = settings(model, "kept,ort")
    look = given.look.model_copy(update={"masks": (str(xseg(tmp_path / "xseg_1.onnx")),)})
    session = LiveSession(given.model_copy(update={"look": look}))
    passed: dict[str, int] = {}
    opened = kept_runtime.KeptSession.__init__

    def waits_for_pictures(self: kept_runtime.KeptSession, path: Path, *, threads: int = 1) -> None:
        before = session.metrics().frames_out
        frames_pass(session, 5)
        passed[path.stem] = session.metrics().frames_out - before
        opened(self, path, threads=threads)

    monkeypatch.setattr(kept_runtime.KeptSession, "__init__", waits_for_pictures)
    session.start()
    try:
        assert upgrade_of(session).wait(100)
        frames_pass(session, 2)
    finally:
        session.close()
    assert session.report()["upgrade"]["state"] == "ready"
    assert set(passed) == {model.stem, "xseg_1"}
    assert min(passed.values()) >= 5


def test_no_frame_is_drawn_half_by_what_was_and_half_by_what_was_made(model: Path, tmp_path: Path) -> None:
    """A swapper and a mask, each made ready by itself: both from one frame on, which is one of the two after they were."""
    mask = xseg(tmp_path / "xseg_1.onnx")
    given = settings(model, "kept,ort")
    look = given.look.model_copy(update={"masks": (str(mask),)})
    witness = Runs()
    session = watched(LiveSession(given.model_copy(update={"look": look})), witness)
    ready = noted_when_ready(session, lambda: len(witness.kept))
    session.start()
    try:
        assert upgrade_of(session).wait(100)
        frames_pass(session, 8)
    finally:
        session.close()
    assert session.report()["upgrade"]["state"] == "ready"
    assert set(witness.kept) <= {0, 2}
    first = witness.kept.index(2)
    assert 0 <= first - ready[0] <= 2
    assert set(witness.kept[first:]) == {2}, "and there is no way back"


class Runs:
    """How many kept graphs each frame with a face ran, in order."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self._before = 0

    def before(self, frame: Frame) -> None:
        self._before = Drawn._count()

    def after(self, frame: Frame) -> None:
        if any(face.state is FaceState.SEEN for face in frame.faces):
            self.kept.append(Drawn._count() - self._before)


def test_parts_that_were_changed_are_closed_while_live(model: Path) -> None:
    session = LiveSession(settings(model, "ort").model_copy(update={"run": RunSettings()}))
    session.start()
    try:
        frames_pass(session, 2)
        before = session._worn.open_models
        look = session.settings.look
        session.update(session.settings.model_copy(update={"look": look.model_copy(update={"masks": ()})}))
        frames_pass(session, 2)
        session.update(session.settings.model_copy(update={"look": look}))
        with pytest.raises(ModelError, match="closed"):
            before[0].session.run({})
        frames_pass(session, 2)
    finally:
        session.close()
    assert session.report()["error"] is None


@pytest.mark.parametrize(("runtime", "words"), [("kept-crashes", "SIGKILL"), ("kept-differs", "is refused after 32 crops")])
def test_what_cannot_be_made_changes_nothing_and_is_said_once(
    runtime: str, words: str, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = LiveSession(settings(model, f"{runtime},ort"))
    before = session._worn
    session.start()
    try:
        with caplog.at_level(logging.WARNING):
            assert upgrade_of(session).wait(100)
            frames_pass(session, 3)
    finally:
        session.close()
    report = session.report()
    assert report["error"] is None
    assert report["upgrade"]["state"] == "failed"
    assert words in report["upgrade"]["what"]
    assert session._worn is before
    assert [words in record.message for record in caplog.records] == [True]
    assert not kept_runtime.RUNS


def look_of(session: LiveSession) -> dict[str, str]:
    return {use["model"]: use["why"] for use in session.report()["models"]}


def test_a_detector_is_upgraded_as_well(model: Path, tmp_path: Path) -> None:
    """The tracker uses it from a frame on, and the one before is closed."""
    detector = scrfd(tmp_path / "scrfd.onnx")
    chosen = settings(model, "kept,ort").look.model_copy(update={"detector": str(detector)})
    session = LiveSession(settings(model, "kept,ort").model_copy(update={"look": chosen, "source": SourceSettings()}))
    before = session._tracking.open_models
    session.start()
    try:
        assert upgrade_of(session).wait(100)
        kept_runtime.RUNS.clear()
        frames_pass(session, 8)  # it finds nobody: it is asked in every other frame at least
        assert any(not name.startswith("warm-up") for name in kept_runtime.RUNS)
    finally:
        session.close()
    report = session.report()
    assert report["error"] is None
    assert report["upgrade"]["models"][0] == {"model": "scrfd", "runtime": "kept", "state": "ready", "why": None}
    assert look_of(session)["scrfd"] == ""
    for opened in (*before, *session._tracking.open_models):
        with pytest.raises(ModelError, match="closed"):
            opened.session.run({})


def test_what_cannot_be_made_keeps_nobody_from_using_the_rest(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mask = xseg(tmp_path / "bad_xseg.onnx")
    chosen = settings(model, "kept-some,ort").look.model_copy(update={"masks": (str(mask),)})
    session = LiveSession(settings(model, "kept-some,ort").model_copy(update={"look": chosen}))
    session.start()
    try:
        with caplog.at_level(logging.WARNING):
            assert upgrade_of(session).wait(100)
            frames_pass(session, 4)
    finally:
        session.close()
    report = session.report()
    assert report["error"] is None
    assert report["upgrade"]["state"] == "ready"
    assert "blendswap_256 for kept-some; not bad_xseg for kept-some: " in report["upgrade"]["what"]
    states = {item["model"]: (item["state"], item["why"]) for item in report["upgrade"]["models"]}
    assert states["blendswap_256"] == ("ready", None)
    assert states["bad_xseg"][0] == "failed"
    assert "SIGKILL" in states["bad_xseg"][1]
    assert look_of(session)["blendswap_256"] == ""
    assert "no graph of bad_xseg.onnx is kept" in look_of(session)["bad_xseg"]
    assert ["bad_xseg stays on what it has" in record.message for record in caplog.records] == [True]


def test_the_end_of_the_session_calls_it_off(model: Path) -> None:
    session = LiveSession(settings(model, "kept-waits,ort"))
    session.start()
    frames_pass(session, 2)
    session.close()
    assert session.report()["upgrade"]["state"] == "cancelled"
    assert session.report()["error"] is None


def test_where_nothing_can_be_made_that_is_said(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = LiveSession(settings(model, "ort"))
    with caplog.at_level(logging.WARNING):
        session.start()
    session.close()
    assert upgrade_of(session).to_dict()["state"] == UpgradeState.IDLE
    assert "no engine was built" in caplog.text

"""The Studio starts, changes and stops runs one after the other."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import av
import numpy as np
import pytest
from conftest import HOPPER

from app.errors import NotLiveError
from app.settings import InputSettings, OutputSettings, RunSettings, Settings, SourceSettings
from app.studio import Studio, StudioState
from engines.errors import PhotoError
from rt.errors import SinkError, SourceError

SMALL = "synthetic:size=320x180,fps=30"


def settings(spec: str = SMALL, *photos: Path) -> Settings:
    return Settings(input=InputSettings(spec=spec), source=SourceSettings(photos=photos), output=OutputSettings(null=True))


def test_it_goes_live_again_after_it_was_stopped() -> None:
    studio = Studio(settings())
    assert studio.state is StudioState.STOPPED
    assert studio.stop() is None
    for _ in range(2):
        studio.start()
        studio.start()
        assert studio.state is StudioState.LIVE
        assert studio.snapshot().shape == (180, 320, 3)
        report = studio.stop()
        assert report is not None
        assert report["frames_out"] > 0
        assert studio.state is StudioState.STOPPED
    with pytest.raises(NotLiveError):
        studio.snapshot()
    assert studio.metrics() is None


def test_a_look_changes_in_the_run_and_an_input_by_a_new_one() -> None:
    studio = Studio(settings())
    studio.start()
    try:
        first = studio.session
        studio.change(settings(SMALL, HOPPER))
        assert studio.session is first
        studio.change(settings("synthetic:size=640x360,fps=30", HOPPER))
        assert studio.session is not first
        assert studio.snapshot().shape == (360, 640, 3)
    finally:
        studio.stop()


def test_what_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    studio = Studio(settings())
    studio.start()
    try:
        with pytest.raises(PhotoError):
            studio.change(settings(SMALL, tmp_path / "none.jpg"))
        with pytest.raises(PhotoError):
            studio.change(settings("synthetic:size=640x360", tmp_path / "none.jpg"))
        assert studio.settings == settings()
        assert studio.state is StudioState.LIVE
    finally:
        studio.stop()


def test_a_photo_that_is_not_there_is_refused_while_nothing_runs(tmp_path: Path) -> None:
    studio = Studio(settings(SMALL, HOPPER))
    with pytest.raises(PhotoError, match="not there"):
        studio.change(settings(SMALL, tmp_path / "none.jpg"))
    assert studio.settings.source.photos == (HOPPER,)
    studio.change(settings())


def test_an_input_that_cannot_be_opened_is_told_and_can_be_mended(tmp_path: Path) -> None:
    studio = Studio(settings(str(tmp_path / "none.mp4")))
    with pytest.raises(SourceError):
        studio.start()
    assert studio.state is StudioState.STOPPED
    assert "none.mp4" in str(studio.error)
    studio.change(settings())
    studio.start()
    assert studio.error is None
    studio.stop()


def test_the_end_of_the_input_is_an_end_by_itself() -> None:
    studio = Studio(settings("synthetic:size=320x180,fps=30,frames=5"))
    studio.start()
    assert studio.wait(60)
    assert studio.state is StudioState.ENDED
    assert studio.error is None
    report = studio.stop()
    assert report is not None
    assert report["frames_in"] == 5


def test_many_threads_start_and_stop_it() -> None:
    studio = Studio(settings())
    problems: list[BaseException] = []

    def play(seed: int) -> None:
        try:
            for number in np.random.default_rng(seed).integers(0, 3, 5):
                (studio.start, studio.stop, studio.metrics)[number]()
        except NotLiveError:
            pass
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    studio.stop()
    assert problems == []
    assert studio.state is StudioState.STOPPED


def frames_pass(studio: Studio, count: int) -> None:
    session = studio.session
    assert session is not None
    target = session.metrics().frames_out + count
    while session.metrics().frames_out < target:
        assert not session.wait(0.01)


def test_an_output_is_switched_on_and_off_while_the_others_go_on(tmp_path: Path) -> None:
    studio = Studio(settings())
    studio.start()
    try:
        session, film = studio.session, tmp_path / "film.mp4"
        assert session is not None
        measured = session.line.runners[0]
        studio.revise(lambda now: now.model_copy(update={"output": OutputSettings(null=True, record=film)}))
        frames_pass(studio, 20)
        assert studio.recording == film
        studio.revise(lambda now: now.model_copy(update={"output": OutputSettings(null=True)}))
        assert studio.session is session
        assert session.line.runners == (measured,)
        assert pictures(film) > 0  # whole, while the line goes on
        studio.revise(lambda now: now.model_copy(update={"output": OutputSettings(null=True, record=film)}))
        assert studio.recording == tmp_path / "film-2.mp4"
        frames_pass(studio, 10)
    finally:
        report = studio.stop()
    assert report is not None
    assert report["sinks"]["null"]["frames"] >= report["frames_out"] - report["dropped"].get("sink:null", 0)
    assert {"null", "record", "record 2"} == set(report["sinks"])
    assert pictures(tmp_path / "film-2.mp4") > 0


def test_an_output_that_cannot_be_changes_nothing(tmp_path: Path) -> None:
    studio = Studio(settings())
    studio.start()
    try:
        before = studio.session.line.runners if studio.session else ()
        with pytest.raises(SinkError):
            studio.change(settings().model_copy(update={"output": OutputSettings(null=True, record=tmp_path / "no" / "film.mp4")}))
        assert studio.settings == settings()
        assert studio.session is not None
        assert studio.session.line.runners == before
    finally:
        studio.stop()


def test_a_recording_goes_on_in_a_file_of_its_own_when_a_new_run_begins(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    studio = Studio(settings().model_copy(update={"output": OutputSettings(record=film)}))
    for _ in range(2):
        studio.start()
        frames_pass(studio, 5)
        studio.stop()
    studio.start()
    try:
        frames_pass(studio, 5)
        studio.revise(lambda now: now.model_copy(update={"input": InputSettings(spec="synthetic:size=640x360,fps=30")}))
        frames_pass(studio, 5)
        assert studio.recording == tmp_path / "film-4.mp4"
    finally:
        studio.stop()
    assert all(pictures(tmp_path / name) > 0 for name in ("film.mp4", "film-2.mp4", "film-3.mp4", "film-4.mp4"))


def test_every_state_is_told() -> None:
    told: list[StudioState] = []
    studio = Studio(settings(), changed=told.append)
    studio.start()
    studio.stop()
    assert told == [StudioState.STARTING, StudioState.LIVE, StudioState.STOPPING, StudioState.STOPPED]


def test_the_report_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    studio = Studio(settings().model_copy(update={"run": RunSettings(report=tmp_path / "report.json")}))
    studio.start()
    frames_pass(studio, 3)
    studio.stop()
    assert json.loads((tmp_path / "report.json").read_text())["frames_out"] > 0


def pictures(film: Path) -> int:
    with av.open(str(film)) as container:
        return sum(1 for _ in container.decode(video=0))

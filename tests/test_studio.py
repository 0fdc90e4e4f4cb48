"""The Studio starts, changes and stops runs one after the other."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import HOPPER

from app.errors import NotLiveError
from app.settings import InputSettings, OutputSettings, Settings, SourceSettings
from app.studio import Studio, StudioState
from engines.errors import PhotoError
from rt.errors import SourceError

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

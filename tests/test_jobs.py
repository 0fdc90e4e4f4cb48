"""Jobs: how long they still take, how they end, and downloads and builds as jobs, called off while a server says nothing."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from file_server import Site, serve
from hypothesis import given
from hypothesis import strategies as st
from store_files import EIGHT, Published, families, model_bytes

from app.fetching import build_engine, fetch_model
from app.jobs import Job, Jobs, JobState
from app.models import Models
from engines.errors import ModelError, PullCancelled
from engines.store.catalog import Catalog
from engines.store.pull import Network, pull
from engines.store.shelf import Shelf
from engines.store.stopping import Stop
from rt.clock import ManualClock

DATA = model_bytes(weights=256)
HALF = len(DATA) // 2
PATIENCE_S = 60


class Told:
    """Lets a test wait for what jobs tell."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S)


# --- the list ---


@given(rate=st.integers(1, 10**9), seconds=st.integers(1, 9), total=st.integers(1, 10**12))
def test_the_time_left_is_what_is_missing_over_the_speed(rate: int, seconds: int, total: int) -> None:
    clock = ManualClock(5)
    job = Jobs(clock=clock).begin("x")
    for second in range(seconds + 1):
        job.report(min(total, rate * second), total, "")
        clock.advance(10**9)
    done, left_s = job.view.done, job.view.left_s
    assert left_s == pytest.approx((total - done) * seconds / done)


def test_the_time_left_is_that_of_the_speed_of_late() -> None:
    """A download that was quick and has become slow."""
    clock = ManualClock(5)
    job = Jobs(clock=clock).begin("x")
    done = 0
    for speed in [100] * 20 + [1] * 20:
        done += speed
        job.report(done, 10_000, "")
        clock.advance(10**9)
    assert job.view.left_s == pytest.approx(10_000 - done)


def test_nothing_is_said_of_the_time_left_before_it_is_known() -> None:
    clock = ManualClock(5)
    job = Jobs(clock=clock).begin("x")
    job.report(10, None, "")
    clock.advance(5 * 10**9)
    job.report(20, None, "")
    assert (job.view.left_s, job.view.total) == (None, None)
    job.report(30, 0, "a total of nothing")
    assert job.view.total is None
    early = Jobs(clock=clock).begin("x")
    early.report(1, 10, "")
    clock.advance(10**8)
    early.report(2, 10, "")
    assert early.view.left_s is None


def test_what_begins_again_forgets_its_speed() -> None:
    clock = ManualClock(5)
    job = Jobs(clock=clock).begin("x")
    for done in (0, 50, 0):
        job.report(done, 100, "")
        clock.advance(2 * 10**9)
    assert job.view.left_s is None


def test_work_ends_well_fails_in_words_or_as_it_was_asked_to() -> None:
    told = Told()
    jobs = Jobs(told)
    go = threading.Event()

    def stopped(job: Job) -> None:
        go.wait(PATIENCE_S)
        raise PullCancelled("called off")

    def broken(job: Job) -> None:
        raise ModelError("the words of it")

    def surprise(job: Job) -> None:
        raise ZeroDivisionError("oh")

    numbers = [jobs.run(name, work, go.set).view.number for name, work in (("ok", lambda job: None), ("a", broken), ("b", surprise))]
    last = jobs.run("c", stopped, go.set).view.number
    jobs.cancel(last)
    jobs.cancel(last)  # twice is once
    told.until(lambda: all(view.state not in (JobState.RUNNING, JobState.STOPPING) for view in jobs.views()))
    assert [(view.state, view.error) for view in jobs.views()] == [
        (JobState.DONE, ""),
        (JobState.FAILED, "the words of it"),
        (JobState.FAILED, "ZeroDivisionError: oh"),
        (JobState.CANCELLED, ""),
    ]
    jobs.cancel(numbers[0])
    assert jobs.views()[0].state is JobState.DONE
    for view in jobs.views():
        jobs.forget(view.number)
    assert jobs.views() == ()


def test_what_runs_is_not_taken_off_the_list() -> None:
    jobs = Jobs()
    job = jobs.begin("x")
    jobs.forget(job.view.number)
    assert [view.title for view in jobs.views()] == ["x"]
    assert not jobs.can_cancel(job.view.number)
    jobs.cancel(job.view.number)  # nobody said how: it goes on
    assert job.view.state is JobState.RUNNING


# --- downloads ---


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


def models(tmp_path: Path, site: Site, name: str = "tiny") -> Models:
    return Models(Shelf(tmp_path / "models"), Catalog([Published(DATA, name=name).entry(site.base)]), families(**EIGHT))


def test_a_download_is_called_off_while_the_server_says_nothing_and_goes_on_later(site: Site, tmp_path: Path) -> None:
    site.put("/tiny.onnx", DATA, hold_after=HALF)
    mine, told, here = models(tmp_path, site), Told(), threading.Event()
    jobs = Jobs(told)
    job = fetch_model(jobs, "tiny", here.set, mine)
    told.until(lambda: job.view.done == HALF)
    assert (job.view.total, job.view.unit) == (len(DATA), "B")
    jobs.cancel(job.view.number)
    told.until(lambda: job.view.state is JobState.CANCELLED)
    assert not site.release.is_set(), "the server has said no more"
    assert not here.is_set()
    jobs.close()
    site.release.set()
    again = fetch_model(jobs, "tiny", here.set, mine)
    told.until(lambda: again.view.state is JobState.DONE)
    jobs.close()
    assert here.is_set()
    assert site.asked("/tiny.onnx")[-1].headers["range"] == f"bytes={HALF}-"
    assert mine.shelf.path(mine.shelf.find("tiny")).read_bytes() == DATA


def test_a_download_that_no_server_gives_fails_in_words(site: Site, tmp_path: Path) -> None:
    told = Told()
    jobs = Jobs(told)
    job = fetch_model(jobs, "tiny", lambda: None, models(tmp_path, site))
    told.until(lambda: job.view.state is JobState.FAILED)
    assert "404" in job.view.error
    jobs.close()


def test_two_downloads_at_once_do_not_hold_each_other(site: Site, tmp_path: Path) -> None:
    site.put("/slow.onnx", DATA, hold_after=HALF)
    site.put("/tiny.onnx", DATA)
    slow = Published(DATA, name="slow", file="slow.onnx").entry(site.base)
    mine = Models(Shelf(tmp_path / "models"), Catalog([slow, Published(DATA).entry(site.base)]), families(**EIGHT))
    told = Told()
    jobs = Jobs(told)
    first = fetch_model(jobs, "slow", lambda: None, mine)
    told.until(lambda: first.view.done == HALF)
    second = fetch_model(jobs, "tiny", lambda: None, mine)
    told.until(lambda: second.view.state is JobState.DONE)
    assert first.view.state is JobState.RUNNING
    jobs.close()  # asks the first to end, and waits for it
    assert first.view.state is JobState.CANCELLED


def test_a_pull_between_two_attempts_is_called_off(site: Site, tmp_path: Path) -> None:
    site.put("/tiny.onnx", DATA, statuses=[503] * 9)
    stop, ended = Stop(), []

    def work() -> None:
        try:
            network = Network(backoff_s=1000)
            pull(Published(DATA).entry(site.base), Shelf(tmp_path / "models"), families(**EIGHT), network=network, stop=stop)
        except PullCancelled as error:
            ended.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    while not site.asked("/tiny.onnx"):
        assert thread.is_alive()
    stop.now()
    thread.join(PATIENCE_S)
    assert "goes on from there" in ended[0]


def test_a_pull_that_was_called_off_before_it_began_asks_nobody_for_more(site: Site, tmp_path: Path) -> None:
    site.put("/tiny.onnx", DATA, hold_after=HALF)
    stop = Stop()
    stop.now()
    with pytest.raises(PullCancelled):
        pull(Published(DATA).entry(site.base), Shelf(tmp_path / "models"), families(**EIGHT), stop=stop)


# --- builds ---


def test_a_build_without_its_runtime_fails_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("tensorrt_rtx") is not None:
        pytest.skip("TensorRT for RTX is installed")
    told = Told()
    jobs = Jobs(told)
    job = build_engine(jobs, "face_detection_short_range")
    told.until(lambda: job.view.state is JobState.FAILED)
    assert "pip install" in job.view.error
    jobs.close()


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="TensorRT for RTX is not installed")
def test_a_build_reports_and_is_called_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path))
    told = Told()
    jobs = Jobs(told)
    job = build_engine(jobs, "face_landmark")
    told.until(lambda: job.view.what != "")
    jobs.cancel(job.view.number)
    told.until(lambda: job.view.state is JobState.CANCELLED)
    jobs.close()

"""A line and a run of it may be started, stopped and closed in any order, twice, by several threads, and where a start fails: nothing is
left behind, and nobody waits for ever."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from conftest import HOPPER
from small_line import Grey, Keeping, Painting, Scripted

from app.errors import NotLiveError
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, Settings, SourceSettings
from engines.device.host import HostDevice
from engines.errors import DeviceError
from rt.audio import AudioBus
from rt.clock import MonotonicClock
from rt.errors import RtError, SourceError
from rt.frame import VideoFormat
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look
from rt.sinks.runner import SinkState
from rt.tracking import Tracking


class Missing(Grey):
    """A camera that is not there."""

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        raise SourceError("no such camera")


class Slow(Grey):
    """A camera that opens only when nobody wants it any more."""

    def __init__(self, frames: int | None, clock: MonotonicClock) -> None:
        super().__init__(frames, clock)
        self.opening = threading.Event()

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self.opening.set()
        stop.wait()
        return super().open(stop, audio)


def line_of(kind: type[Grey] = Grey) -> Line:
    clock, metrics = MonotonicClock(), Metrics()
    lanes = [Lane(HostDevice(), clock) for _ in range(2)]
    looks = [Look(Painting(), "white") for _ in lanes]
    return Line(kind(None, clock), Tracking(Scripted(), metrics, clock), lanes, [Keeping()], looks, clock, metrics, AudioBus())


def is_clean(line: Line) -> bool:
    """Threads are looked for by the fixture of all tests."""
    return line.wait(0) and (line._ring is None or line._ring.free == len(line._ring))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("calls", [calls for count in range(4) for calls in itertools.product(("start", "stop", "close"), repeat=count)])
@pytest.mark.parametrize("kind", [Grey, Missing])
def test_a_line_ends_whatever_it_was_told_before(calls: tuple[str, ...], kind: type[Grey]) -> None:
    line, begun = line_of(kind), False
    for call in calls:
        if call == "start" and (begun or kind is Missing):
            with pytest.raises(SourceError if not begun else RtError, match=r"no such camera" if not begun else r"runs once"):
                line.start()
        else:
            getattr(line, call)()
        begun = begun or call in ("start", "close")
    line.close()
    line.join()
    assert is_clean(line)
    with pytest.raises(RtError, match="runs once"):
        line.start()


def at_once(*calls: Callable[[], Any]) -> list[Exception]:
    """Each on a thread of its own; what they raised."""
    errors: list[Exception] = []
    barrier = threading.Barrier(len(calls))

    def attempt(call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            call()
        except (RtError, NotLiveError) as error:
            errors.append(error)

    threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return errors


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [Grey, Missing])
def test_several_threads_start_and_close_a_line(kind: type[Grey]) -> None:
    for _ in range(10):
        line = line_of(kind)
        errors = at_once(line.start, line.close, line.start, line.close, line.stop)
        assert errors, "of two starts one comes too late"
        line.join()
        assert is_clean(line)


@pytest.mark.timeout(120)
def test_a_start_that_waits_for_its_camera_is_ended_by_a_close() -> None:
    line = line_of(Slow)
    starting = threading.Thread(target=line.start)
    starting.start()
    assert isinstance(line._source, Slow)
    assert line._source.opening.wait(30)
    line.close()
    starting.join(30)
    line.join()
    assert is_clean(line)


THREADS = 1 + 1 + 2 + 1 + 1
"""Of a line with a sink and two lanes: capture, sink, lanes, order, track."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", range(THREADS))
def test_a_system_that_gives_no_further_thread_fails_the_start_and_leaves_none(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = line_of()
    begin, count = threading.Thread.start, itertools.count()

    def limited(thread: threading.Thread) -> None:
        if next(count) == number:
            raise RuntimeError("can't start new thread")
        begin(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", limited)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            line.start()
    assert str(line.error) == "can't start new thread"
    line.close()
    line.join()
    assert is_clean(line)


# --- a run of it, with models ---


def session_of(spec: str = "synthetic:size=320x180,fps=30", device: str = "host", **more: Any) -> LiveSession:
    return LiveSession(
        Settings(
            source=SourceSettings(photos=(HOPPER,)),
            input=InputSettings(spec=spec),
            output=OutputSettings(null=True),
            run={"devices": tuple(device.split(",")), **more},  # type: ignore[arg-type]
        )
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "calls", ["", "close", "stop", "start close", "start stop", "stop start", "start start", "close start", "start close close"]
)
def test_a_run_ends_whatever_it_was_told_before(calls: str) -> None:
    session, begun = session_of(device="host,host"), False
    for call in calls.split():
        if call == "start" and begun:
            with pytest.raises(NotLiveError, match="started once"):
                session.start()
        else:
            {"start": session.start, "stop": session.request_stop, "close": session.close}[call]()
        begun = begun or call in ("start", "close")
    session.close()
    session.close()
    assert session.wait(0)
    report = session.report()
    assert (report["seconds"] > 0) == ("start" in calls and not calls.startswith("close"))
    with pytest.raises(NotLiveError, match="ended"):
        session.update(session.settings)


@pytest.mark.timeout(120)
def test_a_run_whose_start_fails_is_closed(tmp_path: Any) -> None:
    session = session_of(str(tmp_path / "no.mp4"))
    with pytest.raises(SourceError, match="does not exist"):
        session.start()
    assert session.wait(0)
    session.close()
    assert "does not exist" in session.report()["error"]


@pytest.mark.timeout(120)
def test_several_threads_start_and_close_a_run() -> None:
    for session in (session_of(), session_of(), session_of()):
        assert at_once(session.start, session.close, session.close, session.start, partial(session.update, session.settings))
        assert session.wait(0)


def test_a_run_that_cannot_be_made_leaves_no_thread() -> None:
    """The fixture of all tests looks: lanes have threads from the beginning."""
    with pytest.raises(DeviceError, match=r"cuda:7 was asked for"):
        session_of(device="host,cuda:7")


def test_a_lane_that_cannot_be_made_takes_the_others_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = itertools.count()
    open_lane = Lane.open

    def refuses(lane: Lane) -> None:
        if next(made) == 1:
            raise DeviceError("the second one refuses")
        open_lane(lane)

    monkeypatch.setattr(Lane, "open", refuses)
    with pytest.raises(DeviceError, match="refuses"):
        session_of(device="host,host")


@pytest.mark.parametrize("ended", ["line", "session"])
def test_a_server_that_never_answers_does_not_hold_the_end_up(ended: str) -> None:
    """It holds the connection until the end was reached; then the sink's thread ends by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"rtmp://127.0.0.1:{silent.getsockname()[1]}/live/secret"
        settings = Settings(input=InputSettings(spec="synthetic:size=320x180"), output=OutputSettings(streams=(url,), null=True))
        session = LiveSession(settings)
        runner = next(runner for runner in session.line.runners if "null" not in runner.sink.name)
        session.start()
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(1)
            session.close() if ended == "session" else session.line.close()
            if ended == "line":
                session.line.join()
            assert not runner.join(0), "it waits for an answer still"
            assert session.line._ring is not None
            assert session.line._ring.free == len(session.line._ring), "and holds no frame"
        session.close()
        runner._thread.join(60)
        assert runner.join(0)
        assert runner.state in (SinkState.CLOSED, SinkState.RETRYING)

"""`ffrt` as a person starts it: minimised and live, one a user, and after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from conftest import ROOT

from app.instance import Instance, Running

Start = Callable[..., subprocess.Popen[str]]
SMALL = ("--input", "synthetic:size=320x180,fps=30")
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ends the program by a signal")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the program with what it keeps in ``tmp_path``; consent was given."""
    (tmp_path / "consent.json").write_text('{"agreed": true}')
    environment = {**os.environ, "FFRT_CONFIG": str(tmp_path), "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
    children: list[subprocess.Popen[str]] = []

    def start_one(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from app.main import main; main()", *words]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        children.append(child)
        return child

    yield start_one
    for child in children:
        child.kill()
        child.communicate()


def until_there(file: Path, child: subprocess.Popen[str]) -> None:
    while not file.exists():
        assert child.poll() is None, child.communicate()


def test_minimised_and_live_at_once_and_the_report_says_how_the_window_fared(start: Start, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    child = start("--minimised", "--live", "--debug", "--seconds", "1", "--report", str(report), *SMALL)
    until_there(report, child)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, said
    found = json.loads(report.read_text())
    assert found["error"] is None
    assert found["frames_out"] > 0
    assert found["sinks"]["preview"]["pictures"] == 0, "nobody sees it, so nothing is made for it"
    assert found["window"]["turns"] > 0
    assert "turns of the event loop" in said


def test_a_second_one_says_that_the_first_is_open(start: Start, tmp_path: Path) -> None:
    with Instance(tmp_path) as mine:
        assert mine.claim() is None
        second = start(*SMALL)
        _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    assert f"open already (process {os.getpid()})" in said
    assert "--headless" in said


def test_a_second_start_brings_the_first_to_the_front_and_it_goes_on(start: Start, tmp_path: Path) -> None:
    """Without the extra for the control interface: as from an icon that is clicked twice."""
    film = tmp_path / "film.mkv"
    first = start("--minimised", "--live", "--record", str(film), *SMALL)
    until_there(film, first)
    second = start(*SMALL)
    _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    assert f"open already (process {first.pid}); its window was brought to the front" in said
    assert first.poll() is None
    assert not (tmp_path / "window.show").exists()
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0
    assert film.stat().st_size > 0


def test_a_wish_is_taken_once_and_one_of_yesterday_never(tmp_path: Path) -> None:
    (tmp_path / "window.show").touch()
    with Instance(tmp_path) as mine:
        assert mine.claim() is None
        assert not mine.take_wish()
        (tmp_path / "window.show").touch()
        assert mine.take_wish()
        assert not mine.take_wish()


def test_the_claim_of_one_that_was_killed_is_free(start: Start, tmp_path: Path) -> None:
    first = start(*SMALL)
    until_there(tmp_path / "window.json", first)
    with Instance(tmp_path) as mine:
        held_by = mine.claim()
        assert isinstance(held_by, Running)
        assert held_by.pid == first.pid
    first.kill()
    first.wait()
    with Instance(tmp_path) as mine:
        assert mine.claim() is None
        assert Running.model_validate_json((tmp_path / "window.json").read_text()).pid == os.getpid()
    assert not (tmp_path / "window.json").exists()


def test_the_bench_of_the_window_measures(start: Start, tmp_path: Path) -> None:
    report = tmp_path / "gui.json"
    child = start("bench", "gui", "--seconds", "1", "--report", str(report))
    said, complaint = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, complaint
    found = json.loads(report.read_text())
    assert found["pictures"] > 0
    assert found["window_s"] > 0
    assert found["lane_ms"]["p50"] > 0, "before | after is on, so the lane makes a copy"
    assert set(found["limits"]) <= set(found)
    assert "share of a core" in said


PROGRAM = """
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.gui.trouble import TroublePage
from app.gui.window import Window
from app.main import main

def look_at(page):
    print(page.words.text(), page.text.toPlainText(), flush=True)
    page.on.click()
    QApplication.closeAllWindows()

def after(method, act):
    def both(self, *given, **named):
        result = method(self, *given, **named)
        act(self)
        return result
    return both

TroublePage.tell = after(TroublePage.tell, lambda page: QTimer.singleShot(0, lambda: look_at(page)))
"""

IN_A_SLOT = """
Window.__init__ = after(Window.__init__, lambda window: QTimer.singleShot(0, lambda: 1 / 0))
main()
"""

AT_THE_START = """
def exec_and_look(page, real=TroublePage.exec):
    QTimer.singleShot(0, lambda: look_at(page))
    return real(page)

TroublePage.exec = exec_and_look
Window.__init__ = lambda self, *given, **named: 1 / 0
main()
"""


@pytest.mark.parametrize(
    ("fault", "words", "status"), [(IN_A_SLOT, "The line is not live.", 0), (AT_THE_START, "ffrt could not be started.", 1)]
)
def test_an_exception_in_a_slot_or_at_the_start_is_shown(fault: str, words: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "consent.json").write_text('{"agreed": true}')
    environment = {**os.environ, "FFRT_CONFIG": str(tmp_path), "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen", "LANG": "C.UTF-8"}
    command = [sys.executable, "-c", PROGRAM + fault, *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE_S, check=False)
    assert words in done.stdout, done.stderr
    assert "ZeroDivisionError" in done.stdout
    assert done.returncode == status

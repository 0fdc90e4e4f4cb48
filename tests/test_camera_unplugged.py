"""The program and a webcam, through OpenCV's own V4L2 backend: pulled out, plugged in again, wanted by two."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from fake_camera import FakeCameras

from rt.capture.holders import holders


@pytest.fixture
def cameras(tmp_path: Path) -> FakeCameras:
    return FakeCameras(tmp_path)


class Program:
    """A headless ffrt that runs until it is told to end; its events are read as they come."""

    def __init__(self, cameras: FakeCameras, camera: Path, *more: str) -> None:
        code = "from app.main import main; main()"
        words = ["--headless", "--input", f"camera:{camera}", "--size", "640x480", "--null", "--json", *more]
        environment = {**cameras.environment, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.pid = self._process.pid
        self.said: list[str] = []

    def event(self, name: str) -> dict[str, object]:
        """The next of that name."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)
            if line.startswith("{") and json.loads(line)["event"] == name:
                return dict(json.loads(line))
        raise AssertionError(f"{name} did not come: {self.said}")

    def runs(self) -> bool:
        return self._process.poll() is None

    def end(self, *, by_itself: bool = False) -> tuple[int, dict[str, object], str]:
        if self.runs() and not by_itself:
            self._process.terminate()
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, json.loads(out) if out else {}, "".join(self.said) + err


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    running: list[Program] = []
    yield running
    for program in running:
        program.end()


def live(cameras: FakeCameras, camera: Path, programs: list[Program], *more: str) -> Program:
    programs.append(Program(cameras, camera, *more))
    programs[-1].event("live")
    return programs[-1]


def test_a_camera_is_found_again_by_its_lasting_name_under_another_number(cameras: FakeCameras, programs: list[Program]) -> None:
    camera = cameras.plug_in(0, "usb-fake")
    program = live(cameras, camera, programs)
    cameras.pull_out(0)
    lost = program.event("input-lost")
    assert "was unplugged; plug it in again" in str(lost["why"])
    cameras.plug_in(2, "usb-fake")
    back = program.event("input-back")
    assert back["granted"] == "640x480@30"  # what was asked for at first
    status, report, _ = program.end()
    assert status == 0
    assert report["error"] is None
    (outage,) = report["input"]["outages"]  # type: ignore[index]
    assert outage["back_s"] > outage["at_s"]


def test_black_pictures_are_said_and_said_to_be_over(cameras: FakeCameras, programs: list[Program]) -> None:
    program = live(cameras, cameras.plug_in(0), programs)
    (cameras.dev / "video0.dark").touch()
    assert "gives black pictures; open its shutter" in str(program.event("input-black")["message"])
    (cameras.dev / "video0.dark").unlink()
    program.event("input-bright")
    _, report, _ = program.end()
    assert "warning" not in report["input"]  # type: ignore[operator]


def test_it_ends_where_that_was_asked_for(cameras: FakeCameras, programs: list[Program]) -> None:
    program = live(cameras, cameras.plug_in(0), programs, "--reconnect", "0")
    cameras.pull_out(0)
    status, report, _ = program.end(by_itself=True)
    assert status == 1
    assert "was unplugged" in str(report["error"])


def test_a_second_program_is_told_who_has_the_camera_and_the_first_goes_on(cameras: FakeCameras, programs: list[Program]) -> None:
    camera = cameras.plug_in(0)
    first = live(cameras, camera, programs)
    second = Program(cameras, camera)
    status, _, said = second.end(by_itself=True)
    assert status == 1
    assert f"camera {camera} cannot be opened (V4L2); it is in use by" in said
    assert f"(process {first.pid}); close it there, or choose another camera" in said
    assert first.runs()
    status, report, _ = first.end()
    assert (status, report["error"]) == (0, None)


def test_other_programs_are_named_by_what_they_run(tmp_path: Path) -> None:
    device = tmp_path / "video0"
    device.touch()
    proc = tmp_path / "proc"
    for number, words in {"70": "/usr/bin/zoom\0--url\0x", "9": "/usr/bin/python3\0-u\0/opt/obs/obs.py", "80": "other"}.items():
        (proc / number / "fd").mkdir(parents=True)
        (proc / number / "cmdline").write_text(words)
        (proc / number / "fd" / "3").symlink_to(device if number != "80" else tmp_path)
    (proc / "self").mkdir()
    assert holders(device, proc) == ("obs.py (process 9)", "zoom (process 70)")
    assert holders(device, tmp_path / "none") == ()

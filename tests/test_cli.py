"""The real command as a person would call it: as a process of its own, but for most of what is refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import av
import pytest
from conftest import HOPPER

from app.cli import main
from rt.capture import media

FFRT = [sys.executable, "-c", "from app.main import main; main()"]
SHORT = "synthetic:size=640x360,fps=30,frames=45"


def ffrt(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FFRT, *map(str, arguments)], capture_output=True, text=True, timeout=100, check=False, **options)


def start(*arguments: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*FFRT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_bytes(path: Path, count: int) -> None:
    """Until a recording has grown to ``count`` bytes."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < count:
        assert time.monotonic() < deadline, f"{path} did not grow"
        time.sleep(0.02)


def frames_of(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def test_the_main_job(tmp_path: Path) -> None:
    recording, report = tmp_path / "out.mp4", tmp_path / "report.json"
    done = ffrt("--headless", "--source", HOPPER, "--input", SHORT, "--record", recording, "--null", "--report", report, "--timecode")
    assert done.returncode == 0, done.stderr
    facts = json.loads(report.read_text())
    wanted = {"frames_in", "frames_out", "dropped", "age_ms", "stages_ms", "sinks", "lost_frames", "faces", "settings", "versions"}
    assert wanted <= set(facts)
    assert {"p50", "p95", "p99", "max"} <= set(facts["age_ms"])
    assert {"p50", "p95"} <= set(facts["stages_ms"]["swap"])
    assert {"start", "end", "peak"} <= set(facts["rss_mb"])
    assert facts["cpu_seconds"] > 0
    assert facts["faces"] == 1
    assert facts["frames_in"] + facts["dropped"]["camera"] == 45
    assert facts["sinks"]["null"]["timecodes"] == facts["sinks"]["null"]["frames"] > 0
    assert frames_of(recording) == facts["sinks"]["record"]["frames"] == facts["frames_out"]
    assert "age ms" in done.stdout


def test_json_goes_to_stdout_alone() -> None:
    done = ffrt("--headless", "--input", "synthetic:size=320x180,frames=10", "--null", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["frames_out"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests run under nohup, which ffrt respects")
    recording, report = tmp_path / "out.mkv", tmp_path / "report.json"
    process = start("--headless", "--input", "synthetic:size=320x180", "--record", recording, "--report", report)
    wait_for_bytes(recording, 20_000)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "age ms" in out
    facts = json.loads(report.read_text())
    assert frames_of(recording) == facts["sinks"]["record"]["frames"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interrupt_while_it_loads_is_no_traceback(tmp_path: Path) -> None:
    """As early as a signal can be sent: the interpreter has begun, nothing is open yet."""
    code = "from app.main import main; print('up', flush=True); main()"
    arguments = ["--headless", "--input", "synthetic:", "--null"]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    while "SIGINT" not in _default_signals(process.pid):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    try:
        errors = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors == ""


def _default_signals(pid: int) -> set[str]:
    """Signals that the process leaves to the system, of those that Python usually catches; a background job starts with them ignored."""
    lines = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("Sig"))
    handled = int(lines["SigCgt"], 16) | int(lines["SigIgn"], 16)
    return set() if handled >> (signal.SIGINT - 1) & 1 else {"SIGINT"}


def test_a_recording_is_playable_after_kill_minus_nine(tmp_path: Path) -> None:
    recording = tmp_path / "out.mp4"
    process = start("--headless", "--input", "synthetic:size=320x180", "--record", recording)
    wait_for_bytes(recording, 100_000)
    process.kill()
    process.communicate(timeout=60)
    assert frames_of(recording) > 10


def test_seconds_ends_by_itself() -> None:
    done = ffrt("--headless", "--input", "synthetic:size=320x180", "--null", "--seconds", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert 0.9 < json.loads(done.stdout)["seconds"] < 5


BAD = {
    "missing source": (["--source", "{tmp}/none.jpg", "--null"], "does not exist", 1),
    "empty source": (["--source", "{tmp}/empty.jpg", "--null"], "empty", 1),
    "text as source": (["--source", "{tmp}/text.png", "--null"], "not a picture", 1),
    "folder as source": (["--source", "{tmp}", "--null"], "folder", 1),
    "faceless source": (["--source", "{tmp}/grey.png", "--null"], "no face", 1),
    "face that is not there": (["--source", str(HOPPER), "--source-face", "7", "--null"], "face 7", 1),
    "missing input": (["--input", "{tmp}/none.mp4", "--null"], "does not exist", 1),
    "text as input": (["--input", "{tmp}/text.png", "--null"], "{tmp}/text.png", 1),
    "missing camera": (["--input", "77", "--null"], "camera", 1),
    "unknown synthetic option": (["--input", "synthetic:colour=red", "--null"], "colour", 1),
    "camera of a size nobody has": (["--input", "synthetic:size=10000x10000", "--null"], "8192", 1),
    "no output": (["--input", SHORT], "--virtual-camera", 2),
    "no headless and no display": (["--null"], "--headless", 1),
    "unknown ending": (["--record", "{tmp}/out.xyz"], ".mp4", 1),
    "missing folder": (["--record", "{tmp}/no/out.mp4"], "no folder", 1),
    "address of nothing": (["--rtmp", "ftp://x/y"], "rtmp://", 1),
    "bad size": (["--size", "big", "--null"], "1280x720", 2),
    "bad bitrate": (["--bitrate", "fast", "--null"], "2500k", 2),
    "bad opacity": (["--opacity", "3", "--null"], "opacity", 2),
    "bad swapper": (["--swapper", "none", "--source", str(HOPPER), "--null"], "here are: echo, mesh", 1),
    "model not pulled": (["--swapper", "inswapper_128", "--source", str(HOPPER), "--null"], "ffrt models pull inswapper_128", 1),
    "model file that is not there": (["--swapper", "gone.onnx", "--source", str(HOPPER), "--null"], "gone.onnx", 1),
    "no photo in --source": (["--source", "--null"], "--source was given without a photo", 2),
    "a year and a day": (["--null", "--seconds", "1e12"], "--seconds", 2),
    "report over a photo": (["--source", "{tmp}/grey.png", "--null", "--report", "{tmp}/./grey.png"], "a photo of --source", 2),
    "report over the recording": (["--record", "{tmp}/a.mp4", "--report", "{tmp}/a.mp4"], "the recording", 2),
    "report over something else": (["--null", "--report", "{tmp}/text.png"], "no report", 2),
    "report is a folder": (["--null", "--report", "{tmp}"], "which is a folder", 2),
    "record over the input": (["--input", "{tmp}/text.png", "--record", "{tmp}/text.png", "--overwrite"], "which is the input", 2),
    "endless": (["--null", "--seconds", "inf"], "--seconds", 2),
    "landmarks nobody knows": (["--landmarks", "foo", "--source", str(HOPPER), "--null"], "'foo'", 1),
    "identity nobody knows": (["--identity", "foo", "--source", str(HOPPER), "--null"], "'foo'", 1),
    "too many faces": (["--max-faces", "0", "--null"], "--max-faces", 2),
    "low bitrate": (["--bitrate", "2", "--null"], "--bitrate", 2),
    "face zero": (["--source", str(HOPPER), "--source-face", "0", "--null"], "--source-face", 2),
    "no frames": (["--input", "synthetic:frames=0", "--null"], "frames=0", 1),
    "stall before the start": (["--input", "synthetic:stall=-1:2", "--null"], "stall=-1", 1),
    "motion that is no number": (["--input", "synthetic:motion=nan", "--null"], "motion=nan", 1),
    "runtime nobody knows": (["--runtime", "ncnn", "--null"], "no runtime is called 'ncnn'; choose auto", 1),
    "runtime that is not here, asked for where no model needs it": (["--runtime", "ort-directml", "--null"], "onnxruntime-directml", 1),
    "bad policy": (["--on-lost", "panic", "--null"], "on-lost", 2),
    "unknown option": (["--nonsense"], "nonsense", 2),
}


PROCESSES = ("missing camera", "no headless and no display", "bad size", "unknown option", "faceless source", "missing folder")
"""Those of ``BAD`` that depend on what a program's first lines set up, and one of each way to refuse. The rest is said in this process."""


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_sentence(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, words, status = BAD[case]
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.png").write_text("this is text\n" * 40)
    _write_grey(tmp_path / "grey.png")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    headless = [] if case.startswith("no headless") else ["--headless"]
    quick = [] if "--input" in arguments else ["--input", "synthetic:size=320x180,frames=3"]
    said = [*headless, *quick, *(a.replace("{tmp}", str(tmp_path)) for a in arguments)]
    ended, errors = _ended(ffrt(*said)) if case in PROCESSES else refused(capfd, *said)
    assert ended == status, errors
    assert words.replace("{tmp}", str(tmp_path)) in errors.replace("\n", " ")
    assert "Traceback" not in errors
    assert len(errors.strip().splitlines()) <= 4


def _ended(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    return done.returncode, done.stderr


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Status and standard error of the command in this process; an exception that would be a traceback fails the test."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code, capfd.readouterr().err


def test_an_address_that_is_silent_is_said(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(media, "TIMEOUT_S", (0.5, 0.5))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = f"udp://127.0.0.1:{free.getsockname()[1]}"
    status, errors = refused(capfd, "--headless", "--input", address, "--null")
    assert status == 1
    assert "nothing came within 0.5 s" in errors.replace("\n", " ")
    assert len(errors.strip().splitlines()) <= 4


def _without_display() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}


def _write_grey(path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (200, 200), (120, 120, 120)).save(path)


def test_an_unreachable_server_is_said_and_the_recording_goes_on(tmp_path: Path) -> None:
    recording = tmp_path / "out.mp4"
    done = ffrt(
        "--headless", "--input", "synthetic:size=320x180,frames=60", "--rtmp", "rtmp://127.0.0.1:1/live/secret", "--record", recording
    )
    assert done.returncode == 1
    assert frames_of(recording) > 30
    assert "127.0.0.1" in done.stderr
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_without_a_word_it_says_what_to_add() -> None:
    done = ffrt(env=_without_display())
    assert done.returncode == 1
    assert "--headless" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_driver_is_said_once() -> None:
    done = ffrt("--headless", "--virtual-camera", "--input", "synthetic:size=320x180,frames=5")
    assert done.returncode == 1
    assert " ".join(done.stderr.split()).count("virtual camera could be opened") == 1


def test_the_key_of_an_input_is_not_shown(tmp_path: Path) -> None:
    done = ffrt("--headless", "--input", "rtmp://127.0.0.1:1/live/secret", "--null", "--report", tmp_path / "r.json")
    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
    assert "secret" not in done.stderr + done.stdout


def test_an_existing_recording_is_kept(tmp_path: Path) -> None:
    recording = tmp_path / "dear.mp4"
    recording.write_bytes(b"dear")
    done = ffrt("--headless", "--input", SHORT, "--record", recording)
    assert done.returncode == 1
    assert "--overwrite" in done.stderr
    assert recording.read_bytes() == b"dear"


def test_demo_leaves_a_recording_a_sheet_and_a_report(tmp_path: Path) -> None:
    done = ffrt("demo", "--out", tmp_path / "demo", "--seconds", "2")
    assert done.returncode == 0, done.stderr
    assert {file.name for file in (tmp_path / "demo").iterdir()} == {"out.mp4", "contact_sheet.png", "report.json"}
    report = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert report["lost_frames"] == 0
    assert frames_of(tmp_path / "demo" / "out.mp4") == report["frames_out"]


def test_doctor_and_cameras_speak_json() -> None:
    findings = json.loads(ffrt("doctor", "--json").stdout)
    assert {"machine", "models", "cameras", "virtual camera", "GPU"} <= {finding["name"] for finding in findings}
    assert all(finding["mend"] for finding in findings if finding["state"] == "missing")
    assert isinstance(json.loads(ffrt("cameras", "--json").stdout), list)


def test_bench_counts_the_drops_of_a_slow_stage(tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    done = ffrt("bench", "live", "--input", "synthetic:size=640x360,fps=30,frames=60", "--slow", "swap:100", "--report", report)
    assert done.returncode == 0, done.stderr
    facts = json.loads(report.read_text())
    assert facts["dropped"]["infer"] > 10
    assert facts["sinks"]["null"]["out_of_order"] == 0
    assert facts["stages_ms"]["swap"]["p50"] >= 100


def test_bench_refuses_a_stage_that_does_not_exist() -> None:
    done = ffrt("bench", "live", "--slow", "paint:3")
    assert done.returncode == 2
    assert "track" in done.stderr


def test_headless_works_without_qt(tmp_path: Path) -> None:
    """A module of that name that refuses to be imported stands in the way of the real one."""
    (tmp_path / "PySide6.py").write_text("raise ImportError('no Qt here')\n")
    done = ffrt("--headless", "--input", "synthetic:size=320x180,frames=5", "--null", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr


def test_bench_start_tells_the_steps_in_order() -> None:
    done = ffrt("bench", "start", "--runs", "1", "--mask", "none", "--json")
    assert done.returncode == 0, done.stderr
    steps = [json.loads(done.stdout)["startup_s"][step]["median"] for step in ("loaded", "prepared", "first_frame")]
    assert 0 < steps[0] < steps[1] < steps[2]
    failed = ffrt("bench", "start", "--runs", "1", "--source", "nobody.jpg")
    assert failed.returncode == 1
    assert "nobody.jpg" in failed.stderr


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert ffrt("--version").stdout.strip() == version("ffrt")


def test_nothing_is_told_to_anybody(tmp_path: Path) -> None:
    """ONNX Runtime keeps a device id and unsent events in the home folder of whoever does not switch that off."""
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = ffrt("--headless", "--input", "synthetic:size=320x180,frames=3", "--source", HOPPER, "--null", env=home)
    assert done.returncode == 0, done.stderr
    assert not [path for path in tmp_path.rglob("*") if "icrosoft" in str(path) or "onnxruntime" in path.name]


def test_the_package_can_be_run() -> None:
    done = subprocess.run([sys.executable, "-m", "app", "--version"], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, ffrt("--version").stdout)
    assert done.stdout.strip()


def test_a_number_that_is_not_whole_is_not_rounded() -> None:
    done = ffrt("--headless", "--input", SHORT, "--null", "--pixel-boost", "2.5")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--pixel-boost 2.5 was given; give a whole number" in done.stderr

"""The control interface with a real client, on a real Studio: who may, what becomes of it, and a child process driven by `ffrt ctl`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conftest import ROOT

pytest.importorskip("aiohttp")
pytest.importorskip("prometheus_client")

from app.control.messages import BODY_BYTES_MAX
from app.control.server import ControlServer
from app.control.service import ControlService
from app.errors import ControlError
from app.settings import InputSettings, OutputSettings, Settings
from app.studio import Studio

TOKEN = "a-token-of-the-test"
SMALL = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30"), output=OutputSettings(null=True))
CHILD = [sys.executable, "-c", "from app.main import main; main()"]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlServer]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    studio = Studio(SMALL)
    made = ControlServer(ControlService(studio), TOKEN, 0)
    made.start()
    yield made
    studio.stop()
    made.close()
    studio.stop()


def ask(server: ControlServer, method: str, path: str, **options: object) -> httpx.Response:
    headers = {"Authorization": f"Bearer {TOKEN}", **dict(options.pop("headers", {}))}  # type: ignore[call-overload]
    return httpx.request(method, f"http://127.0.0.1:{server.port}{path}", headers=headers, timeout=60, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "https://example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "example.org"}, 403),
    ],
)
def test_a_stranger_is_refused(headers: dict[str, str], status: int, server: ControlServer) -> None:
    answer = ask(server, "GET", "/v1/state", headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b'{"unknown": 1}', 400), (b"\xff\x00", 400), (b'{"name": 3}', 400), (b"x" * (BODY_BYTES_MAX + 1), 413)],
)
def test_what_is_no_command_changes_nothing(body: bytes, status: int, server: ControlServer) -> None:
    assert ask(server, "POST", "/v1/preset", content=body).status_code == status
    assert ask(server, "GET", "/v1/state").json()["state"] == "stopped"


def test_a_run_from_start_to_stop(server: ControlServer) -> None:
    assert ask(server, "GET", "/v1/snapshot").status_code == 409
    assert ask(server, "POST", "/v1/start").json()["state"] == "live"
    assert ask(server, "GET", "/v1/snapshot").content.startswith(b"\x89PNG")
    assert ask(server, "POST", "/v1/identity", json={"face": "hopper"}).json()["face"] == "Hopper"
    assert "ffrt_frames_out_total" in ask(server, "GET", "/v1/metrics").text
    assert ask(server, "POST", "/v1/stop").json()["state"] == "stopped"


def test_two_servers_want_one_port(server: ControlServer) -> None:
    other = ControlServer(ControlService(Studio(SMALL)), TOKEN, server.port)
    with pytest.raises(ControlError, match="--control PORT"):
        other.start()
    other.close()


def test_a_child_is_driven_by_ctl(tmp_path: Path) -> None:
    environment = {**os.environ, "FFRT_CONFIG": str(tmp_path), "PYTHONPATH": str(ROOT)}
    run = [*CHILD, "--headless", "--control", "0", "--input", "synthetic:size=320x180", "--null"]
    child = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def ctl(*words: str) -> str:
        done = subprocess.run([*CHILD, "ctl", *words], capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        assert child.stderr is not None
        while "control: http" not in child.stderr.readline():
            assert child.poll() is None
        assert json.loads(ctl("start", "--json"))["state"] == "live"
        assert json.loads(ctl("watch", "--count", "1"))["event"] == "state"
        ctl("quit")
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()

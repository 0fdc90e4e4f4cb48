"""docs/control.md and docs/control.openapi.json say what the code does: the examples are run, the schema is made again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conftest import ROOT

pytest.importorskip("aiohttp")
pytest.importorskip("prometheus_client")

from control_kit import SMALL, serving

from app.control import guard
from app.control.messages import State
from app.control.openapi import QUESTIONS, REFUSALS, commands, document
from app.control.prometheus import as_text
from app.control.server import CLIENTS_MAX, PER_S, SEND_S, ControlServer
from app.control.service import ControlService
from app.instance import announce_control
from app.live_options import CONTROL_PORT
from app.studio import Studio

TEXT = (ROOT / "docs" / "control.md").read_text(encoding="utf-8")


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlServer]:
    """With the user's own token and announced, as `--control` has it."""
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    with serving(guard.token()) as made:
        announce_control(made.port)
        yield made


def run_example(program: list[str], text: str, server: ControlServer, folder: Path) -> str:
    """Answered with 0; `ffrt` is this tree's."""
    ffrt = folder / "bin" / "ffrt"
    ffrt.parent.mkdir(exist_ok=True)
    ffrt.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from app.main import main; main()" "$@"\n')
    ffrt.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{ffrt.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TOKEN": guard.token(),
    }
    text = text.replace(str(CONTROL_PORT), str(server.port))
    done = subprocess.run(
        [*program, text], cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False, errors="replace"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands_do_what_is_said(server: ControlServer, tmp_path: Path) -> None:
    (by_ctl, by_curl) = examples("sh")
    out = run_example(["sh", "-ec"], by_ctl, server, tmp_path)
    assert (tmp_path / "now.png").read_bytes().startswith(b"\x89PNG")
    assert "ffrt_frames_out_total" in out
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    (tmp_path / "now.png").unlink()
    out = run_example(["sh", "-ec"], by_curl, server, tmp_path)
    assert '"error":"' not in out
    assert '"face":"Hopper"' in out
    assert "ffrt_frames_out_total" in out
    assert (tmp_path / "now.png").read_bytes().startswith(b"\x89PNG")


def test_the_python_example_wears_a_face(server: ControlServer, tmp_path: Path) -> None:
    (example,) = examples("python")
    out = run_example([sys.executable, "-c"], example, server, tmp_path)
    assert "'id': '1'" in out
    assert server._service.state().face == "Astronaut"


def test_the_schema_in_the_docs_is_that_of_the_code() -> None:
    """Made by `ffrt ctl schema > docs/control.openapi.json`."""
    assert json.loads((ROOT / "docs" / "control.openapi.json").read_text(encoding="utf-8")) == document()


def test_every_address_and_status_is_in_the_docs_and_no_other() -> None:
    told = set(re.findall(r"`((?:GET|POST) /v1/\w+)`", TEXT))
    assert told == {f"GET /v1/{name}" for name in QUESTIONS} | {f"POST /v1/{name}" for name in commands()}
    table = TEXT.partition("| status | |")[2].partition("\n\n")[0]
    assert {int(status) for row in re.findall(r"\n\| ([\d, ]+) \|", table) for status in row.split(",")} == set(REFUSALS)
    for name, kind in commands().items():
        fields = set(kind.model_fields) - {"do", "id"}
        line = next((line for line in TEXT.splitlines() if f"`POST /v1/{name}`" in line), "")
        assert all(f'"{field}"' in line for field in fields), name
    answer = next(line for line in TEXT.splitlines() if line.startswith("| `GET /v1/state`"))
    assert all(re.search(rf"\b{field}\b", answer) for field in State.model_fields)


def test_every_number_is_in_the_docs() -> None:
    studio = Studio(SMALL)
    studio.start()
    try:
        text = as_text(ControlService(studio).state(), studio.metrics()).decode()
    finally:
        studio.stop()
    names = {line.split("{")[0].split()[0] for line in text.splitlines() if not line.startswith("#")} - {"ffrt_info"}
    assert {name for name in names if f"`{name}`" not in TEXT} == set()


def test_the_limits_are_those_of_the_code() -> None:
    assert f"port {CONTROL_PORT}" in TEXT
    assert f"{PER_S:g} requests a second" in TEXT
    assert f"nothing for {SEND_S:g} s" in TEXT
    assert f"{CLIENTS_MAX} may listen" in TEXT


def test_the_server_answers_every_address_that_is_named(server: ControlServer) -> None:
    headers = {"Authorization": f"Bearer {guard.token()}"}
    base = f"http://127.0.0.1:{server.port}"
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            answer = httpx.request(method, base + path, headers=headers, timeout=60)
            assert str(answer.status_code) in {*operation["responses"], "400"}, path  # a WebSocket's address is no plain GET
            assert "see `ffrt ctl schema`" not in answer.text or method == "post" or path == "/v1/events"
    assert httpx.get(f"{base}/v1/nothing", headers=headers).status_code == 404

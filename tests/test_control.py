"""The control interface with a real client, on a real Studio: who may, what becomes of it, and a child process driven by `ffrt ctl`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from conftest import HOPPER
from PIL import Image

pytest.importorskip("aiohttp")
pytest.importorskip("prometheus_client")

from control_kit import SMALL, TOKEN, begun, ffrt, serving

from app.control.messages import BODY_BYTES_MAX
from app.control.server import ControlServer
from app.control.service import ControlService
from app.errors import ControlError
from app.run import run_session
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, Settings
from app.studio import Studio


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlServer]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    with serving() as made:
        yield made


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


def test_a_face_that_cannot_be_worn_is_refused_while_nothing_runs(server: ControlServer, tmp_path: Path) -> None:
    wall, text = tmp_path / "wall.png", tmp_path / "text.jpg"
    Image.new("RGB", (400, 400), "grey").save(wall)
    text.write_text("no picture")
    for photos in ([str(tmp_path / "none.jpg")], [str(wall)], [str(text)], [str(tmp_path)], [str(HOPPER), str(wall)]):
        answer = ask(server, "POST", "/v1/identity", json={"photos": photos})
        assert answer.status_code == 422
        assert Path(photos[-1]).name in answer.json()["error"]
    assert ask(server, "GET", "/v1/state").json()["photos"] == 0
    assert ask(server, "POST", "/v1/identity", json={"photos": [str(HOPPER)]}).json()["photos"] == 1


def test_two_servers_want_one_port(server: ControlServer) -> None:
    other = ControlServer(ControlService(Studio(SMALL)), TOKEN, server.port)
    with pytest.raises(ControlError, match="--control PORT"):
        other.start()
    other.close()


class Child:
    """An `ffrt --headless --control 0`, and `ffrt ctl` beside it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._folder = folder
        self.process = begun(folder, "--headless", "--control", "0", *words)
        self.hears("control: http")

    def hears(self, words: str) -> None:
        """Of what it says beside its answer."""
        assert self.process.stderr is not None
        while words not in self.process.stderr.readline():
            assert self.process.poll() is None

    def ctl(self, *words: str) -> tuple[int, str, str]:
        """Status, what was answered, what was said beside."""
        done = ffrt(self._folder, "ctl", *words)
        return done.returncode, done.stdout, done.stderr

    def answer(self, *words: str) -> dict[str, Any]:
        status, out, said = self.ctl(*words)
        assert status == 0, said
        return dict(json.loads(out))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_child_is_driven_by_ctl(tmp_path: Path) -> None:
    with Child(tmp_path, "--input", "synthetic:size=320x180", "--null") as child:
        assert child.answer("start", "--json")["state"] == "live"
        assert child.answer("watch", "--count", "1")["event"] == "state"
        picture = tmp_path / "picture.png"
        assert child.ctl("snapshot", str(picture))[0] == 0
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert "ffrt_frames_out_total" in child.ctl("metrics")[1]
        assert child.ctl("quit")[0] == 0
        assert child.process.wait(60) == 0


def test_where_the_first_start_fails_it_stays_and_says_why(tmp_path: Path) -> None:
    film = tmp_path / "talk.mp4"
    with Child(tmp_path, "--input", str(film), "--null") as child:
        child.hears("not live: ")
        state = child.answer("state", "--json")
        assert state["state"] == "stopped"
        assert "talk.mp4 does not exist" in state["error"]
        status, _, said = child.ctl("start")
        assert (status, "talk.mp4 does not exist" in said) == (1, True)
        make_film(film)
        assert child.answer("start", "--json")["error"] is None
        assert child.ctl("quit")[0] == 0
        assert child.process.wait(60) == 0


def test_where_no_start_ever_came_about_the_status_says_so(tmp_path: Path) -> None:
    with Child(tmp_path, "--input", str(tmp_path / "none.mp4"), "--null") as child:
        child.hears("not live: ")
        assert child.ctl("quit")[0] == 0
        assert child.process.wait(60) == 1
        assert child.process.stderr is not None
        assert "none.mp4 does not exist" in child.process.stderr.read()


def make_film(place: Path) -> None:
    settings = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30,frames=60"), output=OutputSettings(record=place))
    run_session(LiveSession(settings))

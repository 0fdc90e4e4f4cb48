"""Who wears what is told from outside, and what the people filmed get is in the state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")
pytest.importorskip("prometheus_client")

from conftest import ASTRONAUT, HOPPER
from test_control import TOKEN, Child, ask

from app.control.server import ControlServer
from app.control.service import ControlService
from app.gallery import Gallery
from app.presets import Presets
from app.settings import InputSettings, OutputSettings, Settings, SourceSettings
from app.studio import Studio
from rt.options import Wear

WORN = Settings(
    source=SourceSettings(photos=(HOPPER,)),
    input=InputSettings(spec="synthetic:size=640x360,fps=30,motion=0"),
    output=OutputSettings(null=True),
)


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    made = Studio(WORN)
    yield made
    made.stop()


@pytest.fixture
def server(studio: Studio) -> Iterator[ControlServer]:
    made = ControlServer(ControlService(studio), TOKEN, 0)
    made.start()
    yield made
    studio.stop()
    made.close()


def person_seen(server: ControlServer) -> dict[str, Any]:
    """The first who is in sight."""
    while True:
        people = [person for person in ask(server, "GET", "/v1/state").json()["people"] if person["in_sight"]]
        if people:
            return dict(people[0])
        ask(server, "GET", "/v1/snapshot")  # of the next picture: no question is asked oftener than pictures come


def test_the_person_filmed_is_in_the_state_and_gets_what_is_said(server: ControlServer, studio: Studio) -> None:
    ask(server, "POST", "/v1/start")
    assert person_seen(server) == {"number": 1, "in_sight": True, "wear": "swap", "face": None, "own": False, "perhaps": []}
    session = studio.session
    for told, shown in (
        ({"wear": "hide"}, ("hide", None, False)),
        ({"wear": "leave"}, ("leave", None, False)),
        ({"face": "astronaut"}, ("swap", "Astronaut", True)),
        ({"photos": [str(ASTRONAUT)]}, ("swap", "Astronaut", True)),
        ({"wear": "swap"}, ("swap", None, False)),
    ):
        answer = ask(server, "POST", "/v1/person", json={"number": 1, **told})
        assert answer.status_code == 200, answer.text
        (person,) = answer.json()["people"]
        assert (person["wear"], person["face"], person["own"]) == shown
    assert studio.session is session  # by the same line
    state = ask(server, "POST", "/v1/others", json={"wear": "leave"}).json()
    assert state["others"] == "leave"
    state = ask(server, "POST", "/v1/person", json={"number": 7, "only": True}).json()
    assert [(person["number"], person["wear"], person["in_sight"]) for person in state["people"]] == [
        (1, "leave", True),
        (7, "swap", False),
    ]
    assert studio.settings.people.others is Wear.LEAVE
    state = ask(server, "POST", "/v1/alike").json()
    assert ([person["number"] for person in state["people"]], state["others"]) == ([1], "swap")


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("person", {}, 400),
        ("person", {"number": 1}, 400),
        ("person", {"number": 0, "wear": "hide"}, 400),
        ("person", {"number": 1, "wear": "dance"}, 400),
        ("person", {"number": 1, "wear": "hide", "face": "Hopper"}, 400),
        ("person", {"number": "1", "wear": "hide"}, 400),
        ("person", {"number": True, "wear": "hide"}, 400),
        ("person", {"number": 1, "only": False}, 400),
        ("person", {"number": 1, "face": "nobody"}, 404),
        ("person", {"number": 1, "photos": ["/none.jpg"]}, 422),
        ("others", {"wear": "Hopper"}, 400),
        ("others", {}, 400),
        ("alike", {"wear": "swap"}, 400),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(
    name: str, body: dict[str, object], status: int, server: ControlServer, studio: Studio
) -> None:
    answer = ask(server, "POST", f"/v1/{name}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert studio.settings == WORN


def test_a_camera_that_is_away_is_in_the_state_and_the_numbers(server: ControlServer, studio: Studio) -> None:
    studio.change(WORN.model_copy(update={"input": InputSettings(spec="synthetic:size=320x180,fps=30,motion=0,unplug=0.5")}))
    assert "ffrt_input_up 0.0" in ask(server, "GET", "/v1/metrics").text
    assert ask(server, "POST", "/v1/start").json()["input_error"] is None
    while (said := ask(server, "GET", "/v1/state").json()["input_error"]) is None:
        ask(server, "GET", "/v1/snapshot")
    assert "was unplugged" in said
    assert "ffrt_input_up 0.0" in ask(server, "GET", "/v1/metrics").text
    assert ask(server, "GET", "/v1/state").json()["state"] == "live"


def test_people_by_ctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path))
    Gallery().add([HOPPER], "Oma")
    with Child(tmp_path, "--input", "synthetic:size=320x180", "--null", "--person", "2=hide") as child:
        child.answer("start", "--json")
        (person,) = child.answer("person", "2", "Oma", "--json")["people"][-1:]
        assert (person["number"], person["face"]) == (2, "Oma")
        assert child.answer("others", "leave", "--json")["others"] == "leave"
        shown = child.ctl("state")[1]
        assert "person 2 swap, wears Oma; not in sight" in shown
        assert "others leave" in shown
        assert child.answer("person", "2", str(ASTRONAUT), "--json")["people"][-1]["face"] == "Astronaut"
        assert child.answer("person", "3", "--only", "--json")["people"][-1]["number"] == 3
        assert child.answer("alike", "--json")["others"] == "swap"
        status, _, said = child.ctl("person", "2")
        assert (status, "--only" in said) == (2, True)
        assert child.ctl("person", "2", "nobody")[0] == 1
        assert child.ctl("quit")[0] == 0
        assert child.process.wait(60) == 0


def test_a_preset_brings_its_people(server: ControlServer, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text("ffrt_preset = 1\n[people]\nothers = 'hide'\n[[people.named]]\nnumber = 4\nwear = 'leave'\n")
    Presets().import_file(tmp_path / "two.toml")
    state = ask(server, "POST", "/v1/preset", json={"name": "two"}).json()
    assert (state["others"], [(one["number"], one["wear"]) for one in state["people"]]) == ("hide", [(4, "leave")])
    (tmp_path / "new.toml").write_text("ffrt_preset = 9\n[people]\n")
    with pytest.raises(Exception, match="written by a newer ffrt"):
        Presets().import_file(tmp_path / "new.toml")

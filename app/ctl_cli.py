"""`ffrt ctl`: controls an ffrt that was started with `--control`."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts
from cyclopts import Parameter

from app import console
from app.errors import UsageError

if TYPE_CHECKING:
    from app.control.client import ControlClient

ctl = cyclopts.App(name="ctl", help="Controls an ffrt that was started with --control: from scripts, or another terminal.")

Port = Annotated[int | None, Parameter(help="where it listens; that of the newest otherwise.")]
AsJson = Annotated[bool, Parameter(negative="", help="print JSON instead of lines.")]


@ctl.command
def state(*, port: Port = None, json: AsJson = False) -> int:
    """Says how things stand."""
    _print(_client(port).ask("state"), json)
    return 0


@ctl.command
def start(*, port: Port = None, json: AsJson = False) -> int:
    """Goes live, and returns once pictures flow."""
    _print(_client(port).tell("start"), json)
    return 0


@ctl.command
def stop(*, port: Port = None, json: AsJson = False) -> int:
    """Ends the run in order; the program stays."""
    _print(_client(port).tell("stop"), json)
    return 0


@ctl.command
def quit(*, port: Port = None, json: AsJson = False) -> int:
    """Ends the program in order."""
    _print(_client(port).tell("quit"), json)
    return 0


@ctl.command
def preset(name: str, /, *, port: Port = None, json: AsJson = False) -> int:
    """Takes over a preset.

    Parameters
    ----------
    name
        as in `ffrt presets list`.
    """
    _print(_client(port).tell("preset", name=name), json)
    return 0


@ctl.command
def identity(*given: str, nobody: Annotated[bool, Parameter(negative="")] = False, port: Port = None, json: AsJson = False) -> int:
    """Wears another face.

    Parameters
    ----------
    given
        photo(s) of one person, or the name of a face of the gallery (`ffrt faces list`).
    nobody
        the picture passes as it is: the face that is filmed is seen.
    """
    if nobody == bool(given):
        raise UsageError("give photos, or the name of a face of the gallery, or --nobody")
    client = _client(port)
    _print(client.tell("identity", **({"nobody": True} if nobody else _worn(given))), json)
    return 0


@ctl.command
def person(
    number: int, /, *given: str, only: Annotated[bool, Parameter(negative="")] = False, port: Port = None, json: AsJson = False
) -> int:
    """Says what one of the people filmed gets.

    Parameters
    ----------
    number
        from 1, in the order of their coming, as `ffrt ctl state` has it.
    given
        swap, leave (shown as filmed) or hide (blurred); or photo(s) or a face of the gallery that this person wears.
    only
        this person alone is swapped, everybody else is shown as filmed.
    """
    if only == bool(given):
        raise UsageError("give swap, leave, hide, photos, or the name of a face of the gallery; or --only")
    client = _client(port)
    _print(client.tell("person", number=number, **({"only": True} if only else _worn(given, ("swap", "leave", "hide")))), json)
    return 0


@ctl.command
def others(wear: Literal["swap", "leave", "hide"], /, *, port: Port = None, json: AsJson = False) -> int:
    """Says what everybody gets of whom nothing else was said.

    Parameters
    ----------
    wear
        swap, leave (shown as filmed) or hide (blurred).
    """
    _print(_client(port).tell("others", wear=wear), json)
    return 0


@ctl.command
def alike(*, port: Port = None, json: AsJson = False) -> int:
    """Takes back what was said of people: all are swapped, and wear the same."""
    _print(_client(port).tell("alike"), json)
    return 0


@ctl.command
def snapshot(file: Path, /, *, port: Port = None, json: AsJson = False) -> int:
    """Writes the next picture as a PNG.

    Parameters
    ----------
    file
        where to; `-` writes it to standard output.
    """
    from app.files import write_atomically

    picture = _client(port).snapshot()
    if str(file) == "-":
        sys.stdout.buffer.write(picture)
        return 0
    write_atomically(file, picture)
    console.print_json({"file": str(file), "bytes": len(picture)}) if json else console.note(f"wrote {file}")
    return 0


@ctl.command
def metrics(*, port: Port = None) -> int:
    """Prints the numbers in Prometheus' text format."""
    console.print_text(_client(port).metrics())
    return 0


@ctl.command
def watch(*, count: int | None = None, port: Port = None) -> int:
    """Prints every event as one line of JSON, until Ctrl-C or the end of the program.

    Parameters
    ----------
    count
        end after so many events.
    """
    if count is not None and count < 1:
        raise UsageError(f"--count {count} was given; give 1 or more")
    left = count

    def heard(event: dict[str, Any]) -> bool:
        nonlocal left
        console.print_text(json_module.dumps(event, ensure_ascii=False))
        sys.stdout.flush()
        left = None if left is None else left - 1
        return left != 0

    _client(port).watch(heard)
    return 0


@ctl.command
def schema() -> int:
    """Prints the interface as OpenAPI, with JSON Schemas of all that is said; needs no running ffrt."""
    from app.control.openapi import document

    console.print_json(document())
    return 0


@ctl.command
def token() -> int:
    """Says in which file the token lies that a program of your own needs; the token itself is not shown."""
    from app.control import guard
    from app.folders import data_folder

    guard.token()
    console.print_text(str(data_folder() / guard.TOKEN_FILE))
    return 0


def _worn(given: Sequence[str], words: Sequence[str] = ()) -> dict[str, Any]:
    """One of ``words``, a face of the gallery, or photos: as a command has it."""
    if len(given) == 1 and given[0] in words:
        return {"wear": given[0]}
    if len(given) == 1 and not Path(given[0]).exists():
        return {"face": given[0]}
    return {"photos": [str(Path(photo).absolute()) for photo in given]}


def _client(port: int | None) -> ControlClient:
    from app.control.client import ControlClient
    from app.errors import ControlError
    from app.instance import control_port

    console.set_up_logging(False)
    chosen = port or control_port()
    if chosen is None:
        raise ControlError(
            "no ffrt with a control interface runs; start one with `ffrt --headless --control`, or give its port with --port"
        )
    return ControlClient(chosen)


def _print(state: dict[str, Any], as_json: bool) -> None:
    console.print_json(state) if as_json else console.print_state(state)

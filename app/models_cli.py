"""`ffrt models`: a person's models from the command line."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from app import console
from app.errors import UsageError
from app.parameters import Switch

if TYPE_CHECKING:
    from app.models import Offer

models = cyclopts.App(name="models", help="Lists, fetches and keeps models beyond those that ship with ffrt.")


INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended, as shells have it."""


@models.command(name="list")
def list_models(*, here: Annotated[bool, Switch] = False, json: Annotated[bool, Switch] = False) -> int:
    """Lists the models that are here and those that can be pulled.

    Parameters
    ----------
    here
        only those that are here.
    json
        print JSON instead of a table.
    """
    from app.models import Models

    console.set_up_logging(False)
    rows = [row for row in Models().rows() if row["present"] or not here]
    console.print_json(rows) if json else console.print_models(rows)
    return 0


@models.command
def show(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Says all that is known of one model.

    Parameters
    ----------
    name
        its name, or the first digits (6 or more) of its SHA-256.
    json
        print JSON instead of a table.
    """
    from app.models import Models

    console.set_up_logging(False)
    _print(Models().show(name), json)
    return 0


@models.command
def pull(name: str, /, *, mirror: tuple[str, ...] = (), yes: Annotated[bool, Switch] = False, json: Annotated[bool, Switch] = False) -> int:
    """Fetches a model, after saying how large it is and what its licence forbids. Goes on where an earlier pull ended.

    Parameters
    ----------
    name
        as in `ffrt models list`.
    mirror
        address to ask first, a folder with TAG/FILE in it or a pattern with {path} or {file}; FFRT_MIRROR may hold others.
    yes
        do not ask; you have read the licence.
    json
        print the model as JSON.
    """
    from app.models import Models
    from engines.store.pull import mirrors_from_environment

    console.set_up_logging(False)
    mine, mirrors = Models(), (*mirror, *mirrors_from_environment())
    offer = mine.offer(name, mirrors)
    if offer is not None:
        console.note(offer.describe())
        if not yes and not _agreed(offer):
            console.note("nothing was fetched")
            return 1
    else:
        console.note(f"{name} is here already")
    with _stoppable(), console.download(name) as progress:
        row = mine.pull(name, mirrors, progress)
    _print(row, json)
    return 0


@models.command(name="import")
def import_model(file: Path, /, *, family: str | None = None, name: str | None = None, json: Annotated[bool, Switch] = False) -> int:
    """Copies an ONNX or DFM file that you have to the others, once it is clear what it is.

    Parameters
    ----------
    file
        the file; it stays where it is.
    family
        what it is, if its graph fits several families and its name says none of them.
    name
        what to call it; its file name otherwise.
    json
        print the model as JSON.
    """
    from app.models import Models
    from engines.store.shelf import fit_name

    console.set_up_logging(False)
    row = Models().import_file(file, family, name)
    if row["name"] != (name or fit_name(file.name)):
        console.note(f"{file.name} is known as {row['name']}; --name calls it something else")
    if row["told_by"] == "name":
        again = f"`ffrt models import {shlex.quote(str(file))} --family FAMILY`"
        console.note(f"{file.name} fits several families and was taken for {row['family']} by its name; if it is another: {again}")
    _print(row, json)
    return 0


@models.command
def verify(*names: str, json: Annotated[bool, Switch] = False) -> int:
    """Reads models and compares them with their SHA-256: those named, or all that are here and those that ship with ffrt.

    Parameters
    ----------
    names
        names or first digits of hashes.
    json
        print JSON instead of a table.
    """
    from app.models import Models

    console.set_up_logging(False)
    rows = Models().verify(names)
    console.print_json(rows) if json else console.print_verified(rows)
    return 0 if all(row["ok"] for row in rows) else 1


@models.command
def remove(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Deletes a model that was pulled or imported.

    Parameters
    ----------
    name
        its name, or the first digits (6 or more) of its SHA-256.
    json
        print what was removed as JSON.
    """
    from app.models import Models

    console.set_up_logging(False)
    row = Models().remove(name)
    console.print_json(row) if json else console.note(f"removed {row['path']}")
    return 0


def _agreed(offer: Offer) -> bool:
    """Asks, where somebody is there to answer. Raises ``UsageError`` where nobody is and the licence restricts."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        return console.confirm("Fetch it?")
    if offer.forbids_commerce:
        raise UsageError(
            f"{offer.entry.name} may not be used commercially and nobody can be asked here; add --yes if that suits you, as in "
            f"`ffrt models pull {offer.entry.name} --yes`"
        )
    return True


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C ends a pull in order: the terminal is as before, and what has arrived is kept."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        console.note("stopped; what has arrived is kept, and the next pull goes on from there")
        sys.exit(INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, before)


def _print(row: dict[str, Any], as_json: bool) -> None:
    console.print_json(row) if as_json else console.print_model(row)

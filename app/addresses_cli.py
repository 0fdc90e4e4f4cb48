"""`ffrt addresses`: where streams go, by name. Keys are read from the terminal or standard input, and never shown."""

from __future__ import annotations

import sys
from typing import Annotated

import cyclopts

from app import console
from app.errors import UsageError
from app.parameters import Switch

addresses = cyclopts.App(name="addresses", help="Keeps addresses to stream to by name, their keys in the system's keyring.")


LINE_MAX = 4096
"""Letters of an address: longer is something else."""


@addresses.command(name="list")
def list_addresses(*, json: Annotated[bool, Switch] = False) -> int:
    """Lists the saved addresses, without their keys.

    Parameters
    ----------
    json
        print JSON instead of a table.
    """
    from app.addresses import AddressBook

    console.set_up_logging(False)
    rows = [entry.model_dump(mode="json") for entry in AddressBook().entries()]
    console.print_json(rows) if json else console.print_addresses(rows)
    return 0


@addresses.command
def add(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Saves an address under NAME, or gives NAME another one. Asks for it, and does not show what is typed; or reads standard input.

    Parameters
    ----------
    name
        what to call it, as in `ffrt --to NAME`.
    json
        print what was saved as JSON, without its key.
    """
    from app.addresses import AddressBook

    console.set_up_logging(False)
    entry = AddressBook().put(name, _asked())
    console.print_json(entry.model_dump(mode="json")) if json else console.note(f"saved {entry.name}: {entry.shown}")
    return 0


@addresses.command
def remove(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Forgets an address and its key.

    Parameters
    ----------
    name
        its name.
    json
        print what was removed as JSON.
    """
    from app.addresses import AddressBook

    console.set_up_logging(False)
    AddressBook().remove(name)
    console.print_json({"name": name}) if json else console.note(f"removed {name}")
    return 0


def _asked() -> str:
    """Never from an argument: those of a process can be seen by others, and stay in the shell's history."""
    if sys.stdin.isatty():
        given = console.ask_secret("Address, as in rtmp://server/app/KEY (not shown): ")
    else:
        given = sys.stdin.readline(LINE_MAX + 1)
    if len(given) > LINE_MAX:
        raise UsageError(f"more than {LINE_MAX} letters were given, which is no address; give one line, as in rtmp://server/app/KEY")
    if not given.strip():
        raise UsageError("no address was given; type it, or give it as one line on standard input")
    return given.strip()

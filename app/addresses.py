"""The address book: where streams go, by name. An address with a secret is kept whole in the system's keyring and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from app.documents import check_version, checked, json_object
from app.errors import AddressError, MissingError
from app.files import locked, read_text, write_atomically
from app.folders import config_folder
from rt.address import shown

SERVICE = "ffrt"
"""Under which the keyring files our entries; the entry's user is the name of the address."""

SCHEMES = ("rtmp", "rtmps", "srt", "udp")

VERSION = 1
VERSION_KEY = "ffrt_addresses"

SAFE_PRIORITY = 1
"""keyring's own measure: backends below 1 are not recommended, those that write clear text among them; 0 keeps nothing."""

NO_KEYRING = (
    "ffrt writes no key in clear text: start a keyring (on Linux gnome-keyring or KWallet), or give the address with --rtmp each time"
)
"""What to do without one."""


class Address(BaseModel):
    """One entry, fit to be shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    shown: str
    """The address without its secret: ``rtmp://host/app/***``."""
    secret: bool
    """True where the whole address lies in the keyring; False where ``shown`` is all of it."""


class _Book(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: tuple[Address, ...] = ()


class KeyStore(Protocol):
    """What is needed of a keyring. Any thread; a call may ask the person to unlock it, so never on a window's thread."""

    def get(self, name: str) -> str | None: ...

    def put(self, name: str, secret: str) -> None: ...

    def drop(self, name: str) -> None: ...


class Keyring:
    """The system's keyring, loaded when first asked. Raises ``MissingError`` or ``AddressError`` where there is none that is safe."""

    def get(self, name: str) -> str | None:
        return self._call("get_password", SERVICE, name)

    def put(self, name: str, secret: str) -> None:
        self._call("set_password", SERVICE, name, secret)

    def drop(self, name: str) -> None:
        if self.get(name) is not None:
            self._call("delete_password", SERVICE, name)

    def _call(self, what: str, *arguments: str) -> Any:
        backend = _safe_backend()
        try:
            return getattr(backend, what)(*arguments)
        except Exception as error:  # each backend raises its own; its text may not hold the secret, so the type is told alone
            raise AddressError(
                f"the keyring {type(backend).__module__} refused ({type(error).__name__}); unlock it, then try again"
            ) from None


def _safe_backend() -> Any:
    """The first that keeps a secret safely: keyring puts unsafe ones into its chain too."""
    try:
        import keyring
    except ImportError:
        raise MissingError("stream keys are kept in the system's keyring; install what opens it with `pip install 'ffrt[keys]'`") from None
    try:
        found = keyring.get_keyring()
        for backend in getattr(found, "backends", (found,)):
            if backend.priority >= SAFE_PRIORITY:
                return backend
    except Exception as error:  # what a backend's own start raises, or a setting that names none
        raise AddressError(f"the system's keyring does not open ({type(error).__name__}: {error}); {NO_KEYRING}") from None
    raise AddressError(f"this system has no keyring that keeps a key safely (found: {type(found).__module__}); {NO_KEYRING}")


class AddressBook:
    """Any thread; several processes may share the file. Everything raises ``AddressError`` or ``StoreError``."""

    def __init__(self, file: Path | None = None, keys: KeyStore | None = None) -> None:
        """``file``: ``addresses.json`` in the user's configuration otherwise. It need not exist. ``keys``: the system's otherwise."""
        self.file = file or config_folder() / "addresses.json"
        self._keys = keys or Keyring()

    def entries(self) -> tuple[Address, ...]:
        """All, in the order they were added; the keyring is not asked."""
        return self._read().addresses

    def entry(self, name: str) -> Address:
        """Raises ``AddressError`` with the names that there are."""
        entry = next((entry for entry in self.entries() if entry.name == name), None)
        if entry is None:
            raise self._unknown(name)
        return entry

    def url(self, name: str) -> str:
        """The whole address, its secret with it: for a sink, never to be shown."""
        entry = self.entry(name)
        if not entry.secret:
            return entry.shown
        whole = self._keys.get(name)
        if whole is None or shown(whole) != entry.shown:
            raise AddressError(f"the key of {name!r} is not in this system's keyring; add the address again")
        return whole

    def put(self, name: str, url: str) -> Address:
        """Adds an address, or gives ``name`` another one. What the keyring refuses changes nothing.

        The file is written first: a program that dies in between leaves an entry that says its key is gone, never a key of which no
        entry knows.
        """
        _check(name, url)
        entry = Address(name=name, shown=shown(url), secret=shown(url) != url)
        with locked(self.file):
            before = self._read().addresses
            known = next((other for other in before if other.name == name), None)
            if known is not None and known.secret and not entry.secret:
                self._keys.drop(name)
            self._write(tuple(entry if other is known else other for other in before) if known is not None else (*before, entry))
            if entry.secret:
                try:
                    self._keys.put(name, url)
                except BaseException:  # raised on
                    self._write(before)
                    raise
        return entry

    def remove(self, name: str) -> None:
        """Forgets an address and its key."""
        with locked(self.file):
            book = self._read()
            entry = next((entry for entry in book.addresses if entry.name == name), None)
            if entry is None:
                raise self._unknown(name)
            if entry.secret:
                self._keys.drop(name)
            self._write(tuple(other for other in book.addresses if other is not entry))

    def _read(self) -> _Book:
        text = read_text(self.file)
        if text is None:
            return _Book()
        facts = json_object(text, self.file, AddressError, "mend or move it")
        check_version(facts, VERSION_KEY, VERSION, self.file, AddressError)
        del facts[VERSION_KEY]
        return checked(_Book, facts, self.file, AddressError)

    def _write(self, addresses: tuple[Address, ...]) -> None:
        facts = {VERSION_KEY: VERSION, **_Book(addresses=addresses).model_dump(mode="json")}
        write_atomically(self.file, json.dumps(facts, indent=1, ensure_ascii=False).encode())

    def _unknown(self, name: str) -> AddressError:
        known = ", ".join(entry.name for entry in self.entries()) or "none yet"
        return AddressError(f"no address is called {name!r}; there are: {known}. `ffrt addresses add NAME` adds one")


def _check(name: str, url: str) -> None:
    """The address itself is not repeated: it may hold a key."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
        raise AddressError(f"{name[:100]!r} was given as an address's name; give up to 100 printable letters, without blanks around them")
    try:
        parts = urlsplit(url)
        whole = parts.scheme.lower() in SCHEMES and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        whole = False
    if not whole:
        raise AddressError(
            f"what was given for {name!r} is no address to stream to; give one as in rtmp://server/app/KEY ({', '.join(SCHEMES)})"
        )

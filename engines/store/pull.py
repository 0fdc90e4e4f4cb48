"""Fetches a known model onto the shelf: resumes, asks several addresses, and lets nothing unverified bear a model's name.

What has arrived lies in a part file in the shelf's folder, with a note of where it came from; whatever ends the program, the next
pull goes on from there. The thread that calls does all the work.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import httpx
from filelock import FileLock, Timeout

from engines.errors import ModelError
from engines.family import Family
from engines.registry import Registry
from engines.store.catalog import Entry
from engines.store.graph import MAX_BYTES, inspect
from engines.store.identify import family_of
from engines.store.shelf import CHUNK, Card, Shelf, sha256_of
from engines.store.stopping import Stop
from engines.wording import counted

MIRROR_VARIABLE = "FFRT_MIRROR"
"""Environment: addresses to ask first, separated by spaces."""

AGAIN = {408, 425, 429, 500, 502, 503, 504}
"""HTTP answers that may be better a moment later."""

SIDE_FILE_BYTES = 256
"""A side file holds 8 digits; what is longer is something else."""

QUESTION_S = 5.0
"""How long a server may take to say how large a file is: somebody waits for the answer, and can do without."""

Progress = Callable[[int, int | None, str], None]
"""Called with bytes done, bytes in all (None: the server does not say) and the server's name."""


@dataclass(frozen=True, slots=True)
class Network:
    """How patient to be."""

    connect_s: float = 15.0
    read_s: float = 30.0
    """Silence of this length breaks a connection off."""
    attempts: int = 5
    """In a row at one address without a new byte."""
    backoff_s: float = 1.0
    """Before the second attempt; doubled for each further one."""
    wait: Callable[[float], None] = time.sleep


class _AgainError(Exception):
    """This attempt failed; another may not."""


class _RefusedError(Exception):
    """This address will not do; another may."""


def addresses_of(entry: Entry, mirrors: Sequence[str] = ()) -> tuple[str, ...]:
    """Where to ask for ``entry``, in order: mirrors first.

    A mirror is the address of a folder with ``TAG/FILE`` in it, or a pattern with ``{path}`` or ``{file}``. Raises ``ModelError`` for one
    that is neither http nor https, and for a model that can be had nowhere.
    """
    found: list[str] = []
    for mirror in mirrors:
        if "{path}" in mirror or "{file}" in mirror:
            address = mirror.replace("{path}", entry.mirror_path).replace("{file}", entry.file)
        else:
            address = f"{mirror.rstrip('/')}/{entry.mirror_path}"
        if not _is_address(address):
            raise ModelError(f"the mirror {mirror.rpartition('@')[2]!r} is no address; give one as in https://example.org/models")
        found.append(address)
    found += entry.addresses
    if not found:
        raise ModelError(
            f"{entry.name} has no address from which it could be pulled; get {entry.file} from {entry.publisher} and run "
            f"`ffrt models import {entry.file}`"
        )
    return tuple(found)


def mirrors_from_environment() -> tuple[str, ...]:
    """What FFRT_MIRROR says."""
    return tuple(os.environ.get(MIRROR_VARIABLE, "").split())


def size_of(entry: Entry, mirrors: Sequence[str] = (), network: Network | None = None) -> int | None:
    """Bytes of the model, by the catalogue or by asking; None where nobody says. Fetches nothing. Raises as ``addresses_of``."""
    addresses = addresses_of(entry, mirrors)
    if entry.size is not None:
        return entry.size
    patient = network or Network()
    hasty = replace(patient, connect_s=min(patient.connect_s, QUESTION_S), read_s=min(patient.read_s, QUESTION_S))
    with _client(hasty) as client:
        for address in addresses:
            try:
                answer = client.head(address)
            except (httpx.HTTPError, httpx.InvalidURL):
                continue
            length = answer.headers.get("content-length", "")
            if answer.is_success and length.isdecimal() and 0 < int(length) <= MAX_BYTES:
                return int(length)
    return entry.about_bytes


def pull(
    entry: Entry,
    shelf: Shelf,
    families: Registry[Family],
    *,
    mirrors: Sequence[str] = (),
    network: Network | None = None,
    progress: Progress = lambda done, total, server: None,
    stop: Stop | None = None,
) -> Card:
    """Brings ``entry`` onto the shelf and returns its card; at once if it is there.

    The content must have the SHA-256 of the catalogue; where the publisher gives only a CRC32, that, and the card then holds the
    SHA-256 that was seen. Raises ``ModelError`` for a model that no address gives whole, for a full disk and a folder that refuses,
    and ``PullCancelled`` soon after ``stop`` says so.
    """
    addresses = addresses_of(entry, mirrors)
    present = pulled(entry, shelf)
    if present is not None:
        return present
    with shelf.writing(), _lock(shelf.folder / f".pull-{entry.name}.lock", entry.name), _client(network or Network()) as client:
        job = _Pull(entry, shelf, client, _called_off_by(stop, client, network or Network()), progress)
        try:
            address = job.fetch(addresses)
        except ModelError:
            if stop is not None:
                stop.check()  # hung up, and no fault of the address
            raise
        return job.place(address, families)


def _called_off_by(stop: Stop | None, client: httpx.Client, network: Network) -> Network:
    """``network``, whose pauses end with ``stop``, as the answers that ``client`` gets do."""
    if stop is None:
        return network
    client.event_hooks = {"response": [stop.listen_in]}
    return replace(network, wait=stop.wait)


def pulled(entry: Entry, shelf: Shelf) -> Card | None:
    """The card of ``entry`` if it was pulled before, or came otherwise with the right hash. Raises ``ModelError`` if it was changed."""
    if entry.sha256 is not None:
        card = shelf.has(entry.sha256)
    else:
        card = next((card for card in shelf.cards() if card.name == entry.name and card.origin.startswith("http")), None)
    if card is not None:
        shelf.verify(card)
    return card


@dataclass(frozen=True, slots=True)
class _Note:
    """What is known of the bytes in the part file."""

    address: str
    validator: str
    """For If-Range: a strong ETag or a date; empty where the server gave neither."""
    total: int | None


class _Pull:
    """One pull of one model."""

    def __init__(self, entry: Entry, shelf: Shelf, client: httpx.Client, network: Network, progress: Progress) -> None:
        self._entry = entry
        self._shelf = shelf
        self._client = client
        self._network = network
        self._progress = progress
        self._part = shelf.folder / f".pull-{entry.name}.part"
        self._note = shelf.folder / f".pull-{entry.name}.note"
        self._crc32: str | None = None

    def fetch(self, addresses: Sequence[str]) -> str:
        """Until the part file is whole and verified. Returns the address that gave it."""
        problems: list[str] = []
        if self._entry.sha256 is None:
            self._crc32 = self._find_crc32(addresses)
        for address in addresses:
            try:
                self._from(address)
            except _RefusedError as error:
                problems.append(f"{_server(address)}: {error}")
            else:
                return address
        kept = "; what has arrived is kept" if self._have() else ""
        raise ModelError(
            f"{self._entry.name} could not be pulled ({'; '.join(problems)}); try again later, or name another address by --mirror{kept}"
        )

    def place(self, address: str, families: Registry[Family]) -> Card:
        """Gives the part file its name, if it is the kind of model that the catalogue says."""
        given = f"the file that {_server(address)} gave for {self._entry.name}"
        try:
            found = inspect(self._part)
            if found.external:
                raise ModelError(f"{given} keeps its weights elsewhere; ffrt takes models of one file")
            if self._entry.family in set(families):
                family_of(given, found.graph, families, self._entry.family)
        except ModelError as error:
            self._drop()  # it is whole and as published: no further byte will mend it
            raise ModelError(str(error).replace(str(self._part), given)) from error
        card = card_of(self._entry, sha256_of(self._part), found.graph, public(address))
        card = self._shelf.place(self._part, card)
        self._drop()
        return card

    def _from(self, address: str) -> None:
        """All of the file from one address; bytes of an earlier attempt are used, and thrown away if they turn out wrong."""
        for _ in range(2):
            resumed = self._download(address)
            wrong = self._what_is_wrong()
            if not wrong:
                return
            self._drop()
            if not resumed:
                break
        raise _RefusedError(wrong)

    def _download(self, address: str) -> bool:
        """Attempt after attempt until the part file is complete. Returns whether bytes of other answers are in it."""
        resumed, failures, most = False, 0, self._have()
        while True:
            try:
                return self._once(address) or resumed
            except (httpx.TransportError, _AgainError) as error:
                if isinstance(error, httpx.UnsupportedProtocol) or (_nameless(error) and not self._have()):
                    raise _RefusedError(_said(error)) from error
                failures = 1 if self._have() > most else failures + 1
                most, resumed = max(most, self._have()), True
                if failures >= self._network.attempts:
                    raise _RefusedError(f"{_said(error)}, {counted(failures, 'time')}") from error
                self._pause(address, error, failures)
            except (httpx.TooManyRedirects, httpx.InvalidURL, httpx.DecodingError) as error:
                raise _RefusedError(_said(error)) from error

    def _pause(self, address: str, error: Exception, failures: int) -> None:
        """Longer each time; said, so that nobody takes it for a program that hangs."""
        wait_s = self._network.backoff_s * 2 ** (failures - 1)
        logging.getLogger(__name__).warning("%s: %s; asking again in %.0f s", _server(address), _said(error), wait_s)
        self._network.wait(wait_s)

    def _once(self, address: str) -> bool:
        """One request. Returns whether it went on from earlier bytes."""
        have, note = self._have(), self._read_note()
        if have and note is not None and note.total == have:
            return True
        with self._client.stream("GET", address, headers=_resume(address, have, note)) as answer:
            start = self._start(address, answer, have, note)
            if start is None:
                return True
            total = _total(answer, start)
            self._check_length(total)
            self._shelf.check_space((total or self._entry.about_bytes or start) - start)
            self._write_note(_Note(address, _validator(answer), total))
            self._receive(answer, start, total, _server(address))
            return start > 0

    def _start(self, address: str, answer: httpx.Response, have: int, note: _Note | None) -> int | None:
        """At which byte the answer begins; None: nothing is missing."""
        if address.startswith("https:") and answer.url.scheme != "https":
            raise _RefusedError(f"it sends on to {answer.url.host} without encryption")
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise _RefusedError("it sends the file compressed, though it was asked not to")
        if answer.status_code == 200:
            return 0
        if answer.status_code == 206:
            begins, total = _content_range(answer)
            if begins == have and (note is None or note.total in (None, total)):
                return begins
            self._drop()
            raise _AgainError("the file there has changed meanwhile")
        if answer.status_code == 416 and have:
            if _content_range(answer)[1] == have:
                return None
            self._drop()
            raise _AgainError("the file there has changed meanwhile")
        problem = f"it answers {answer.status_code} {answer.reason_phrase}".rstrip()
        raise _AgainError(problem) if answer.status_code in AGAIN else _RefusedError(problem)

    def _check_length(self, total: int | None) -> None:
        if total is not None and self._entry.size not in (None, total):
            has = counted(total, "byte")
            raise _RefusedError(f"its file has {has} where {self._entry.size} are right; another file was put in its place")
        if total is not None and total > MAX_BYTES:
            raise _RefusedError(f"its file has {total} bytes, more than any ONNX model")

    def _receive(self, answer: httpx.Response, start: int, total: int | None, server: str) -> None:
        limit = total or self._entry.size or MAX_BYTES
        done = start
        with self._open_part() as part:
            part.truncate(start)
            part.seek(start)
            for piece in answer.iter_raw():
                done += len(piece)
                if done > limit:
                    part.truncate(0)
                    raise _RefusedError(f"it sends more than the {limit} bytes that are right")
                part.write(piece)
                self._progress(done, total, server)
        if total is not None and done < total:
            raise _AgainError(f"it broke off after {done} of {total} bytes")

    def _open_part(self) -> BinaryIO:
        return os.fdopen(os.open(self._part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644), "r+b")

    def _what_is_wrong(self) -> str:
        """Empty for the right file."""
        size = self._have()
        if self._entry.size not in (None, size):
            return f"its file has {counted(size, 'byte')} where {self._entry.size} are right"
        if self._entry.sha256 is not None:
            seen = sha256_of(self._part)
            return "" if seen == self._entry.sha256 else f"its file has the SHA-256 {seen}, not {self._entry.sha256}"
        seen = crc32_of(self._part)
        return "" if seen == self._crc32 else f"its file has the CRC32 {seen}, not {self._crc32}"

    def _find_crc32(self, addresses: Sequence[str]) -> str:
        """The check sum beside the file, from the first address that has it: it is against damage on the way, not against malice.

        Raises ``ModelError`` where there is none: a file that nothing vouches for is not taken."""
        problems: list[str] = []
        for address in addresses if self._entry.crc32_beside else ():
            try:
                return self._side_file(side_address(address))
            except _RefusedError as error:
                problems.append(f"{_server(address)}: {error}")
        why = f" ({'; '.join(problems)})" if problems else ""
        raise ModelError(
            f"nothing was found to check {self._entry.name} by{why}; try again later or by another --mirror, or get {self._entry.file} "
            f"from {self._entry.publisher} and run `ffrt models import {self._entry.file}`"
        )

    def _side_file(self, address: str) -> str:
        failures = 0
        while True:
            try:
                return self._read_side_file(address)
            except (httpx.TransportError, _AgainError) as error:
                failures += 1
                if isinstance(error, httpx.UnsupportedProtocol) or _nameless(error):
                    raise _RefusedError(_said(error)) from error
                if failures >= self._network.attempts:
                    raise _RefusedError(f"{_said(error)}, {counted(failures, 'time')}") from error
                self._pause(address, error, failures)
            except (httpx.TooManyRedirects, httpx.InvalidURL, httpx.DecodingError) as error:
                raise _RefusedError(_said(error)) from error

    def _read_side_file(self, address: str) -> str:
        with self._client.stream("GET", address) as answer:
            if answer.status_code != 200:
                problem = f"it answers {answer.status_code} to {Path(answer.request.url.path).name}"
                raise _AgainError(problem) if answer.status_code in AGAIN else _RefusedError(problem)
            text = b""
            for piece in answer.iter_raw():
                text += piece
                if len(text) > SIDE_FILE_BYTES:
                    break
        digits = text.decode("ascii", "replace").strip().lower()
        if not re.fullmatch(r"[0-9a-f]{8}", digits):
            raise _RefusedError(f"its check sum is {digits[:20]!r}, not 8 hexadecimal digits")
        return digits

    def _have(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _drop(self) -> None:
        self._part.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _read_note(self) -> _Note | None:
        try:
            facts: dict[str, Any] = json.loads(self._note.read_text(encoding="utf-8"))
            total = facts["total"]
            return _Note(str(facts["address"]), str(facts["validator"]), total if isinstance(total, int) else None)
        except (OSError, ValueError, KeyError, TypeError):  # none yet, or half of one: the bytes are verified at the end anyway
            return None

    def _write_note(self, note: _Note) -> None:
        facts = {"address": public(note.address), "validator": note.validator, "total": note.total}
        self._shelf.write_atomically(self._note, json.dumps(facts).encode())


def card_of(entry: Entry, sha256: str, graph: Any, origin: str) -> Card:
    """The card of a file that is what ``entry`` describes."""
    return Card(
        name=entry.name,
        file=entry.file,
        sha256=sha256,
        size=entry.size or 0,
        family=entry.family,
        kind=str(entry.kind),
        origin=origin,
        licence=entry.licence.name,
        commercial=str(entry.licence.commercial),
        terms=entry.licence.terms,
        graph=graph,
        unverified=tuple(fact for fact in entry.unverified if fact != "origin"),  # that is where it came from
    )


def crc32_of(path: Path) -> str:
    """8 lower-case hexadecimal digits. It finds damage, not malice."""
    value = 0
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            value = zlib.crc32(piece, value)
    return f"{value:08x}"


def _is_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    host = url.raw_host.decode("ascii", "replace")
    # httpx takes hosts that the system's resolver then stumbles over.
    return url.scheme in ("http", "https") and re.fullmatch(r"[A-Za-z0-9_:-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?", host) is not None


def _client(network: Network) -> httpx.Client:
    timeout = httpx.Timeout(network.read_s, connect=network.connect_s)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # below that it logs whole addresses, with whatever key is in them
    # A compressed answer could not be resumed, nor its length compared.
    headers = {"user-agent": "ffrt", "accept-encoding": "identity"}
    try:
        return httpx.Client(timeout=timeout, headers=headers, follow_redirects=True, max_redirects=10)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:  # what the environment says of proxies and certificates
        asking = ("SSL_CERT_FILE", "SSL_CERT_DIR") if isinstance(error, OSError) else _proxies()  # an SSLError is an OSError
        raise ModelError(f"no connection can be made as the environment asks ({', '.join(asking)}): {_said(error)}") from error


def _resume(address: str, have: int, note: _Note | None) -> dict[str, str]:
    """Without a validator the server cannot tell whether the file changed; the check sum at the end can."""
    if not have:
        return {}
    headers = {"range": f"bytes={have}-"}
    if note is not None and note.validator and note.address == public(address):
        headers["if-range"] = note.validator
    return headers


def _validator(answer: httpx.Response) -> str:
    """If-Range takes strong ETags and dates."""
    etag = str(answer.headers.get("etag", ""))
    return etag if etag and not etag.startswith("W/") else str(answer.headers.get("last-modified", ""))


def _total(answer: httpx.Response, start: int) -> int | None:
    if answer.status_code == 206:
        return _content_range(answer)[1]
    length = answer.headers.get("content-length", "")
    return start + int(length) if length.isdecimal() else None


def _content_range(answer: httpx.Response) -> tuple[int | None, int | None]:
    """First byte and length of the whole; None where not said."""
    match = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", answer.headers.get("content-range", ""))
    if match is None:
        return None, None
    first, total = match.groups()
    return (None if first is None else int(first)), (None if total == "*" else int(total))


def side_address(address: str) -> str:
    """Where the check sum of the file at ``address`` is: ``STEM.hash`` beside it."""
    url = httpx.URL(address)
    stem = url.path.rpartition(".")[0] or url.path
    return str(url.copy_with(path=f"{stem}.hash"))


def _server(address: str) -> str:
    """What to call an address: never with a key or a password that may be in it."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        return "an address that makes no sense"
    return url.host if url.port is None else f"{url.host}:{url.port}"


def public(address: str) -> str:
    """The address without what may be secret."""
    url = httpx.URL(address)
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))


def _said(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    if _nameless(error):
        proxies = _proxies()
        whose = f"the name of the proxy ({', '.join(proxies)})" if proxies else "its name"
        return f"nobody knows {whose}; is this machine on the network"
    return (str(error) or type(error).__name__).rstrip(".")


def _nameless(error: BaseException | None) -> bool:
    """Whether the host's name could not be looked up: asking again at once helps nobody."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            return True
        error = error.__cause__ or error.__context__
    return False


def _proxies() -> tuple[str, ...]:
    """Names of the variables that set one."""
    return tuple(f"{scheme.upper()}_PROXY" for scheme in urllib.request.getproxies() if scheme != "no")


@contextmanager
def _lock(path: Path, name: str) -> Iterator[None]:
    """Two processes must not write into one part file. The lock ends with the process, however that ends."""
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ModelError(f"another ffrt is pulling {name} at this moment; wait for it, or stop it") from error
    try:
        yield
    finally:
        lock.release()

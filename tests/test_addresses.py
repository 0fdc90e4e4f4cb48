"""The address book: keys lie in the keyring alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

keyring = pytest.importorskip("keyring")

from keyring.backend import KeyringBackend  # noqa: E402
from keyring.backends import fail  # noqa: E402

from app.addresses import AddressBook  # noqa: E402
from app.errors import AddressError, StoreError  # noqa: E402

KEY = "sk_live_0123"
URL = f"rtmp://server/app/{KEY}"


class MemoryKeyring(KeyringBackend):
    """A backend of the real library, in this process's memory."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class ClearText(MemoryKeyring):
    priority = 0.5  # type: ignore[assignment]


class Locked(MemoryKeyring):
    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError(f"cannot store {password}")


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_a_key_goes_to_the_keyring_alone(tmp_path: Path, memory: MemoryKeyring) -> None:
    book = AddressBook(tmp_path / "addresses.json")
    entry = book.put("twitch", URL)
    assert entry.shown == "rtmp://server/app/***"
    assert book.url("twitch") == URL
    assert memory.kept == {("ffrt", "twitch"): URL}
    assert all(KEY not in file.read_text() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY not in repr(book.entries())
    book.put("twitch", "srt://server:9000?passphrase=other")
    assert book.url("twitch") == "srt://server:9000?passphrase=other"
    book.remove("twitch")
    assert memory.kept == {}
    assert book.entries() == ()


def test_an_address_without_a_secret_needs_no_keyring(tmp_path: Path) -> None:
    book = AddressBook(tmp_path / "addresses.json")
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    try:
        book.put("studio", "udp://192.0.2.1:5000")
        assert book.url("studio") == "udp://192.0.2.1:5000"
        with pytest.raises(AddressError, match="clear text") as caught:
            book.put("twitch", URL)
    finally:
        keyring.set_keyring(before)
    assert KEY not in str(caught.value)
    assert [entry.name for entry in book.entries()] == ["studio"]


@pytest.mark.parametrize("backend", [ClearText, Locked])
def test_what_the_keyring_cannot_keep_is_not_kept(backend: type[MemoryKeyring], tmp_path: Path, memory: MemoryKeyring) -> None:
    keyring.set_keyring(backend())
    book = AddressBook(tmp_path / "addresses.json")
    with pytest.raises(AddressError) as caught:
        book.put("twitch", URL)
    assert KEY not in str(caught.value)
    assert book.entries() == ()


def test_a_file_that_cannot_be_written_leaves_no_key_behind(tmp_path: Path, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of which no entry knows would stay in the keyring for ever."""

    def refuse(path: Path, data: bytes) -> None:
        raise StoreError("no space")

    book = AddressBook(tmp_path / "addresses.json")
    book.put("twitch", URL)
    monkeypatch.setattr("app.addresses.write_atomically", refuse)
    for name in ("twitch", "youtube"):
        with pytest.raises(StoreError, match="no space"):
            book.put(name, URL.replace(KEY, "other"))
    assert memory.kept == {("ffrt", "twitch"): URL}
    assert book.url("twitch") == URL


def test_a_refused_change_leaves_the_address_as_it_was(tmp_path: Path, memory: MemoryKeyring) -> None:
    book = AddressBook(tmp_path / "addresses.json")
    book.put("twitch", URL)
    before = book.file.read_bytes()
    locked = Locked()
    locked.kept = memory.kept
    keyring.set_keyring(locked)
    with pytest.raises(AddressError, match="unlock"):
        book.put("twitch", "rtmp://elsewhere/app/key")
    assert book.file.read_bytes() == before
    assert book.url("twitch") == URL


class Chain(KeyringBackend):
    """As keyring chains what it found: its own priority is high, whatever it holds."""

    priority = 10  # type: ignore[assignment]

    def __init__(self, *backends: MemoryKeyring) -> None:
        super().__init__()
        self.backends = backends

    def get_password(self, service: str, username: str) -> str | None:
        raise AssertionError("the chain itself asks unsafe ones too")

    set_password = get_password  # type: ignore[assignment]


def test_a_chain_is_as_safe_as_what_is_in_it(tmp_path: Path, memory: MemoryKeyring) -> None:
    book = AddressBook(tmp_path / "addresses.json")
    keyring.set_keyring(Chain(ClearText(), memory))
    book.put("twitch", URL)
    assert (memory.kept, book.url("twitch")) == ({("ffrt", "twitch"): URL}, URL)
    keyring.set_keyring(Chain(ClearText()))
    with pytest.raises(AddressError, match="no keyring that keeps a key safely"):
        book.put("youtube", URL)
    assert [entry.name for entry in book.entries()] == ["twitch"]


def test_a_key_that_is_gone_is_told(tmp_path: Path, memory: MemoryKeyring) -> None:
    book = AddressBook(tmp_path / "addresses.json")
    book.put("twitch", URL)
    memory.kept.clear()
    with pytest.raises(AddressError, match="add the address again"):
        book.url("twitch")
    with pytest.raises(AddressError, match="there are: twitch"):
        book.url("youtube")


@pytest.mark.parametrize(
    "url", ["", "server/app/" + KEY, "ftp://server/" + KEY, "rtmp:///" + KEY, "rtmp://[x/" + KEY, f"rtmp://s/a/{KEY}\n"]
)
def test_what_is_no_address_is_refused_unseen(url: str, tmp_path: Path, memory: MemoryKeyring) -> None:
    with pytest.raises(AddressError) as caught:
        AddressBook(tmp_path / "addresses.json").put("a", url)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"ffrt_addresses": 2}', '{"ffrt_addresses": 1, "addresses": 3}', "[" * 100_000])
def test_a_damaged_book_stays_as_it_is(text: str, tmp_path: Path, memory: MemoryKeyring) -> None:
    file = tmp_path / "addresses.json"
    file.write_text(text)
    for ask in (lambda book: book.entries(), lambda book: book.put("a", URL), lambda book: book.remove("a")):
        with pytest.raises(StoreError):
            ask(AddressBook(file))
    assert file.read_text() == text
    assert memory.kept == {}

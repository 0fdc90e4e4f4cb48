"""Downloads against a real server that breaks, lies, moves and runs dry."""

from __future__ import annotations

import json
import resource
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from file_server import Site, serve
from hypothesis import given, settings
from hypothesis import strategies as st
from store_files import EIGHT, NOT_FREE, Published, SquareFamily, crc32, families, model_bytes, sha256

from engines.errors import ModelError
from engines.store.pull import Network, addresses_of, public, pull, side_address, size_of
from engines.store.shelf import Card, Shelf

DATA = model_bytes(weights=256)
"""A quarter of a megabyte: several pieces of what a socket gives at once."""
OTHER = model_bytes(weights=256, seed=2)
HALF = len(DATA) // 2
PATH = "/tiny.onnx"


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "models")


class Run(NamedTuple):
    waits: list[float]
    seen: list[tuple[int, int | None, str]]


def fetch(entry: Any, shelf: Shelf, run: Run | None = None, attempts: int = 5, **options: Any) -> Card:
    run = run or Run([], [])
    network = Network(attempts=attempts, wait=run.waits.append, read_s=20)
    registry = options.pop("registry", families(**EIGHT))
    return pull(entry, shelf, registry, network=network, progress=lambda *step: run.seen.append(step), **options)


def left_over(shelf: Shelf) -> set[str]:
    """Names in the folder, without locks and cards."""
    return {path.name for path in shelf.folder.iterdir() if not path.name.endswith((".lock", ".json"))}


def test_a_model_arrives_whole_with_its_card(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    run = Run([], [])
    card = fetch(Published(DATA, licence=NOT_FREE).entry(site.base), shelf, run)
    assert shelf.path(card).read_bytes() == DATA
    assert left_over(shelf) == {"tiny.onnx"}
    assert (card.name, card.family, card.sha256, card.size) == ("tiny", "eight", sha256(DATA), len(DATA))
    assert (card.origin, card.licence, card.commercial) == (f"{site.base}{PATH}", "research", "no")
    assert shelf.find("tiny") == card
    assert run.seen[-1] == (len(DATA), len(DATA), f"127.0.0.1:{site.port}")
    assert [step[0] for step in run.seen] == sorted(step[0] for step in run.seen)
    assert run.waits == []


def test_what_is_there_is_not_fetched_again(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    entry = Published(DATA).entry(site.base)
    assert fetch(entry, shelf) == fetch(entry, shelf)
    assert len(site.asked(PATH)) == 1


def test_a_break_in_mid_file_is_resumed(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, breaks=[HALF])
    run = Run([], [])
    assert shelf.path(fetch(Published(DATA).entry(site.base), shelf, run)).read_bytes() == DATA
    first, second = site.asked(PATH)
    assert "range" not in first.headers
    assert second.headers["range"] == f"bytes={HALF}-"
    assert second.headers["if-range"] == '"1"'
    assert run.waits == [1.0]


def test_the_next_pull_goes_on_where_this_one_gave_up(site: Site, shelf: Shelf) -> None:
    served = site.put(PATH, DATA, breaks=[HALF])
    entry = Published(DATA).entry(site.base)
    with pytest.raises(ModelError, match="what has arrived is kept"):
        fetch(entry, shelf, attempts=1)
    assert shelf.cards() == []
    assert (shelf.folder / ".pull-tiny.part").read_bytes() == DATA[:HALF]
    served.breaks.clear()
    fetch(entry, shelf)
    assert site.asked(PATH)[1].headers["range"] == f"bytes={HALF}-"


def test_each_piece_that_arrives_renews_the_patience(site: Site, shelf: Shelf) -> None:
    step = len(DATA) // 10
    site.put(PATH, DATA, breaks=[step] * 9)
    run = Run([], [])
    fetch(Published(DATA).entry(site.base), shelf, run, attempts=2)
    assert run.waits == [1.0] * 9


def test_a_server_that_gives_nothing_is_left_after_growing_pauses(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, breaks=[0] * 10)
    run = Run([], [])
    with pytest.raises(ModelError, match="4 times"):
        fetch(Published(DATA).entry(site.base), shelf, run, attempts=4)
    assert run.waits == [1.0, 2.0, 4.0]


def test_a_server_that_ignores_range_starts_over(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, breaks=[HALF], ranges=False)
    assert shelf.path(fetch(Published(DATA).entry(site.base), shelf)).read_bytes() == DATA


def test_a_server_that_always_starts_over_and_breaks_is_left(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, breaks=[HALF] * 20, ranges=False)
    with pytest.raises(ModelError, match="could not be pulled"):
        fetch(Published(DATA).entry(site.base), shelf, attempts=3)
    assert len(site.asked(PATH)) == 3


@pytest.mark.parametrize("etag", ['"2"', 'W/"2"', None])
def test_a_file_that_changes_meanwhile_is_not_mixed(site: Site, shelf: Shelf, etag: str | None) -> None:
    """With a strong ETag the server starts over; without, the check sum finds it out."""
    old = model_bytes(weights=256, seed=3)
    assert len(old) == len(DATA)
    served = site.put(PATH, old, breaks=[HALF], etag='"1"' if etag == '"2"' else etag)
    entry = Published(DATA).entry(site.base)
    with pytest.raises(ModelError):
        fetch(entry, shelf, attempts=1)
    served.data, served.etag = DATA, etag
    assert shelf.path(fetch(entry, shelf)).read_bytes() == DATA


def test_a_file_of_another_length_meanwhile_starts_over(site: Site, shelf: Shelf) -> None:
    served = site.put(PATH, DATA + b"more", breaks=[HALF], etag=None)
    entry = Published(DATA).entry(site.base)
    with pytest.raises(ModelError):
        fetch(entry, shelf, attempts=1)
    served.data = DATA
    assert shelf.path(fetch(entry, shelf)).read_bytes() == DATA


def test_a_part_longer_than_the_file_starts_over(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    shelf.folder.mkdir()
    (shelf.folder / ".pull-tiny.part").write_bytes(DATA + b"x")
    assert shelf.path(fetch(Published(DATA).entry(site.base), shelf)).read_bytes() == DATA


def test_a_part_that_is_whole_already_is_taken(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    shelf.folder.mkdir()
    (shelf.folder / ".pull-tiny.part").write_bytes(DATA)
    assert shelf.path(fetch(Published(DATA).entry(site.base), shelf)).read_bytes() == DATA


def test_a_wrong_hash_is_said_and_nothing_stays(site: Site, shelf: Shelf) -> None:
    site.put(PATH, OTHER)
    with pytest.raises(ModelError, match=f"SHA-256 {sha256(OTHER)}, not {sha256(DATA)}"):
        fetch(Published(DATA).entry(site.base), shelf)
    assert left_over(shelf) == set()


def test_a_rotten_part_is_thrown_away_once(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    shelf.folder.mkdir()
    (shelf.folder / ".pull-tiny.part").write_bytes(b"\0" * HALF)
    assert shelf.path(fetch(Published(DATA).entry(site.base), shelf)).read_bytes() == DATA
    assert len(site.asked(PATH)) == 2


def test_a_wrong_length_is_refused_before_a_byte_is_kept(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    run = Run([], [])
    with pytest.raises(ModelError, match=f"{len(DATA)} bytes where 17 are right"):
        fetch(Published(DATA, extra={"size": 17}).entry(site.base), shelf, run)
    assert run.seen == []


def test_a_server_that_promises_more_than_it_gives_is_left(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, claimed=len(DATA) + 5, ranges=False)
    with pytest.raises(ModelError, match="2 times"):
        fetch(Published(DATA).entry(site.base), shelf, attempts=2)


def test_a_server_that_says_no_length_is_believed_by_the_hash(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, length=False)
    run = Run([], [])
    fetch(Published(DATA).entry(site.base), shelf, run)
    assert {total for _, total, _ in run.seen} == {None}


def test_a_server_that_never_ends_is_stopped(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA + b"\0" * 500_000, length=False)
    with pytest.raises(ModelError, match="more than"):
        fetch(Published(DATA, extra={"size": len(DATA)}).entry(site.base), shelf)


def test_redirects_are_followed(site: Site, shelf: Shelf) -> None:
    site.put(PATH, b"", redirect=f"{site.base}/cdn/file")
    site.put("/cdn/file", DATA, breaks=[HALF])
    assert shelf.path(fetch(Published(DATA).entry(site.base), shelf)).read_bytes() == DATA
    assert site.asked("/cdn/file")[1].headers["range"] == f"bytes={HALF}-"


def test_redirects_in_a_circle_are_left(site: Site, shelf: Shelf) -> None:
    site.put(PATH, b"", redirect=f"{site.base}{PATH}")
    with pytest.raises(ModelError, match="redirects"):
        fetch(Published(DATA).entry(site.base), shelf)


def test_a_busy_server_is_asked_again(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, statuses=[503, 429])
    run = Run([], [])
    fetch(Published(DATA).entry(site.base), shelf, run)
    assert run.waits == [1.0, 2.0]


def test_an_address_that_is_gone_gives_way_to_the_next(site: Site, shelf: Shelf) -> None:
    site.put("/second/tiny.onnx", DATA)
    run = Run([], [])
    card = fetch(Published(DATA).entry(f"{site.base}/first", f"{site.base}/second"), shelf, run)
    assert card.origin == f"{site.base}/second/tiny.onnx"
    assert run.waits == []


def test_a_silent_server_gives_way_to_the_next(site: Site, shelf: Shelf) -> None:
    site.put("/first/tiny.onnx", DATA, hold_after=HALF)
    site.put("/second/tiny.onnx", DATA)
    waits: list[float] = []
    network = Network(attempts=1, wait=waits.append, read_s=0.2)
    entry = Published(DATA).entry(f"{site.base}/first", f"{site.base}/second")
    card = pull(entry, shelf, families(**EIGHT), network=network)
    assert card.origin == f"{site.base}/second/tiny.onnx"
    assert site.asked("/second/tiny.onnx")[0].headers["range"] == f"bytes={HALF}-"


def test_no_address_that_works_names_all_of_them(shelf: Shelf) -> None:
    with serve() as gone:
        base = gone.base
    run = Run([], [])
    with pytest.raises(ModelError, match=r"127\.0\.0\.1.*--mirror"):
        fetch(Published(DATA).entry(base), shelf, run, attempts=2)
    assert run.waits == [1.0]


def test_a_name_that_nobody_knows_is_asked_for_once(site: Site, shelf: Shelf) -> None:
    """``.invalid`` is reserved to be nobody's."""
    site.put(PATH, DATA)
    run = Run([], [])
    entry = Published(DATA).entry("http://ffrt.invalid", site.base)
    assert fetch(entry, shelf, run).origin == f"{site.base}{PATH}"
    entry = Published(OTHER, name="other").entry("http://ffrt.invalid", by="crc32")
    with pytest.raises(ModelError, match=r"ffrt\.invalid: nobody knows its name; is this machine on the network"):
        fetch(entry, shelf, run)
    assert run.waits == []


def test_bytes_that_are_here_are_worth_more_attempts(site: Site, shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """A network that is gone in mid-file takes its names with it."""
    site.put(PATH, DATA, breaks=[HALF])
    run = Run([], [])
    with pytest.raises(ModelError, match="what has arrived is kept"):
        fetch(Published(DATA).entry(site.base), shelf, run, attempts=1)
    with pytest.raises(ModelError, match=r"nobody knows its name.*, 3 times.*what has arrived is kept"):
        fetch(Published(DATA).entry("http://ffrt.invalid"), shelf, run, attempts=3)
    assert run.waits == [1.0, 2.0]
    assert "ffrt.invalid: nobody knows its name; is this machine on the network; asking again in 2 s" in caplog.text


def test_nothing_is_kept_of_a_file_that_is_wrong(site: Site, shelf: Shelf) -> None:
    site.put(PATH, OTHER)
    with pytest.raises(ModelError) as caught:
        fetch(Published(DATA).entry(site.base), shelf)
    assert "kept" not in str(caught.value)


ODD = {
    "ALL_PROXY": ("socks5://127.0.0.1:1", "socks"),
    "SSL_CERT_FILE": ("/there/is/none", "No such file"),
    "HTTP_PROXY": ("http://ffrt.invalid", "nobody knows the name of the proxy (HTTP_PROXY)"),
}
"""Variable → what it says that cannot be, and words of the sentence."""


@pytest.mark.parametrize("variable", ODD)
def test_an_environment_that_makes_no_sense_is_named(
    variable: str, site: Site, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put(PATH, DATA)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    value, words = ODD[variable]
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelError) as caught:
        fetch(Published(DATA).entry(site.base), shelf)
    assert variable in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("pattern", ["{base}/m", "{base}/m/", "{base}/{{path}}?x=1", "{base}/flat/{{file}}"])
def test_a_mirror_is_asked_first(site: Site, shelf: Shelf, pattern: str) -> None:
    site.put("/m/tag-1/tiny.onnx", DATA)
    site.put("/tag-1/tiny.onnx?x=1", DATA)
    site.put("/flat/tiny.onnx", DATA)
    fetch(Published(DATA).entry(f"{site.base}/publisher"), shelf, mirrors=[pattern.format(base=site.base)])
    assert not site.asked("/publisher/tiny.onnx")


def test_a_mirror_that_fails_gives_way_to_the_publisher(site: Site, shelf: Shelf) -> None:
    site.put("/publisher/tiny.onnx", DATA)
    card = fetch(Published(DATA).entry(f"{site.base}/publisher"), shelf, mirrors=[f"{site.base}/mirror"])
    assert card.origin == f"{site.base}/publisher/tiny.onnx"


def test_secrets_of_a_mirror_are_nowhere(site: Site, shelf: Shelf) -> None:
    site.put("/m/tiny.onnx?key=secret", DATA)
    mirror = f"http://me:secret@127.0.0.1:{site.port}/m/{{file}}?key=secret"
    run = Run([], [])
    card = fetch(Published(DATA).entry(), shelf, run, mirrors=[mirror])
    assert "secret" not in json.dumps([card.origin, [step[2] for step in run.seen]])
    site.files.clear()
    shelf.remove(card)
    with pytest.raises(ModelError) as caught:
        fetch(Published(DATA).entry(), shelf, mirrors=[mirror])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("mirror", ["ftp://me:secret@example.org", "http://", "http://[", "https://host:port/x", "here", "http://a b\n/"])
def test_a_mirror_that_is_no_address_is_refused(mirror: str) -> None:
    with pytest.raises(ModelError, match="https://example") as caught:
        addresses_of(Published(DATA).entry(), [mirror])
    assert "secret" not in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_mirror_or_refused(text: str) -> None:
    for mirror in (text, f"http://{text}", f"https://host/{text}", f"http://host:{text}/{{file}}"):
        try:
            addresses = addresses_of(Published(DATA).entry(), [mirror])
        except ModelError:
            continue
        assert all(side_address(address) and public(address) for address in addresses)


def test_a_compressed_answer_is_not_taken(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, encoding="gzip")
    with pytest.raises(ModelError, match="compressed"):
        fetch(Published(DATA).entry(site.base), shelf)


def test_a_model_without_an_address_says_how_to_get_it(shelf: Shelf) -> None:
    with pytest.raises(ModelError, match=r"from the tests and run `ffrt models import tiny\.onnx`"):
        fetch(Published(DATA).entry(), shelf)


def test_a_crc32_beside_the_file_is_checked_and_the_sha256_kept(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    site.put("/tiny.hash", crc32(DATA).encode() + b"\n", statuses=[503])
    card = fetch(Published(DATA).entry(site.base, by="crc32"), shelf)
    assert card.sha256 == sha256(DATA)
    shelf.path(card).write_bytes(OTHER)
    with pytest.raises(ModelError, match="was changed"):
        fetch(Published(DATA).entry(site.base, by="crc32"), shelf)


def test_a_wrong_crc32_is_said(site: Site, shelf: Shelf) -> None:
    site.put(PATH, OTHER)
    site.put("/tiny.hash", crc32(DATA).encode())
    with pytest.raises(ModelError, match=f"CRC32 {crc32(OTHER)}, not {crc32(DATA)}"):
        fetch(Published(DATA).entry(site.base, by="crc32"), shelf)
    assert left_over(shelf) == set()


@pytest.mark.parametrize("side", [None, b"", b"<html>not found</html>" * 99, b"123", b"zzzzzzzz"])
def test_a_file_that_nothing_vouches_for_is_not_fetched(site: Site, shelf: Shelf, side: bytes | None) -> None:
    site.put(PATH, DATA)
    if side is not None:
        site.put("/tiny.hash", side)
    with pytest.raises(ModelError, match="nothing was found to check tiny by"):
        fetch(Published(DATA).entry(site.base, by="crc32"), shelf)
    assert not site.asked(PATH)


def test_neither_is_one_whose_publisher_gives_no_check_sum(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    with pytest.raises(ModelError, match="ffrt models import"):
        fetch(Published(DATA).entry(site.base, by="nothing"), shelf)


def test_a_page_instead_of_the_model_is_refused(site: Site, shelf: Shelf) -> None:
    page = b"<!DOCTYPE html><title>Please log in</title>"
    site.put(PATH, page)
    site.put("/tiny.hash", crc32(page).encode())
    with pytest.raises(ModelError, match="web page"):
        fetch(Published(page).entry(site.base, by="crc32"), shelf)
    assert left_over(shelf) == set()


def test_a_model_of_another_family_than_the_catalogue_says_is_refused(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA)
    with pytest.raises(ModelError, match=r"not of the family eight.*128"):
        fetch(Published(DATA).entry(site.base), shelf, registry=families(eight=SquareFamily(128)))
    assert left_over(shelf) == set()


def test_a_full_disk_is_noticed_before(site: Site, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put(PATH, DATA)
    shelf.folder.mkdir()
    usage = shutil.disk_usage(shelf.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=70_000))
    run = Run([], [])
    with pytest.raises(ModelError, match=r"MB are needed in .*FFRT_MODELS"):
        fetch(Published(DATA).entry(site.base), shelf, run)
    assert run.seen == []


def test_a_disk_that_fills_meanwhile_keeps_what_fits(site: Site, shelf: Shelf) -> None:
    """A limit on file sizes is refused by the kernel in the very call in which a full disk is."""
    site.put(PATH, DATA)
    entry = Published(DATA).entry(site.base)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, hard))
    try:
        with pytest.raises(ModelError, match="no space left"):
            fetch(entry, shelf)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert shelf.cards() == []
    kept = (shelf.folder / ".pull-tiny.part").read_bytes()
    assert DATA.startswith(kept)
    assert len(kept) > HALF // 2
    assert shelf.path(fetch(entry, shelf)).read_bytes() == DATA
    assert site.asked(PATH)[1].headers["range"] == f"bytes={len(kept)}-"


def test_nothing_bears_the_models_name_before_it_is_whole(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, breaks=[HALF])
    names: list[set[str]] = []
    registry = families(**EIGHT)

    def look(*_: object) -> None:
        names.append({path.name for path in shelf.folder.iterdir() if not path.name.startswith(".")})

    pull(Published(DATA).entry(site.base), shelf, registry, network=Network(wait=lambda _: look()), progress=look)
    assert len(names) > 2
    assert all(seen == set() for seen in names)


def test_two_at_once_do_not_write_into_one_part(site: Site, shelf: Shelf) -> None:
    site.put(PATH, DATA, hold_after=HALF)
    entry = Published(DATA).entry(site.base)
    begun = threading.Event()
    network = Network()
    arrived: list[Card] = []

    def first() -> None:
        arrived.append(pull(entry, shelf, families(**EIGHT), network=network, progress=lambda *_: begun.set()))

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(30)
    try:
        with pytest.raises(ModelError, match="another ffrt is pulling tiny"):
            fetch(entry, shelf)
    finally:
        site.release.set()
        thread.join()
    assert shelf.path(arrived[0]).read_bytes() == DATA


def test_the_size_is_asked_without_fetching(site: Site) -> None:
    site.put(PATH, DATA)
    assert size_of(Published(DATA).entry(site.base)) == len(DATA)
    assert not site.asked(PATH)
    assert size_of(Published(DATA, extra={"size": 5}).entry(site.base)) == 5
    site.files[PATH].head = False
    assert size_of(Published(DATA).entry(site.base)) is None
    assert size_of(Published(DATA, extra={"about_bytes": 7}).entry(site.base)) == 7
    site.put(PATH, DATA, claimed=10**15)
    assert size_of(Published(DATA, extra={"about_bytes": 7}).entry(site.base)) == 7

"""The RTMP writer's parts: AMF0, chunks, FLV tags."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rt.sinks import amf
from rt.sinks.rtmp import ChunkReader, FlvReader, chunks

texts = st.text(max_size=30)
plain = st.none() | st.booleans() | st.floats(allow_nan=False) | texts
names = st.text(min_size=1, max_size=10)
values = st.recursive(plain, lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=10)


@given(st.lists(values, max_size=5))
def test_amf_reads_what_it_wrote(written: list[Any]) -> None:
    assert amf.decode(amf.encode(*written)) == written


def test_amf_bytes_are_those_of_the_specification() -> None:
    assert amf.encode("a", 1, True, {"k": None}) == bytes.fromhex("02000161 003ff0000000000000 0101 0300016b05 000009")


@given(st.binary(max_size=40))
def test_amf_of_anything_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):  # the one refusal; any other error fails
        amf.decode(data)


@given(st.lists(st.tuples(st.integers(8, 20), st.binary(min_size=1, max_size=400)), max_size=6), st.integers(1, 50))
def test_messages_survive_being_cut_anywhere(messages: list[tuple[int, bytes]], step: int) -> None:
    """Messages of at most 128 bytes a chunk would be the reader's start; it is told of ours first."""
    stream = chunks(2, 1, 0, 0, (60_000).to_bytes(4, "big"))
    stream += b"".join(chunks(3, kind, 1, 20_000_000, body) for kind, body in messages)
    reader, seen = ChunkReader(), []
    for at in range(0, len(stream), step):
        seen += list(reader.feed(stream[at : at + step]))
    assert seen == messages


def test_long_message_takes_further_chunks_with_the_long_time_repeated() -> None:
    sent = chunks(4, 9, 1, 0x01000000, bytes(60_001))
    assert sent[:16] == bytes.fromhex("04 ffffff 00ea61 09 01000000 01000000")
    assert sent[16 + 60_000 :] == bytes.fromhex("c4 01000000 00")


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_flv_tags_survive_being_cut_anywhere(step: int) -> None:
    def tag(kind: int, time_ms: int, body: bytes) -> bytes:
        time = (time_ms & 0xFFFFFF).to_bytes(3, "big") + bytes([time_ms >> 24])
        size = len(body).to_bytes(3, "big")
        return bytes([kind]) + size + time + bytes(3) + body + (11 + len(body)).to_bytes(4, "big")

    tags = [(18, 0, b"meta"), (9, 33, b"picture" * 40), (8, 0x02000001, b"")]
    stream = b"FLV\1\5\0\0\0\x09" + bytes(4) + b"".join(tag(*each) for each in tags)
    reader, seen = FlvReader(), []
    for at in range(0, len(stream), step):
        seen += list(reader.feed(stream[at : at + step]))
    assert seen == tags

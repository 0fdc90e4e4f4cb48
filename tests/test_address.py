"""No secret of an address is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rt.address import shown

WORD = st.text("abcdefgh0123456789-_", min_size=6, max_size=20)


@given(scheme=st.sampled_from(["rtmp", "rtmps", "rtsp", "srt", "udp", "anything"]), user=WORD, password=WORD, key=WORD, token=WORD)
def test_keys_passwords_and_tokens_are_hidden(scheme: str, user: str, password: str, key: str, token: str) -> None:
    text = shown(f"{scheme}://{user}:{password}@HOST:1935/APP/{key}?token={token}")
    assert text == f"{scheme}://HOST:1935/APP/***?***"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("talk.mp4", "talk.mp4"),
        ("/dev/video0", "/dev/video0"),
        ("synthetic:size=320x180", "synthetic:size=320x180"),
        ("https://user:word@host/clips/talk.mp4?sig=abc", "https://host/clips/talk.mp4?***"),
        ("udp://239.0.0.1:1234", "udp://239.0.0.1:1234"),
        ("rtmp://host/app/", "rtmp://host/app/"),
    ],
)
def test_what_is_no_secret_stays(place: str, text: str) -> None:
    assert shown(place) == text

"""Addresses as they may be shown: stream keys, passwords and tokens are secrets."""

from __future__ import annotations

from urllib.parse import urlsplit

WITHOUT_KEY = ("http", "https", "file")
"""Schemes whose path names a file; anywhere else its last part may be a key."""


HIDDEN = "***"
"""Stands for what is not shown."""


def shown(place: str) -> str:
    """``place`` without user, password and query, and, where it may be a key, without the last part of its path.

    ``rtmp://host/app/***``; what is no address (a file, a camera) is shown as it is. Any thread.
    """
    if "://" not in place:
        return place
    how, colon, address = place.partition(":")  # nvdec:rtsp://…
    if "://" in address:
        return f"{how}{colon}{shown(address)}"
    parts = urlsplit(place)
    folder, _, last = parts.path.rpartition("/")
    hidden = last and parts.scheme.lower() not in WITHOUT_KEY
    path = f"{folder}/{HIDDEN}" if hidden else parts.path
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}{f'?{HIDDEN}' if parts.query else ''}"

"""Who may control ffrt: whoever can read the token's file, from this machine, and not through a web page."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from app.errors import ControlError, StoreError
from app.files import locked, read_text, write_atomically
from app.folders import data_folder

TOKEN_FILE = "control-token"
TOKEN_BYTES = 32

HOST = "127.0.0.1"
"""What is listened on: no other machine reaches it."""

LOOPBACK = (HOST, "localhost", "::1")

SECOND_NS = 1_000_000_000


def token(folder: Path | None = None) -> str:
    """The user's, made when first asked for, readable by nobody else; who deletes its file gets another. Raises ``ControlError``."""
    file = (folder or data_folder()) / TOKEN_FILE
    try:
        with locked(file):
            kept = (read_text(file) or "").strip()
            if not kept:
                kept = secrets.token_urlsafe(TOKEN_BYTES)
                write_atomically(file, kept.encode())
            elif os.name == "posix" and file.stat().st_mode & 0o077:
                raise ControlError(f"{file} can be read by others (mode {file.stat().st_mode & 0o777:o}); delete it, another is made")
    except (StoreError, OSError) as error:
        raise ControlError(str(error)) from error
    return kept


def refusal(headers: Mapping[str, str], port: int) -> str | None:
    """Why a request is foreign, or None. A page in a browser sends its Origin, and its own name as Host after DNS rebinding."""
    if not _is_ours(f"//{headers.get('Host', '')}", port):
        return f"the Host {headers.get('Host', '')[:80]!r} is not this machine's loopback address"
    origin = headers.get("Origin")
    if origin is not None and not (origin.startswith("http://") and _is_ours(origin, port)):
        return f"pages of {origin[:80]!r} may not control ffrt"
    return None


def has_token(headers: Mapping[str, str], wanted: str) -> bool:
    """In constant time."""
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), wanted.encode())


def _is_ours(address: str, port: int) -> bool:
    try:
        parts = urlsplit(address)
        return parts.hostname in LOOPBACK and (parts.port or 80) == port and parts.username is None and parts.path in ("", "/")
    except ValueError:
        return False


class RateLimit:
    """A bucket of tokens. One thread; time is an argument's."""

    def __init__(self, per_s: float, burst: int, now_ns: Callable[[], int]) -> None:
        self._per_s, self._burst, self._now_ns = per_s, burst, now_ns
        self._left = float(burst)
        self._at_ns = now_ns()

    def take(self) -> bool:
        """False where there were too many of late."""
        now_ns = self._now_ns()
        self._left = min(self._burst, self._left + (now_ns - self._at_ns) / SECOND_NS * self._per_s)
        self._at_ns = now_ns
        if self._left < 1:
            return False
        self._left -= 1
        return True

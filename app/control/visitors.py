"""Connections to the control interface: how many there may be, and how long one may say nothing."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

log = logging.getLogger(__name__)

VISITORS_MAX = 64
"""Connections at a time. One more takes the place of the one that has said nothing for longest."""

SILENT_S = 15.0
"""A connection is let go that has not had a whole request answered for so long, be it idle, or one that sends or takes too slowly."""

REST_S = 1.0
"""After the system gave no further connection (it has no file handle left)."""


@dataclass(slots=True)
class _Visitor:
    heard_s: float
    """When it came, or when its last request was answered."""
    attended: int = 0
    """Requests that are being answered; a WebSocket is one as long as it lasts."""


class Visitors:
    """Takes connections for an asyncio server. The loop's thread."""

    def __init__(self, made: Callable[[], asyncio.Protocol]) -> None:
        """``made``: the protocol of one connection."""
        self._made = made
        self._visitors: dict[asyncio.BaseTransport, _Visitor] = {}

    async def take(self, door: socket.socket) -> None:
        """Until it is cancelled. ``door`` listens, and does not block."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                visitor, _ = await loop.sock_accept(door)
                transport, _ = await loop.connect_accepted_socket(self._made, visitor)
            except OSError as error:  # it is gone already, or there are too many open files in the whole program
                log.warning("a connection to the control interface could not be taken: %s", error)
                await asyncio.sleep(REST_S)
                continue
            self._make_room()
            self._visitors[transport] = _Visitor(loop.time())

    @contextmanager
    def attending(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """While a request that came by ``transport``, from one who may, is answered."""
        visitor = None if transport is None else self._visitors.get(transport)
        if visitor is None:  # it is gone
            yield
            return
        visitor.attended += 1
        try:
            yield
        finally:
            visitor.attended -= 1
            visitor.heard_s = asyncio.get_running_loop().time()

    def dismiss_silent(self) -> None:
        """Lets those go that have been silent for too long."""
        now_s = asyncio.get_running_loop().time()
        for transport, visitor in tuple(self._visitors.items()):
            if transport.is_closing() or (not visitor.attended and now_s - visitor.heard_s > SILENT_S):
                self._dismiss(transport)

    def _make_room(self) -> None:
        for transport in [transport for transport in self._visitors if transport.is_closing()]:
            del self._visitors[transport]
        while len(self._visitors) >= VISITORS_MAX:
            self._dismiss(min(self._visitors, key=lambda one: (self._visitors[one].attended > 0, self._visitors[one].heard_s)))

    def _dismiss(self, transport: asyncio.BaseTransport) -> None:
        del self._visitors[transport]
        if isinstance(transport, asyncio.Transport):
            transport.abort()

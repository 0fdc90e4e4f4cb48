"""How a pull is called off, also while it waits for a server that says nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

from engines.errors import PullCancelled

if TYPE_CHECKING:
    import httpx


class Stop:
    """Calls off one pull. ``now`` is any thread's; the rest is the pull's own."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # guarded by _lock

    def now(self) -> None:
        """Returns at once. A connection that is being made is given up when it stands, or is refused."""
        self._asked.set()
        with self._lock:
            self._hang_up()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def check(self) -> None:
        """Raises ``PullCancelled`` once ``now`` was called."""
        if self.asked:
            raise PullCancelled("the pull was called off; what has arrived is kept, and the next one goes on from there")

    def wait(self, seconds: float) -> None:
        """As ``time.sleep``, and raises as ``check`` does."""
        self._asked.wait(seconds)
        self.check()

    def listen_in(self, answer: httpx.Response) -> None:
        """A hook for every answer: the connection it comes by is the one to hang up."""
        stream = answer.extensions.get("network_stream")
        with self._lock:
            self._socket = None if stream is None else stream.get_extra_info("socket")
            if self.asked:
                self._hang_up()

    def _hang_up(self) -> None:
        """Whoever reads from it is woken by its end. Closing it would not wake them."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

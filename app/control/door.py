"""Opens the control interface around a Studio, and says where it is. What it needs beyond the base install is loaded here, late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.errors import MissingError
from app.instance import announce_control, withdraw_control
from app.studio import Studio

if TYPE_CHECKING:
    from app.control.server import ControlServer


class Door:
    """Closed at first. One thread at a time."""

    def __init__(self, studio: Studio, *, show: Callable[[], None] | None = None, leave: Callable[[], None] | None = None) -> None:
        """``show`` and ``leave``: as ``ControlService`` has them."""
        self._studio, self._show, self._leave = studio, show, leave
        self._server: ControlServer | None = None

    def open(self, port: int) -> int:
        """The port that is listened on; 0 takes any. `ffrt ctl` finds it. Raises ``MissingError``, ``ControlError``, ``StoreError``."""
        try:
            from app.control.guard import token
            from app.control.server import ControlServer
            from app.control.service import ControlService
        except ImportError as error:
            raise MissingError(f"--control needs a package that is missing ({error.name}); run `pip install 'ffrt[control]'`") from None
        self.close()
        server = ControlServer(ControlService(self._studio, show=self._show, leave=self._leave), token(), port)
        try:
            server.start()
            announce_control(server.port)
        except BaseException:  # raised on; nothing listens that nobody finds
            server.close()
            raise
        self._server = server
        return server.port

    def close(self) -> None:
        """Waits for commands that are under way. May be called at any time."""
        if self._server is not None:
            withdraw_control()
            self._server.close()
            self._server = None

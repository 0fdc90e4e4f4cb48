"""Other programs that control the window's line: `--control`, or the switch on the page of the program."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal

from app.control.door import Door
from app.control.guard import HOST
from app.gui.worker import Worker, shown_error
from app.studio import Studio


class Outside(QObject):
    """Main thread; it is opened and closed behind: what it needs is loaded first, and a command under way is waited for."""

    told = Signal(str, str)
    """Where it listens, or an empty text; and why it does not though it was to."""
    show_wished = Signal()
    leave_wished = Signal()

    def __init__(self, studio: Studio, worker: Worker, announce: Callable[[int | None], None]) -> None:
        """``announce``: is told the port, or that there is none any more; on the worker's thread."""
        super().__init__()
        self._studio, self._worker, self._announce = studio, worker, announce
        self._door = Door(studio, show=self.show_wished.emit, leave=self.leave_wished.emit)

    def when_asked(self, *, show: Callable[[], None], leave: Callable[[], None]) -> None:
        """What becomes of such wishes, on the main thread."""
        self._show, self._leave = show, leave
        self.show_wished.connect(self._do_show, Qt.ConnectionType.QueuedConnection)
        self.leave_wished.connect(self._do_leave, Qt.ConnectionType.QueuedConnection)

    def open(self, port: int) -> None:
        def work() -> int:
            found = self._door.open(port)
            self._announce(found)
            return found

        self._worker.run(work, lambda found: self.told.emit(f"http://{HOST}:{found}", ""), self._refused)

    def close(self) -> None:
        def work() -> None:
            self._door.close()
            self._announce(None)

        self._worker.run(work, lambda _: self.told.emit("", ""), self._refused)

    def shut(self) -> None:
        """After the window, and its worker: whatever was begun from outside is waited for and ended."""
        self._door.close()
        self._studio.stop()

    def _refused(self, error: BaseException) -> None:
        self.told.emit("", shown_error(error))

    def _do_show(self) -> None:
        self._show()

    def _do_leave(self) -> None:
        self._leave()

"""What the window remembers from one start to the next: the last settings of each camera, its own size and page."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import QByteArray, QObject, QTimer

from app.errors import AppError
from app.gui.worker import Worker
from app.presets import Preset
from app.settings import InputSettings, RunSettings, Settings, SourceSettings
from app.state import State, StateFile
from rt.address import shown
from rt.options import Wear

log = logging.getLogger(__name__)

PAUSE_MS = 1000
"""A change is written once nothing has changed for so long."""


class Memory(QObject):
    """Main thread; files are written by a worker, each change as a whole, so a crash costs at most the last second."""

    def __init__(self, file: StateFile, state: State, worker: Worker) -> None:
        """``state``: what ``file`` held at the start."""
        super().__init__()
        self.state = state
        self._file = file
        self._worker = worker
        self._pending: list[Callable[[State], State]] = []
        self._settings: Settings | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.write)

    def note_settings(self, settings: Settings) -> None:
        """These are what is set now."""
        self._settings = settings
        self._timer.start()

    def note(self, change: Callable[[State], State]) -> None:
        """Any other change of the state."""
        self.state = change(self.state)
        self._pending.append(change)
        self._timer.start()

    def mode_of(self, spec: str) -> InputSettings | None:
        """How the camera ``spec`` was set when it was used last."""
        kept = self.state.cameras.get(spec)
        return None if kept is None else kept.input

    def write(self) -> None:
        """Now: also what was noted a moment ago. The worker does it in order."""
        self._timer.stop()
        changes, self._pending = self._pending, []
        if self._settings is not None:
            changes.append(_used(self._settings))
            self.state = changes[-1](self.state)
            self._settings = None
        if changes:
            self._worker.run(lambda: self._file.change(lambda state: _composed(changes, state)), lambda _: None, self._refused)

    @staticmethod
    def _refused(error: BaseException) -> None:
        """It is no reason to disturb a person: the next start is as the last one that could be written."""
        log.warning("the last state could not be kept: %s", error)


def restored(settings: Settings, state: State) -> Settings:
    """``settings`` as they were last: look, face and camera. Nothing is streamed or recorded that nobody asks for today."""
    kept = state.cameras.get(state.camera or "")
    if kept is None:
        return settings
    try:
        then = kept.model_copy(update={"output": None}).applied(settings, lambda name: name)
    except AppError:  # written by another version
        return settings
    source = _still_here(then.source)
    each = tuple(filter(lambda one: one.photos, map(_still_here, then.people.each)))
    output = settings.output
    if kept.output is not None:
        same = {name: getattr(kept.output, name) for name in ("virtual_camera", "bitrate_bps", "encoder")}
        output = output.model_copy(update=same)
    people = then.people.model_copy(update={"each": each})
    run = settings.run.model_copy(update={"devices": _devices_here(state), "gpu_memory_mb": state.gpu_memory_mb})
    return then.model_copy(update={"source": source, "people": people, "output": output, "run": run})


def _devices_here(state: State) -> tuple[str, ...]:
    """Those that worked last, without a card that was taken out."""
    usual = RunSettings().devices
    if state.devices in ((), usual):
        return usual
    from engines.device.kinds import problem

    try:
        return tuple(name for name in state.devices if not problem(name)) or usual
    except ValueError:  # written by another version
        return usual


def _still_here(source: SourceSettings) -> SourceSettings:
    return source.model_copy(update={"photos": tuple(photo for photo in source.photos if photo.is_file())})


def _used(settings: Settings) -> Callable[[State], State]:
    secret = shown(settings.input.spec) != settings.input.spec
    kept = Preset.of(_without_numbers(settings), source=True, people=True, input=not secret, output=True)
    if kept.output is not None:
        kept = kept.model_copy(update={"output": kept.output.model_copy(update={"record": None, "overwrite": False})})
    run = {"devices": settings.run.devices, "gpu_memory_mb": settings.run.gpu_memory_mb}
    return lambda state: state.used(shown(settings.input.spec), kept).model_copy(update=run)


def _without_numbers(settings: Settings) -> Settings:
    """Whoever comes first next time need not be who came first today: what was said of one person is said of nobody then. Those who
    were left as filmed but for one are swapped: else the one would be seen."""
    people = settings.people.model_copy(update={"named": ()})
    if people.others is Wear.LEAVE:
        people = people.model_copy(update={"others": Wear.SWAP})
    return settings.model_copy(update={"people": people})


def _composed(changes: list[Callable[[State], State]], state: State) -> State:
    for change in changes:
        state = change(state)
    return state


def to_text(data: QByteArray) -> str:
    return bytes(data.toBase64().data()).decode("ascii")


def from_text(text: str) -> QByteArray:
    return QByteArray.fromBase64(text.encode("ascii", "replace"))

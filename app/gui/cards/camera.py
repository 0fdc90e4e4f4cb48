"""Camera: which one, in which mode, what it granted, and what is wrong with its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLineEdit, QPushButton

from app.gui.cards.card import Bench, Card, changed, note, show_note
from app.gui.fields import Choice, Combo, fill, select
from app.gui.flow import Flow
from app.gui.live import LiveState, Pulse
from app.gui.outage import lost_text
from app.gui.told import told
from app.gui.words import tr
from app.gui.worker import shown_error
from app.settings import InputSettings, Settings
from engines.folders import written_path
from rt.address import HIDDEN, shown
from rt.capture.camera import CameraInfo, CameraMode, list_cameras
from rt.sinks.virtual_devices import virtual_devices

SYNTHETIC = "synthetic:size=1280x720,fps=30"

ELSEWHERE = "elsewhere"
"""The entry of the list for a file or an address."""


class CameraCard(Card):
    """Cameras are looked for behind; the first takes the place of the synthetic one where nobody asked for any."""

    def __init__(self, bench: Bench, *, choose: bool = False) -> None:
        """``choose``: the first camera that is found is taken."""
        super().__init__(tr("Camera"), bench)
        self._input = InputSettings()
        self._cameras: tuple[CameraInfo, ...] = ()
        self._choose_first = choose
        self.remembered: Callable[[str], InputSettings | None] = lambda spec: None
        """How a camera was set when it was used last."""
        self.camera, self.mode = Combo(), Combo()
        self.camera.setAccessibleName(tr("Camera"))
        self.camera.activated.connect(self._choose)
        self.mode.setAccessibleName(tr("Size and pace"))
        self.mode.activated.connect(self._choose_mode)
        self.again = QPushButton(tr("Look again"))
        self.again.clicked.connect(self.look)
        self.place = QLineEdit()
        self.place.setAccessibleName(tr("File or address"))
        self.place.setPlaceholderText(tr("File or address, as in rtsp://camera/live"))
        self.place.editingFinished.connect(self._enter)
        self.browse = QPushButton(tr("Choose a file…"))
        self.browse.clicked.connect(self._ask_for_file)
        self.granted, self.warning = note(), note("warn")
        self.loop = QCheckBox(tr("Start a file again at its end"))
        self.loop.clicked.connect(lambda: self.changed.emit(changed("input", loop=self.loop.isChecked())))
        for item in (self.camera, self.mode, self.place, self.loop, self.granted, self.warning):
            self.column.addWidget(item)
        self.column.addLayout(Flow(self.again, self.browse))
        self.look()

    def look(self) -> None:
        """For cameras that are there now."""
        self.bench.worker("devices").run(list_cameras, self._offer, lambda error: self.said.emit(shown_error(error)))

    def take(self, spec: str) -> None:
        """A camera, a file or an address that the person gave."""
        self._choose_first = False
        kept = self.remembered(spec)
        if kept is None:
            self.changed.emit(changed("input", spec=spec, width=None, height=None, fps=None, fourcc=None))
        else:
            self.changed.emit(lambda settings: settings.model_copy(update={"input": kept}))

    def show_settings(self, settings: Settings) -> None:
        self._input = settings.input
        self._show()

    def show_state(self, state: LiveState) -> None:
        if state is not LiveState.LIVE:
            show_note(self.granted, "")
            show_note(self.warning, "")

    def show_pulse(self, pulse: Pulse) -> None:
        granted = tr("Granted: {mode}").format(mode=pulse.source.get("granted") or pulse.video)
        asked = asked_text(pulse.source.get("asked") or {})
        show_note(self.granted, "\n".join([tr("Asked: {mode}").format(mode=asked), granted] if asked else [granted]))
        lost = pulse.source.get("lost")
        show_note(self.warning, lost_text(lost) if lost else told(pulse.source.get("warning", "")))

    def _offer(self, cameras: list[CameraInfo]) -> None:
        self._cameras = tuple(cameras)
        first = next((camera for camera in cameras if camera.path not in self._not_of_glass()), None)
        if first is not None and self._choose_first:
            self.take(first.spec)
        self._show()

    @staticmethod
    def _not_of_glass() -> set[str]:
        """What other programs send: taken where it is chosen, and not by itself."""
        return {device.place for device in virtual_devices()}

    def _show(self) -> None:
        """A camera that is asked for by number or name is shown as that camera."""
        mine = self._mine()
        spec = self._input.spec
        known = [Choice(camera.spec, camera.name) for camera in self._cameras]
        value = mine.spec if mine else spec if spec.startswith("synthetic:") else ELSEWHERE
        synthetic = value if value.startswith("synthetic:") else SYNTHETIC
        last = [Choice(synthetic, tr("Synthetic camera")), Choice(ELSEWHERE, tr("File or address"))]
        if not mine and value == ELSEWHERE and spec.startswith("/dev/"):
            name = Path(spec).name if spec.startswith("/dev/v4l/") else spec
            known.append(Choice(spec, tr("{camera} (not plugged in)").format(camera=name)))
            value = spec
        fill(self.camera, [*known, *last], value)
        elsewhere = value == ELSEWHERE
        self.place.setVisible(elsewhere)
        self.browse.setVisible(elsewhere)
        self.loop.setVisible(elsewhere)
        self.loop.setChecked(self._input.loop)
        if not self.place.hasFocus():
            with QSignalBlocker(self.place):
                self.place.setText(shown(spec) if elsewhere else "")
        self._show_modes(mine)

    def _show_modes(self, mine: CameraInfo | None) -> None:
        modes = [] if mine is None else sorted(set(mine.modes), key=lambda m: (-m.width * m.height, -m.fps, m.fourcc))
        asked = self._input
        wish = (asked.width, asked.height, asked.fps, asked.fourcc)
        choices = [Choice((None, None, None, None), tr("1280×720, or what is nearest"))]
        choices += [Choice((mode.width, mode.height, mode.fps, mode.fourcc), mode_text(mode)) for mode in modes]
        fill(self.mode, choices, (None, None, None, None))
        if any(wish):
            select(self.mode, wish)
            size = f"{asked.width or '…'}×{asked.height or '…'}"
            self.mode.setItemText(self.mode.currentIndex(), self._known_text(modes, wish) or f"{size}, {asked.fps or '…'} fps")
        self.mode.setVisible(mine is not None or any(wish))

    @staticmethod
    def _known_text(modes: list[CameraMode], wish: tuple[object, ...]) -> str:
        found = (mode for mode in modes if (mode.width, mode.height, mode.fps, mode.fourcc) == wish)
        return next((mode_text(mode) for mode in found), "")

    def _mine(self) -> CameraInfo | None:
        spec = self._input.spec
        wanted = spec.removeprefix("camera:")
        for camera in self._cameras:
            if wanted in (camera.path, camera.link, str(camera.index)) or wanted.casefold() == camera.name.casefold():
                return camera
        return None

    def _choose(self, at: int) -> None:
        spec = self.camera.itemData(at)
        if spec == ELSEWHERE:
            self.place.show()
            self.browse.show()
            self.place.setFocus()
        else:
            self.take(spec)

    def _choose_mode(self, at: int) -> None:
        width, height, fps, fourcc = self.mode.itemData(at)
        self.changed.emit(changed("input", width=width, height=height, fps=fps, fourcc=fourcc))

    def _enter(self) -> None:
        spec = typed(self.place.text())
        if not spec or spec == shown(self._input.spec):
            return
        if HIDDEN in spec:
            self.said.emit(tr("The hidden part of the address is not known any more: type the whole address."))
        else:
            self.take(spec)

    def _ask_for_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, tr("Choose a video"))
        if name:
            self.take(name)


def typed(text: str) -> str:
    """What is meant by what was typed or pasted: file managers quote paths, and ``~`` is the home folder."""
    spec = text.strip()
    if len(spec) > 1 and spec[0] == spec[-1] and spec[0] in "'\"":
        spec = spec[1:-1]
    return str(written_path(spec)) if spec.startswith("~") else spec


def mode_text(mode: CameraMode) -> str:
    return f"{mode.width}×{mode.height}, {mode.fps:g} fps, {mode.fourcc}"


def asked_text(asked: Mapping[str, Any]) -> str:
    """``asked``: as cameras describe it, any of width, height, fps and fourcc."""
    size = f"{asked.get('width', '…')}×{asked.get('height', '…')}" if {"width", "height"} & asked.keys() else ""
    fps = f"{asked['fps']:g} fps" if "fps" in asked else ""
    return ", ".join(filter(None, (size, fps, asked.get("fourcc", ""))))

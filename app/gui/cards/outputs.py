"""Outputs: where the pictures go, each with its own light."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QStandardPaths, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QFileDialog, QFrame, QLabel, QLineEdit, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.addresses import Address, AddressBook
from app.gui.cards.card import Bench, Card, changed, note, row, show_note
from app.gui.fields import Choice, ChoiceField, Combo, fill
from app.gui.flow import Flow
from app.gui.icons import icon
from app.gui.live import Change, Light, LiveState, Pulse
from app.gui.told import told
from app.gui.words import tr
from app.gui.worker import shown_error
from app.outputs import OutputKind
from app.settings import OutputSettings, Settings
from rt.address import shown
from rt.sinks.runner import SinkState

if TYPE_CHECKING:
    from app.doctor import Finding
    from rt.sinks.virtual_devices import VirtualDevice


COMMAND = re.compile(r"`([^`]+)`")
"""What is to be typed stands so in the words of the mend."""

BITRATES = (1_500_000, 2_500_000, 4_000_000, 6_000_000, 8_000_000, 12_000_000)
"""That servers ask for; any other is the command line's."""


class OutputRow(QFrame):
    """A switch, a light, and words where something is to be said."""

    def __init__(self, bench: Bench, title: str, switched: Callable[[bool], None]) -> None:
        super().__init__()
        self.setObjectName("row")
        self._theme = bench.theme
        self.title = title
        self.switch = QCheckBox(title)
        self.switch.setAccessibleName(title)
        self.switch.clicked.connect(lambda on: switched(on))
        self.light = QLabel()
        self.light.setObjectName("light")
        self.words = note()
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(4)
        self.head = row(self.switch, 1, self.light)
        self.column.addLayout(self.head)
        self.column.addWidget(self.words)
        self.show_light(None)

    def show_light(self, light: Light | None) -> None:
        colour, words = self._theme().line, ""
        if light is not None:
            colours = {SinkState.ON: self._theme().good, SinkState.FAILED: self._theme().bad, SinkState.CLOSED: self._theme().line}
            colour, words = colours.get(light.state, self._theme().warn), light_text(light)
        self.light.setText(f"<span style='color:{colour};font-size:16px'>●</span>")
        self.light.setAccessibleName(f"{self.title}: {words or tr('Off')}")
        self.light.setToolTip(words)
        show_note(self.words, "" if light is None or light.state is SinkState.ON else words)


class OutputsCard(Card):
    """Virtual camera, recording, a picture of the moment."""

    snapshot_wished = Signal()

    def __init__(self, bench: Bench, folder: Callable[[], Path] | None = None) -> None:
        """``folder``: where recordings go; the person's folder of videos otherwise."""
        super().__init__(tr("Outputs"), bench)
        self._folder = folder or videos
        self._output = OutputSettings()
        self.virtual_camera = OutputRow(bench, tr("Virtual camera"), self._switch_camera)
        self.record = OutputRow(bench, tr("Record"), self._switch_record)
        self.device = Combo()
        self.device.setAccessibleName(tr("Device of the virtual camera"))
        self.device.activated.connect(self._choose_device)
        self._device = ""  # that was chosen last, an empty text for any
        self._devices: tuple[VirtualDevice, ...] = ()
        self.file = note()
        self.driver, self.mend = note(), note()
        self.copy = QPushButton(tr("Copy the command"))
        self.copy.clicked.connect(self._copy)
        self.again = QPushButton(tr("Look again"))
        self.again.clicked.connect(self.look)
        self.mending = QWidget()
        column = QVBoxLayout(self.mending)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.mend)
        column.addLayout(Flow(self.copy, self.again))
        self._command = ""
        self.column.addWidget(self.virtual_camera)
        self.column.addWidget(self.device)
        self.column.addWidget(self.driver)
        self.column.addWidget(self.mending)
        self.column.addWidget(self.record)
        self.column.addWidget(self.file)
        self.elsewhere = QPushButton(tr("Record to…"))
        self.elsewhere.clicked.connect(self._ask_for_file)
        self.snapshot = QPushButton(tr("Snapshot"))
        self.snapshot.setToolTip(tr("Keeps the next picture as a file. Ctrl+S"))
        self.snapshot.clicked.connect(self.snapshot_wished)
        self.column.addLayout(Flow(self.elsewhere, self.snapshot))
        self.look()

    def look(self) -> None:
        """For the driver of the virtual camera, behind."""

        def look() -> tuple[Finding, tuple[VirtualDevice, ...]]:
            from app.doctor import virtual_camera
            from rt.sinks.virtual_devices import virtual_devices

            return virtual_camera(), virtual_devices()

        def failed(error: BaseException) -> None:
            show_note(self.driver, shown_error(error))

        self.bench.worker("devices").run(look, lambda found: self.show_driver(*found), failed)

    def show_driver(self, finding: Finding, devices: Sequence[VirtualDevice] = ()) -> None:
        """What there is, and where nothing is, how that is mended."""
        self._devices = tuple(devices)
        self._show_devices()
        missing = str(finding.state) != "ok"
        self.driver.setObjectName("warn" if missing else "muted")
        self.driver.style().polish(self.driver)
        show_note(self.driver, tr("Driver: {text}").format(text=told(finding.what)))
        show_note(self.mend, told(finding.mend))
        self._command = " && ".join(COMMAND.findall(finding.mend))
        self.mending.setVisible(bool(finding.mend))
        self.copy.setVisible(bool(self._command))
        self.again.setVisible(missing)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._command)

    def show_settings(self, settings: Settings) -> None:
        self._output = settings.output
        self.virtual_camera.switch.setChecked(settings.output.virtual_camera is not None)
        if settings.output.virtual_camera is not None:
            self._device = settings.output.virtual_camera
        self._show_devices()
        self.record.switch.setChecked(settings.output.record is not None)
        show_note(self.file, str(settings.output.record or ""))

    def show_state(self, state: LiveState) -> None:
        live = state is LiveState.LIVE
        self.snapshot.setEnabled(live)
        if not live:
            for line in (self.virtual_camera, self.record):
                line.show_light(None)

    def show_pulse(self, pulse: Pulse) -> None:
        by_kind = {output.kind: light for output, light in pulse.lights.items()}
        self.virtual_camera.show_light(by_kind.get(OutputKind.VIRTUAL_CAMERA))
        self.record.show_light(by_kind.get(OutputKind.RECORD))
        show_note(self.file, pulse.recording or str(self._output.record or ""))

    def _show_devices(self) -> None:
        """Where there is a choice."""
        choices = [Choice("", tr("The first one free")), *(Choice(one.place, one.title) for one in self._devices)]
        if self._device not in {choice.value for choice in choices}:
            choices.append(Choice(self._device, tr("{device} (not there)").format(device=self._device)))
        fill(self.device, choices, self._device)
        self.device.setVisible(len(choices) > 2 or bool(self._device))

    def _choose_device(self, at: int) -> None:
        """It is what the switch means from now on; where that is on, at once."""
        self._device = self.device.itemData(at)
        if self._output.virtual_camera is not None:
            self._switch_camera(True)

    def _switch_camera(self, on: bool) -> None:
        self.changed.emit(changed("output", virtual_camera=self._device if on else None))

    def _switch_record(self, on: bool) -> None:
        self._record_to(new_recording(self._folder()) if on else None)

    def _ask_for_file(self) -> None:
        start = str(new_recording(self._folder()))
        name, _ = QFileDialog.getSaveFileName(self, tr("Record to"), start, "MP4 (*.mp4);;Matroska (*.mkv);;MPEG-TS (*.ts)")
        if name:
            self._record_to(Path(name), overwrite=True)  # the dialogue has asked

    def _record_to(self, path: Path | None, *, overwrite: bool = False) -> None:
        self.changed.emit(changed("output", record=path, overwrite=overwrite))


@dataclass(frozen=True, slots=True)
class _Place:
    """A row of the streams."""

    title: str
    shown: str
    """The address without its key."""
    url: str | None
    """The whole address; None while only the keyring knows it."""
    in_book: bool


class StreamsCard(Card):
    """Addresses to stream to: those of the address book, whose keys lie in the system's keyring, and those of the command line."""

    def __init__(self, bench: Bench, book: AddressBook | None = None) -> None:
        super().__init__(tr("Streams"), bench)
        self._book = book or AddressBook()
        self._output = OutputSettings()
        self._entries: tuple[Address, ...] = ()
        self._urls: dict[str, str] = {}  # of entries that were switched on here: name → whole address
        self._places: tuple[_Place, ...] = ()
        self._rows: list[OutputRow] = []  # one for each of _places
        self._lights: dict[str, Light] = {}  # by whole address
        self._lines = QVBoxLayout()
        self._lines.setSpacing(10)
        self.column.addLayout(self._lines)
        self.url, self.name = QLineEdit(), QLineEdit()
        self.url.setPlaceholderText("rtmp://server/app/key")
        self.reveal = QToolButton()
        self.reveal.setObjectName("quiet")
        self.reveal.setIcon(icon("eye", bench.theme().muted, bench.theme().accent, side=18))
        self.reveal.setAccessibleName(tr("Show what is typed"))
        self.reveal.setToolTip(tr("Show what is typed"))
        self.reveal.setCheckable(True)
        self.reveal.toggled.connect(self._show_typed)
        self._show_typed(False)  # whoever streams the screen would stream the key
        self.url.setAccessibleName(tr("Address to stream to"))
        self.name.setPlaceholderText(tr("Name, to keep it"))
        self.name.setAccessibleName(tr("Name, to keep it"))
        self.add = QPushButton(tr("Add"))
        self.add.clicked.connect(self._add)
        self.url.returnPressed.connect(self._add)
        self.name.returnPressed.connect(self._add)
        self.hint = note("warn")
        self.bitrate = ChoiceField(tr("Bitrate of streams and recordings"), bench.theme)
        rates = [Choice(rate, f"{rate / 1e6:g} Mbit/s") for rate in BITRATES]
        self.bitrate.offer([Choice(None, tr("By size and pace")), *rates])
        self.bitrate.wished.connect(lambda rate: self.changed.emit(changed("output", bitrate_bps=rate)))
        self.column.addLayout(row(self.url, self.reveal))
        self.column.addLayout(row(self.name, self.add))
        self.column.addWidget(self.hint)
        self.column.addWidget(self.bitrate)
        self._read()

    def show_settings(self, settings: Settings) -> None:
        self._output = settings.output
        self.bitrate.show_value(settings.output.bitrate_bps, None)
        self._show()

    def show_state(self, state: LiveState) -> None:
        if state is not LiveState.LIVE:
            self._lights = {}
            self._show_lights()

    def show_pulse(self, pulse: Pulse) -> None:
        self._lights = {output.place: light for output, light in pulse.lights.items() if output.kind is OutputKind.STREAM}
        self._show_lights()

    def _show_lights(self) -> None:
        for place, line in zip(self._places, self._rows, strict=True):
            line.show_light(self._lights.get(place.url or ""))

    def _read(self) -> None:
        self.bench.worker("addresses").run(self._book.entries, self._take_entries, self._refuse)

    def _take_entries(self, entries: tuple[Address, ...]) -> None:
        self._entries = entries
        self._show()

    def _show(self) -> None:
        places = self._placed()
        if [place.title for place in places] != [place.title for place in self._places]:
            self._make_rows(places)
        self._places = places
        for place, line in zip(places, self._rows, strict=True):
            with QSignalBlocker(line.switch):
                line.switch.setChecked(place.url in self._output.streams)
        self._show_lights()

    def _placed(self) -> tuple[_Place, ...]:
        """A row an entry of the book, and one for every other address that is streamed to."""
        free = [url for url in self._output.streams if url not in self._urls.values()]
        places = []
        for entry in self._entries:
            url = self._urls.get(entry.name) or next((url for url in free if shown(url) == entry.shown), None)
            free = [other for other in free if other != url]
            places.append(_Place(entry.name, entry.shown, url, in_book=True))
        return (*places, *(_Place(shown(url), shown(url), url, in_book=False) for url in free))

    def _make_rows(self, places: tuple[_Place, ...]) -> None:
        for line in self._rows:
            line.deleteLater()
        self._rows = []
        for number, place in enumerate(places):
            line = OutputRow(self.bench, place.title, partial(self._switch, number))
            line.switch.setToolTip(place.shown)
            forget = QToolButton()
            forget.setObjectName("quiet")
            forget.setText("✕")
            forget.setAccessibleName(tr("Forget {name}").format(name=place.title))
            forget.setToolTip(forget.accessibleName())
            forget.clicked.connect(partial(self._forget, number))
            line.head.addWidget(forget)
            self._rows.append(line)
            self._lines.addWidget(line)

    def _switch(self, number: int, on: bool) -> None:
        place = self._places[number]
        if not on:
            self.changed.emit(_without(place.url))
        elif place.url is not None:
            self.changed.emit(_with(place.url))
        else:
            self.bench.worker("addresses").run(partial(self._book.url, place.title), partial(self._stream_to, place.title), self._refuse)

    def _stream_to(self, name: str, url: str) -> None:
        self._urls[name] = url
        self.changed.emit(_with(url))

    def _add(self) -> None:
        url, name = self.url.text().strip(), self.name.text().strip()
        if not url:
            return
        if name:
            self.bench.worker("addresses").run(partial(self._book.put, name, url), partial(self._added, url), self._refuse)
        else:
            self._added(url)

    def _show_typed(self, on: bool) -> None:
        self.url.setEchoMode(QLineEdit.EchoMode.Normal if on else QLineEdit.EchoMode.Password)

    def _added(self, url: str, entry: Address | None = None) -> None:
        show_note(self.hint, "")
        self.reveal.setChecked(False)
        self.url.clear()
        self.name.clear()
        if entry is not None:
            self._urls[entry.name] = url
            self._read()
        self.changed.emit(_with(url))

    def _forget(self, number: int, _checked: bool = False) -> None:
        place = self._places[number]
        self.changed.emit(_without(place.url))
        if place.in_book:
            self._urls.pop(place.title, None)
            self.bench.worker("addresses").run(partial(self._book.remove, place.title), lambda _: self._read(), self._refuse)

    def _refuse(self, error: BaseException) -> None:
        show_note(self.hint, told(shown_error(error)))
        self._show()


def _with(url: str) -> Change:
    def change(settings: Settings) -> Settings:
        others = tuple(other for other in settings.output.streams if other != url)
        return changed("output", streams=(*others, url))(settings)

    return change


def _without(url: str | None) -> Change:
    def change(settings: Settings) -> Settings:
        return changed("output", streams=tuple(other for other in settings.output.streams if other != url))(settings)

    return change


def light_text(light: Light) -> str:
    """How an output fares, in words."""
    if light.state is SinkState.RETRYING:
        return tr("Reconnecting in {seconds} s: {reason}").format(seconds=light.retry_in_s or 0, reason=told(light.error))
    if light.state is SinkState.FAILED:
        return tr("Stopped: {reason}").format(reason=told(light.error))
    return {SinkState.ON: tr("On"), SinkState.OPENING: tr("Opening…")}.get(light.state, tr("Off"))


def videos() -> Path:
    """Where this person's films lie; the home folder where the system names none that is there."""
    place = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.MoviesLocation) or Path.home())
    return place if place.is_dir() else Path.home()


def new_recording(folder: Path) -> Path:
    return folder / f"ffrt-{datetime.now():%Y%m%d-%H%M%S}.mp4"

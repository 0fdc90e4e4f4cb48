"""The main window: pages of cards on the left, the picture and its numbers on the right, one button to go live.

It holds one Settings value. A card says how it is to change; the window applies that, shows the result on every card, and gives the
change to the line. No settings are ever read from a widget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QCursor, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.diagnostics import diagnostics
from app.documents import first_problem
from app.gallery import Gallery
from app.gui.cards.camera import CameraCard
from app.gui.cards.card import Bench, row
from app.gui.cards.devices import DevicesCard, EncoderCard
from app.gui.cards.face import FaceCard
from app.gui.cards.framing import FramingCard
from app.gui.cards.hotkeys import HotkeysCard
from app.gui.cards.look import LookCard, look_cards
from app.gui.cards.numbers import numbers_cards
from app.gui.cards.outputs import OutputsCard, StreamsCard
from app.gui.cards.part import PartCard
from app.gui.cards.presets import PresetsCard
from app.gui.cards.program import HelpCard, ProgramCard
from app.gui.comparing import Comparing
from app.gui.flow import Flow
from app.gui.icons import icon
from app.gui.intake import Intake
from app.gui.jobs_panel import JobsPanel
from app.gui.live import Change, LiveControl, LiveState, Pulse
from app.gui.memory import Memory, from_text, to_text
from app.gui.notice import Notice
from app.gui.numbers import NumbersBar
from app.gui.outage import OutageTeller
from app.gui.own_faces import OwnFaces
from app.gui.pages import Pages
from app.gui.people import PeopleStrip
from app.gui.preview import Preview
from app.gui.snapshot import new_snapshot, pictures, save_picture, show_folder
from app.gui.theme import Theme
from app.gui.trouble import TroublePage
from app.gui.words import tr
from app.gui.worker import shown_error
from app.history import History
from app.jobs import Job
from app.offers import parts_of
from app.settings import LookSettings, PeopleSettings, Settings, SourceSettings
from app.state import State, StateFile
from engines.family import Kind
from rt.clock import MonotonicClock
from rt.frame import TrackedFace
from rt.sinks.preview import Picture, PreviewSink

log = logging.getLogger(__name__)


class Worn(NamedTuple):
    """What can be undone: who wears what, and how."""

    source: SourceSettings
    people: PeopleSettings
    look: LookSettings

    @classmethod
    def of(cls, settings: Settings) -> Worn:
        return cls(settings.source, settings.people, settings.look)


class Window(QWidget):
    """Main thread."""

    remembered = Signal(object)
    """The ``State``, after every change of it that a person made on a page."""
    control_wished = Signal(bool)
    """Other programs may control ffrt, or may not any more."""

    def __init__(
        self,
        settings: Settings,
        theme: Theme,
        *,
        gallery: Gallery | None = None,
        choose_camera: bool = False,
        memory: tuple[StateFile, State] | None = None,
    ) -> None:
        """``choose_camera``: nobody asked for an input, so the first real camera that is found takes its place.

        ``memory``: where the window keeps what it remembers, and what was there at the start; it remembers nothing otherwise.
        """
        super().__init__()
        self.setObjectName("page")
        self.setWindowTitle("ffrt")
        self.setAcceptDrops(True)
        self.settings = settings
        self._theme = theme
        self.state = LiveState.IDLE
        self._history: History[Worn] = History(Worn.of(settings))
        self._clock = MonotonicClock()
        sink = PreviewSink()
        self.control = LiveControl(settings, sink)
        self.control.state_changed.connect(self._become)
        self.control.settled.connect(self._settle)
        self.control.failed.connect(self.say)
        self.control.ended.connect(self.say)
        self.control.pulsed.connect(self._show_pulse)
        self.jobs = JobsPanel()
        self._opening: Job | None = None
        self.gallery = gallery or Gallery()
        self.bench = Bench(lambda: self._theme, self.jobs.jobs)
        self._kept = State() if memory is None else memory[1]
        self.memory = None if memory is None else Memory(*memory, self.bench.worker("state"))
        self.message = Notice()
        self.preview = Preview(sink, lambda: self._theme)
        self.preview.shown.connect(self._note_age)
        self.preview.face_picked.connect(self._open_menu_of)
        self.own_faces = OwnFaces(lambda: self.bench.worker("models"))
        self.own_faces.learned.connect(self._show_settings)
        self._told_control: tuple[str, str] | None = None
        self._said_bare = ""
        self._trouble: TroublePage | None = None
        self._frame = QVBoxLayout(self)
        self._frame.setContentsMargins(0, 0, 0, 0)
        self.contents = QWidget()
        self._furnish(choose_camera=choose_camera)
        self._restore_layout(self._kept)

    def _furnish(self, *, choose_camera: bool = False) -> None:
        """Makes all that has words or icons on it, in the language and the colours of now, and shows on it how things are."""
        self.contents = QWidget(self)
        self._frame.addWidget(self.contents)
        self.numbers = NumbersBar(lambda: self._theme)
        self.face = FaceCard(self.bench, self.gallery)
        self.face.offered.connect(self.message.say)
        self.people = PeopleStrip(self.face.offered_faces)
        self.people.changed.connect(self.apply)
        self.people.told.connect(self.control.tell_person)
        recognisers = partial(parts_of, Kind.IDENTITY)
        self.bench.worker("models").run(recognisers, self.people.offer_recognisers, lambda error: self.say(shown_error(error)))
        self.camera = CameraCard(self.bench, choose=choose_camera)
        if self.memory is not None:
            self.camera.remembered = self.memory.mode_of
        self.outage = OutageTeller(self.message, lambda: self.pages.open_named("camera"), self.camera.look)
        self.framing = FramingCard(self.bench)
        self.outputs, self.streams = OutputsCard(self.bench), StreamsCard(self.bench)
        self.devices, self.encoder = DevicesCard(self.bench), EncoderCard(self.bench)
        self.outputs.snapshot_wished.connect(self.take_snapshot)
        self.presets, self.program = PresetsCard(self.bench, gallery=self.gallery), ProgramCard(self.bench, self._kept)
        self.presets.offered.connect(self.message.say)
        self.presets.chosen.connect(lambda name: self._remember(lambda state: state.model_copy(update={"preset": name})))
        self.program.state_wished.connect(self._remember)
        self.program.control_wished.connect(self.control_wished)
        if self._told_control is not None:
            self.program.show_control(*self._told_control)
        self.hotkeys = HotkeysCard(self.bench, self._kept)
        self.hotkeys.state_wished.connect(self._remember)
        self.hotkeys.pressed.connect(self._press, Qt.ConnectionType.QueuedConnection)
        self.comparing = Comparing(self.preview, self.control.studio, lambda: self.bench.worker("compare"), self.say)
        self.comparing.wear = lambda side: self.apply(side.change)
        self.presets.compare_wished.connect(lambda left, right: self.comparing.begin(left, right, self.settings))
        self.intake = Intake(self.face, self.camera, self.message)
        self.truth = numbers_cards(self.bench)
        self.pages = Pages(lambda: self._theme, self.contents)
        self._lay_out()
        self._show_settings()
        self._become(self.state)

    def furnish_anew(self, theme: Theme) -> None:
        """In another language, or in other colours. The line goes on, and so does what is under way."""
        page, before, said = self.pages.current, self.contents, self.message.text()
        field = next((name for name in ("language", "theme") if getattr(self.program, name).hasFocus()), None)
        was_bare = bool(said) and said == self._said_bare
        self._theme = theme
        if self.preview.isFullScreen():  # a window of its own then
            self.preview.toggle_full_screen()
        self.comparing.end()
        for card in self.cards:
            card.shut()
        self._furnish()
        self.pages.open_named(page)
        for widget in (self.message, self.preview, self.jobs):
            widget.retell()
        if was_bare:
            self._warn_bare()
        if self._trouble is not None and not self._trouble.isVisible():
            self._trouble = None
        self._frame.removeWidget(before)
        before.hide()
        self.contents.show()
        if field is not None:
            QTimer.singleShot(0, getattr(self.program, field).setFocus)  # once the old one is gone, which passes it on
        self.bench.when_idle(before.deleteLater)  # what is under way is handed to it

    # --- what a person does ---

    def apply(self, change: Change, drag: str | None = None) -> None:
        """Takes over a wish; ``drag``: the control that is being dragged, so that it is one step to undo."""
        try:
            self.settings = change(self.settings)
        except ValidationError as problem:
            self.say(first_problem(problem))
            self._show_settings()
            return
        self._history.push(Worn.of(self.settings), drag=drag)
        self._show_settings()
        self.control.apply(change)

    def undo(self) -> None:
        self._return_to(self._history.undo())

    def redo(self) -> None:
        self._return_to(self._history.redo())

    def toggle_live(self) -> None:
        if self.state is not LiveState.IDLE:
            self.control.go(False)
            return
        if self.has_face:
            self.say("")
        else:
            self._warn_bare()
        self.control.go(True)

    def take_snapshot(self) -> None:
        """The next picture as the outputs get it, into a file."""
        place = new_snapshot(pictures())

        def take() -> Path:
            return save_picture(self.control.studio.snapshot(), place)

        def taken(path: Path) -> None:
            self.message.say(tr("Kept as {file}").format(file=path), tr("Show the folder"), partial(show_folder, path.parent))

        self.bench.worker("snapshot").run(take, taken, lambda error: self.say(shown_error(error)))

    def choose_photo(self, path: Path) -> None:
        """Adds it to the gallery and wears it, once a face was found in it."""
        self.face.add_photos([path])

    @property
    def photo(self) -> Path | None:
        """The first photo of the face that is worn."""
        return next(iter(self.settings.source.photos), None)

    @property
    def has_face(self) -> bool:
        """Whether somebody who is swapped wears anything: a face was chosen, or the swapper brings one."""
        return bool(self.settings.source.photos or self.settings.people.sources) or self.own_faces.bring_one(self.settings.look)

    def say(self, text: str) -> None:
        self.message.say(text)

    def _warn_bare(self) -> None:
        self._said_bare = tr("No face is chosen: the picture passes as it is, with the face that is filmed.")
        self.say(self._said_bare)

    def tell_control(self, address: str, problem: str) -> None:
        """Where other programs reach ffrt is shown on the program's page; that they cannot is said at once."""
        self._told_control = (address, problem)
        self.program.show_control(address, problem)
        if problem:
            self.say(problem)

    def tell_trouble(self, error: BaseException) -> None:
        """Something that nobody expected: a page with what can be passed on. Whatever runs goes on."""
        self._trouble = self._trouble or TroublePage(self, lambda error: diagnostics(self.settings, error))
        self._trouble.tell(error, self.state is LiveState.LIVE)

    # --- layout ---

    def _lay_out(self) -> None:
        looks = look_cards(self.bench)
        self.pages.add("face", tr("Face"), [self.face])
        self.pages.add("camera", tr("Camera"), [self.camera, self.framing])
        self.pages.add("outputs", tr("Outputs"), [self.outputs, self.streams, self.encoder])
        self.pages.add("look", tr("Look"), looks)
        self.pages.add("numbers", tr("Numbers"), self.truth)
        self.pages.add("presets", tr("Presets"), [self.presets])
        keys = HelpCard(self.bench, pages=self.pages.count + 1)
        self.pages.add("program", tr("Program"), [self.program, self.devices, self.hotkeys, keys])
        self.cards = self.pages.cards
        for card in self.cards:
            card.changed.connect(self.apply)
            card.said.connect(self.say)
            if isinstance(card, LookCard):
                card.offered.connect(self.message.say)
            if isinstance(card, PartCard):
                card.dragged.connect(self.apply)
                card.settled.connect(self._history.settle)
        self.live_button = QPushButton()
        self.live_button.setObjectName("live")
        self.live_button.clicked.connect(self.toggle_live)
        self.pages.foot.addWidget(self.jobs)
        self.pages.foot.addWidget(self.live_button)
        stage = QVBoxLayout()
        stage.setSpacing(12)
        stage.addWidget(self.message)
        stage.addWidget(self.preview, 1)
        stage.addWidget(self.comparing.bar)
        stage.addWidget(self.people)
        tools = row(*self._tools())
        tools.setSpacing(0)
        below = row(self._view_buttons(), tools)
        below.setStretch(0, 1)
        stage.addLayout(below)
        stage.addWidget(self.numbers)
        whole = QHBoxLayout(self.contents)
        whole.setContentsMargins(12, 20, 20, 20)
        whole.setSpacing(20)
        whole.addWidget(self.pages)
        whole.addLayout(stage, 1)
        self.people.after = self.preview
        self.setTabOrder(self.preview, self.people.more)
        self.setTabOrder(self.people.more, self.people.all)
        self.setTabOrder(self.people.all, self.view["mirrored"])
        self._add_shortcuts()

    def _add_shortcuts(self) -> None:
        QShortcut(QKeySequence.StandardKey.Paste, self.contents, self._paste)
        QShortcut(QKeySequence.StandardKey.Undo, self.contents, self.undo)
        QShortcut(QKeySequence("Ctrl+Shift+Z"), self.contents, self.redo)
        QShortcut(QKeySequence("Ctrl+L"), self.contents, self.toggle_live)
        QShortcut(QKeySequence("Ctrl+S"), self.contents, self.take_snapshot)
        QShortcut(QKeySequence("Ctrl+P"), self.contents, self.people.take_focus)
        for number in range(1, 10):
            QShortcut(QKeySequence(str(number)), self.contents, partial(self.face.wear_number, number))
        for number in range(1, self.pages.count + 1):
            QShortcut(QKeySequence(f"Alt+{number}"), self.contents, partial(self.pages.open, number - 1))

    def _press(self, name: str) -> None:
        """A key of those that work everywhere (``app.hotkeys.KEYS``)."""
        what, _, number = name.partition(" ")
        if what == "face":
            self.face.wear_number(int(number))
        else:
            {"live": self.toggle_live, "snapshot": self.take_snapshot}[what]()

    def _tools(self) -> list[QToolButton]:
        """What has a key too, for those who look for a button."""
        self.tools: dict[str, QToolButton] = {}
        for name, text, key, act in (
            ("undo", tr("Undo"), "Ctrl+Z", self.undo),
            ("redo", tr("Redo"), "Ctrl+Shift+Z", self.redo),
            ("snapshot", tr("Snapshot"), "Ctrl+S", self.take_snapshot),
            ("full", tr("Preview on the whole screen"), "F11", self.preview.toggle_full_screen),
        ):
            button = self.tools[name] = QToolButton()
            button.setObjectName("tool")
            button.setIcon(icon(name, self._theme.text, side=20))
            button.setIconSize(QSize(20, 20))
            button.setToolTip(f"{text} ({key})")
            button.setAccessibleName(text)
            button.clicked.connect(act)
        return list(self.tools.values())

    def _show_tools(self) -> None:
        live = self.state is LiveState.LIVE
        for name, possible in (("undo", self._history.can_undo), ("redo", self._history.can_redo), ("snapshot", live), ("full", live)):
            self.tools[name].setEnabled(possible)

    def _view_buttons(self) -> Flow:
        flow, scene = Flow(gap=4), self.preview.scene
        self.view: dict[str, QToolButton] = {}
        for name, text in (
            ("mirrored", tr("Mirror")),
            ("split", tr("Before | after")),
            ("outlines", tr("Outline")),
            ("landmarks", tr("Landmarks")),
            ("actual_size", "1:1"),
        ):
            button = self.view[name] = QToolButton()
            button.setObjectName("view")
            button.setText(text)
            button.setCheckable(True)
            button.setChecked(scene.split is not None if name == "split" else getattr(scene, name))
            button.toggled.connect(self._split if name == "split" else partial(self.preview.set_option, name))
            flow.addWidget(button)
        return flow

    def _split(self, on: bool) -> None:
        self.preview.set_split(0.5 if on else None)

    # --- what comes back ---

    def _settle(self, _settings: Settings) -> None:
        """What the line has taken over, or has kept; another program may have asked for it. Asked anew: the message may be old."""
        if self.control.busy:
            return  # what comes of that is told again
        settings = self.control.studio.settings
        if settings == self.settings:
            return
        self.settings = settings
        worn = Worn.of(settings)
        if self._history.undo() != worn:  # not what was before a wish that was refused
            self._history.redo()
            self._history.push(worn)
        self._show_settings()

    def _show_settings(self) -> None:
        for card in self.cards:
            card.show_settings(self.settings)
        self.face.show_own_face(self.own_faces.bring_one(self.settings.look))
        self.people.show_settings(self.settings, has_own_face=self.own_faces.bring_one(self.settings.look))
        self.preview.set_chosen(self.people.worn())
        if self.has_face and self.message.text() == self._said_bare:
            self.say("")  # no longer so
        self._say_state()
        self._show_tools()
        if self.memory is not None:
            self.memory.note_settings(self.settings)

    def _remember(self, change: Callable[[State], State]) -> None:
        self._kept = change(self._kept)
        if self.memory is not None:
            self.memory.note(change)
        self.remembered.emit(self._kept)

    def _restore_layout(self, state: State) -> None:
        self.resize(1280, 820)
        if "geometry" in state.window:
            self.restoreGeometry(from_text(state.window["geometry"]))
        self.pages.open_named(state.window.get("page", ""))

    def _layout(self) -> dict[str, str]:
        return {"geometry": to_text(self.saveGeometry()), "page": self.pages.current}

    def _return_to(self, worn: Worn) -> None:
        def change(settings: Settings) -> Settings:
            return settings.model_copy(update=worn._asdict())

        if Worn.of(self.settings) != worn:
            self.settings = change(self.settings)
            self._show_settings()
            self.control.apply(change)
        self._show_tools()

    def _say_state(self) -> None:
        """In the place of the picture, while there is none."""
        worn = self.has_face
        self.preview.say(
            {
                LiveState.IDLE: tr("Go live to see the picture here.") if worn else tr("Choose a face, then go live."),
                LiveState.STARTING: tr("Opening the camera and the models…"),
                LiveState.LIVE: "",
                LiveState.STOPPING: tr("Stopping…"),
            }[self.state],
            "" if worn or self.state is not LiveState.IDLE else tr("Drop a photo of a face here, or take a face of the list."),
        )

    def _become(self, state: LiveState) -> None:
        self.state = state
        live = state is LiveState.LIVE
        texts = {
            LiveState.IDLE: tr("Go live"),
            LiveState.STARTING: tr("Cancel"),
            LiveState.LIVE: tr("Stop"),
            LiveState.STOPPING: tr("Stopping…"),
        }
        self.live_button.setText(texts[state])
        self.setWindowTitle(f"ffrt – {tr('live')}" if live else "ffrt")
        self.live_button.setEnabled(state is not LiveState.STOPPING)
        self.live_button.setProperty("live", live)
        self.live_button.style().polish(self.live_button)
        self.preview.set_running(live)
        self._list_opening(state)
        self._say_state()
        self._show_tools()
        self.people.setVisible(live)
        if self._trouble is not None:
            self._trouble.show_state(live)
        self.outage.begin()
        if not live:
            self.comparing.end()
            self.numbers.clear()
            self.people.clear()
        for card in self.cards:
            card.show_state(state)

    def _list_opening(self, state: LiveState) -> None:
        if state is LiveState.STARTING and self._opening is None:
            self._opening = self.bench.jobs.begin(tr("Opening the camera and the models…"), lambda: self.control.go(False))
        elif state is not LiveState.STARTING and self._opening is not None:
            self._opening.end()
            self.bench.jobs.forget(self._opening.view.number)
            self._opening = None

    def _note_age(self, picture: Picture) -> None:
        age_ms = (self._clock.now_ns() - picture.captured_ns) / 1e6
        self.numbers.add_age(age_ms)
        for card in self.truth:
            card.add_age(age_ms)

    def _open_menu_of(self, face: TrackedFace) -> None:
        self.people.open_menu(face.person, QCursor.pos())

    def _show_pulse(self, pulse: Pulse) -> None:
        if self.state is not LiveState.LIVE:  # of a line that has ended meanwhile
            return
        self.numbers.show_pulse(pulse)
        self.outage.show_pulse(pulse, self.settings.look.on_lost)
        self.people.show_people(pulse.people, self.preview.faces)
        self.preview.set_chosen(self.people.worn())
        for card in self.cards:
            card.show_pulse(pulse)

    # --- Qt ---

    def _paste(self) -> None:
        self.intake.take(QGuiApplication.clipboard().mimeData())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802  Qt's names
        if self.intake.wants(event.mimeData()):
            event.acceptProposedAction()
            self.preview.invite(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802
        self.preview.invite(False)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        self.preview.invite(False)
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self.intake.take(event.mimeData())

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        layout = self._layout()
        self.preview.set_running(False)
        self._remember(lambda state: state.model_copy(update={"window": {**state.window, **layout}}))
        if self.memory is not None:
            self.memory.write()
        self.jobs.close_jobs()
        self.control.close()
        for card in self.cards:
            card.shut()
        self.bench.close()
        self.gallery.close()
        super().closeEvent(event)

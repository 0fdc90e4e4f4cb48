"""The main window: the picture and its numbers on the left, face, camera and outputs on the right, one button to go live."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.gui.live import Light, LiveControl, LiveState, Pulse
from app.gui.numbers import NumbersBar
from app.gui.picture import outlined
from app.gui.preview import Preview
from app.gui.theme import Theme
from app.gui.words import tr
from app.gui.worker import Worker, shown_error
from app.photo_check import PhotoCheck, PhotoReport
from app.settings import OutputSettings, Settings, SourceSettings
from rt.capture.camera import CameraInfo, list_cameras
from rt.clock import MonotonicClock
from rt.sinks.preview import Picture, PreviewSink
from rt.sinks.runner import SinkState

log = logging.getLogger(__name__)

SYNTHETIC = "synthetic:size=1280x720,fps=30"
PHOTO_SIDE = 260
SAMPLES = ("hopper.jpg", "astronaut.png")


class Window(QWidget):
    """Makes Settings and shows what the line says. Main thread."""

    def __init__(self, settings: Settings, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("page")
        self.setWindowTitle("ffrt")
        self.setAcceptDrops(True)
        self._base, self._theme = settings, theme
        self.state = LiveState.IDLE
        self.photo: Path | None = None
        self._asked: Path | None = None  # the newest photo that was given; answers about older ones are let go
        self._clock = MonotonicClock()
        self._recording: Path | None = None
        self._check: PhotoCheck | None = None  # made and used by the photo worker
        sink = PreviewSink()
        self.control = LiveControl(sink)
        self.control.state_changed.connect(self._become)
        self.control.failed.connect(self.say)
        self.control.ended.connect(self.say)
        self.control.pulsed.connect(self._show_pulse)
        self._photos, self._cameras = Worker("photos"), Worker("cameras")
        self.preview = Preview(sink, lambda: self._theme)
        self.preview.shown.connect(self._note_age)
        self.numbers = NumbersBar(lambda: self._theme)
        self._lights: dict[str, QLabel] = {}
        self._lay_out()
        self._become(LiveState.IDLE)
        self._cameras.run(list_cameras, self._list_cameras, lambda error: self.say(shown_error(error)))
        if settings.source.photos:
            self.choose_photo(settings.source.photos[0])

    # --- what a person does ---

    def choose_photo(self, path: Path) -> None:
        """Looked at off the event loop; worn once a face was found in it."""
        self._asked = path
        self.hint.setText(tr("Looking for the face…"))
        self._photos.run(partial(self._look_at, path), partial(self._show_photo, path), partial(self._refuse_photo, path))

    def settings(self) -> Settings:
        """What the window asks for now."""
        output = OutputSettings(
            streams=(self.stream.text().strip(),) if self.stream_on.isChecked() and self.stream.text().strip() else (),
            virtual_camera="" if self.camera_on.isChecked() else None,
            record=self._record_file() if self.record_on.isChecked() else None,
            overwrite=self._base.output.overwrite,
            bitrate_bps=self._base.output.bitrate_bps,
        )
        return self._base.model_copy(
            update={
                "source": SourceSettings(photos=(self.photo,) if self.photo else ()),
                "input": self._base.input.model_copy(update={"spec": self.camera.currentData()}),
                "output": output,
            }
        )

    def _record_file(self) -> Path:
        """The one that was named at the start, or a new one in the person's folder, kept until the next run."""
        if self._recording is None:
            self._recording = self._base.output.record or Path.home() / f"ffrt-{datetime.now():%Y%m%d-%H%M%S}.mp4"
        return self._recording

    def toggle_live(self) -> None:
        if self.state is LiveState.IDLE:
            self.say("")
            self._recording = None  # every run records to a file of its own
            self.control.wish(self.settings())
        else:
            self.control.wish(None)

    def say(self, text: str) -> None:
        self.message.setText(text)
        self.message.setVisible(bool(text))

    # --- layout ---

    def _lay_out(self) -> None:
        self.message = QLabel()
        self.message.setObjectName("message")
        self.message.setWordWrap(True)
        self.message.hide()
        left = QVBoxLayout()
        left.setSpacing(14)
        left.addWidget(self.message)
        left.addWidget(self.preview, 1)
        left.addLayout(self._view_buttons())
        left.addWidget(self.numbers)
        right = QVBoxLayout()
        right.setSpacing(14)
        right.addWidget(self._face_card())
        right.addWidget(self._camera_card())
        right.addWidget(self._output_card())
        right.addStretch(1)
        self.live_button = QPushButton()
        self.live_button.setObjectName("live")
        self.live_button.clicked.connect(self.toggle_live)
        right.addWidget(self.live_button)
        side = QWidget()
        side.setFixedWidth(340)
        side.setLayout(right)
        right.setContentsMargins(0, 0, 0, 0)
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 24, 24, 24)
        row.setSpacing(24)
        row.addLayout(left, 1)
        row.addWidget(side)
        QShortcut(QKeySequence.StandardKey.Paste, self, self._paste)

    def _view_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for text, act in (
            (tr("Mirror"), partial(self.preview.set_option, "mirrored")),
            (tr("Before | after"), lambda on: self.preview.set_split(0.5 if on else None)),
            (tr("Outline"), partial(self.preview.set_option, "outlines")),
            ("1:1", partial(self.preview.set_option, "actual_size")),
        ):
            button = QToolButton()
            button.setText(text)
            button.setCheckable(True)
            button.toggled.connect(act)
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _face_card(self) -> QFrame:
        card, column = _card(tr("Face"))
        self.picture = QLabel(tr("Drop a photo here, or paste one"))
        self.picture.setObjectName("muted")
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.picture.setMinimumHeight(130)
        self.hint = QLabel()
        self.hint.setObjectName("warn")
        self.hint.setWordWrap(True)
        row = QHBoxLayout()
        choose = QPushButton(tr("Choose…"))
        choose.clicked.connect(self._ask_for_photo)
        row.addWidget(choose)
        for number, name in enumerate(SAMPLES, 1):
            path = Path(str(files("assets") / "portraits" / name))
            sample = QPushButton(path.stem.capitalize())
            sample.clicked.connect(partial(self._choose_sample, path))
            QShortcut(QKeySequence(str(number)), self, partial(self.choose_photo, path))
            row.addWidget(sample)
        column.addWidget(self.picture)
        column.addWidget(self.hint)
        column.addLayout(row)
        return card

    def _camera_card(self) -> QFrame:
        card, column = _card(tr("Camera"))
        self.camera = QComboBox()
        self.camera.setAccessibleName(tr("Camera"))
        spec = self._base.input.spec
        if not spec.startswith("synthetic:"):
            self.camera.addItem(spec, spec)
        self.camera.addItem(tr("Synthetic camera"), spec if spec not in ("synthetic:",) and spec.startswith("synthetic:") else SYNTHETIC)
        self.camera.activated.connect(self._change_line)
        column.addWidget(self.camera)
        return card

    def _output_card(self) -> QFrame:
        card, column = _card(tr("Outputs"))
        wanted = self._base.output
        self.camera_on, self.stream_on, self.record_on = (QCheckBox(t) for t in (tr("Virtual camera"), tr("Stream"), tr("Record")))
        self.stream = QLineEdit(wanted.streams[0] if wanted.streams else "", placeholderText="rtmp://server/app/key")
        self.stream.setEchoMode(QLineEdit.EchoMode.PasswordEchoOnEdit)
        self.stream.setAccessibleName(tr("Address to stream to"))
        for box, on, kind in (
            (self.camera_on, wanted.virtual_camera is not None, "virtual-camera"),
            (self.stream_on, bool(wanted.streams), "stream"),
            (self.record_on, wanted.record is not None, "record"),
        ):
            box.setChecked(on)
            light = QLabel()
            light.setObjectName("muted")
            light.setWordWrap(True)
            light.hide()
            self._lights[kind] = light
            column.addWidget(box)
            if box is self.stream_on:
                column.addWidget(self.stream)
            column.addWidget(light)
            box.clicked.connect(self._change_line)
        return card

    # --- what comes back ---

    def _look_at(self, path: Path) -> PhotoReport:
        self._check = self._check or PhotoCheck()
        return self._check.look_at(path)

    def _show_photo(self, path: Path, report: PhotoReport) -> None:
        if path != self._asked:
            return
        self.picture.setPixmap(outlined(report.image, report.faces, PHOTO_SIDE, self._theme.accent))
        self.hint.setText("\n".join(tr(str(hint)) for hint in report.hints))
        if report.faces:
            self.photo = path
            self._change()

    def _refuse_photo(self, path: Path, error: BaseException) -> None:
        if path == self._asked:
            self.hint.setText(shown_error(error))

    def _list_cameras(self, cameras: list[CameraInfo]) -> None:
        for camera in cameras:
            self.camera.addItem(camera.name, camera.path)

    def _become(self, state: LiveState) -> None:
        self.state = state
        live = state is LiveState.LIVE
        texts = {
            LiveState.IDLE: tr("Go live"),
            LiveState.STARTING: tr("Starting…"),
            LiveState.LIVE: tr("Stop"),
            LiveState.STOPPING: tr("Stopping…"),
        }
        self.live_button.setText(texts[state])
        self.live_button.setEnabled(state in (LiveState.IDLE, LiveState.LIVE))
        self.live_button.setProperty("live", live)
        self.live_button.style().polish(self.live_button)
        self.preview.set_running(live)
        self.preview.say(tr("Choose a face, then go live.") if state is LiveState.IDLE else texts[state])
        if not live:
            self.numbers.clear()
            for light in self._lights.values():
                light.hide()

    def _note_age(self, picture: Picture) -> None:
        self.numbers.add_age((self._clock.now_ns() - picture.captured_ns) / 1e6)

    def _show_pulse(self, pulse: Pulse) -> None:
        self.numbers.show_pulse(pulse)
        for name, light in pulse.lights.items():
            label = self._lights.get(name if name in self._lights else "stream")
            if label is not None and name != "preview":
                label.setText(light_text(light))
                label.show()

    def _change(self) -> None:
        """While live the line follows at once."""
        if self.state in (LiveState.LIVE, LiveState.STARTING):
            self.control.wish(self.settings())

    def _change_line(self) -> None:
        """What takes a new line takes a new recording too: the old one is whole and stays."""
        self._recording = None
        self._change()

    def _choose_sample(self, path: Path, _checked: bool = False) -> None:
        self.choose_photo(path)

    def _ask_for_photo(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, tr("Choose a photo"))
        if name:
            self.choose_photo(Path(name))

    def _paste(self) -> None:
        from PySide6.QtGui import QGuiApplication

        urls = QGuiApplication.clipboard().mimeData().urls()
        if urls and urls[0].isLocalFile():
            self.choose_photo(Path(urls[0].toLocalFile()))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802  Qt's names
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        path = event.mimeData().urls()[0].toLocalFile()
        if path:
            self.choose_photo(Path(path))

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        self.preview.set_running(False)
        self.control.close()
        self._photos.close()
        self._cameras.close()
        super().closeEvent(event)


def light_text(light: Light) -> str:
    """How an output fares, in words."""
    if light.state is SinkState.RETRYING:
        return tr("Reconnecting in {seconds} s").format(seconds=light.retry_in_s or 0)
    if light.state is SinkState.FAILED:
        return tr("Stopped: {reason}").format(reason=light.error)
    return {SinkState.ON: tr("On"), SinkState.OPENING: tr("Opening…")}.get(light.state, tr("Off"))


def _card(heading: str) -> tuple[QFrame, QVBoxLayout]:
    card = QFrame()
    card.setObjectName("card")
    column = QVBoxLayout(card)
    column.setContentsMargins(18, 16, 18, 16)
    column.setSpacing(10)
    label = QLabel(heading)
    label.setObjectName("heading")
    column.addWidget(label)
    return card, column

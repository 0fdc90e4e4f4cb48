"""The picture. It is told when there is a new one, takes it when the screen can show it, and the line never waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

import cv2
import numpy as np
from PySide6.QtCore import QElapsedTimer, QEvent, QObject, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QFocusEvent, QHideEvent, QKeyEvent, QKeySequence, QMouseEvent, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app.gui.canvas import Canvas, Scene, SoftwareCanvas
from app.gui.theme import Theme
from app.gui.words import tr
from rt.frame import TrackedFace
from rt.sinks.preview import Picture, PreviewSink, Wanted

DRAWING_VARIABLE = "FFRT_PREVIEW"
"""Environment: ``gpu`` or ``software`` draws by that alone, for a machine whose driver says what it cannot keep."""

REFRESH_HZ = 60.0
"""Of a screen that does not say."""

GRIP_PX = 14
"""How near to the split's line a press takes hold of it."""

STEP, STRIDE = 0.02, 0.1
"""How far an arrow key moves the split, and with Shift."""


class Preview(QWidget):
    """Mirror, fit or 1:1, before | after, outlines and landmarks, full screen. Main thread."""

    shown = Signal(object)
    """A new ``Picture`` is on screen; valid until the next."""
    face_picked = Signal(object)
    """A ``TrackedFace`` was clicked."""
    _there_is_one = Signal()

    def __init__(self, sink: PreviewSink, theme: Callable[[], Theme], drawing: str | None = None) -> None:
        """``drawing``: ``gpu``, ``software``, or ``auto``; None is what the environment says."""
        super().__init__()
        self._sink = sink
        self._running = False
        self._held = False
        self._still = False
        self.scene = Scene(theme)
        self.setMinimumSize(320, 180)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.retell()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._canvas = make_canvas(self.scene, drawing or os.environ.get(DRAWING_VARIABLE, "auto"))
        layout.addWidget(self._canvas)
        self._since_drawn = QElapsedTimer()
        self._later = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._later.timeout.connect(self._take)
        self._changed = QTimer(self, singleShot=True, interval=0)
        self._changed.timeout.connect(self._watch)
        self._there_is_one.connect(self._take_in_time, Qt.ConnectionType.QueuedConnection)
        self._sink.on_picture = self._there_is_one.emit
        QShortcut(QKeySequence(Qt.Key.Key_F11), self, self.toggle_full_screen)
        self._top: QWidget | None = None
        self._watch()

    def retell(self) -> None:
        """In the language of now."""
        self.setAccessibleName(tr("Preview"))
        self.setAccessibleDescription(tr("F11 shows it on the whole screen; the arrow keys move the line between before and after."))

    @property
    def drawing(self) -> str:
        """What draws, and why nothing better does, for diagnostics."""
        return cast("Canvas", self._canvas).drawing

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(960, 540)

    def set_running(self, running: bool) -> None:
        """While not running nothing is taken and the message is shown."""
        self._running = running
        if not running:
            self.let_go()
            self._later.stop()
            self.scene.picture = None
            self._sink.clear()
        self._watch()
        self._canvas.update()

    def say(self, text: str, hint: str = "") -> None:
        """What stands in the place of the picture while there is none; ``hint`` below it, smaller."""
        self.scene.message, self.scene.hint = text, hint
        self._canvas.update()

    def invite(self, inviting: bool) -> None:
        """Something is held over the window that may be dropped, or is not any more."""
        self.scene.inviting = inviting
        self._canvas.update()

    def set_split(self, share: float | None) -> None:
        self.scene.split = None if share is None else min(1.0, max(0.0, share))
        self._watch()
        self._canvas.update()

    @property
    def split(self) -> float | None:
        """Where after begins, as a share of the picture's width; None shows after alone."""
        return self.scene.split

    def hold(self, left: np.ndarray, right: np.ndarray, names: tuple[str, str]) -> None:
        """Shows two pictures (uint8 [H, W, 3] BGR, of one size) beside the split instead of what comes, until ``let_go``."""
        turned = self.scene.mirrored and not cast("Canvas", self._canvas).scales
        before, after = (cv2.cvtColor(side[:, ::-1] if turned else side, cv2.COLOR_BGR2BGRA) for side in (left, right))
        self.scene.picture = Picture(after, before, turned, (right.shape[1], right.shape[0]), (), -1, 0)
        self.scene.names = names
        self._still = True
        self._canvas.update()

    def let_go(self) -> None:
        """Shows what comes again."""
        if self._still:
            self._still = False
            self.scene.names = None
            self.scene.picture = None
            self._watch()
            self._canvas.update()

    @property
    def holds(self) -> bool:
        return self._still

    def set_option(self, name: str, on: bool) -> None:
        """``mirrored``, ``actual_size``, ``outlines`` or ``landmarks``."""
        setattr(self.scene, name, on)
        self._watch()
        self._canvas.update()

    def set_chosen(self, people: frozenset[int] | None) -> None:
        """Numbers of the people who are swapped, if not all are."""
        if people != self.scene.chosen:
            self.scene.chosen = people
            self._canvas.update()

    @property
    def faces(self) -> tuple[TrackedFace, ...]:
        """Of the picture that is shown."""
        return () if self.scene.picture is None else self.scene.picture.faces

    def area(self) -> QRectF:
        """Where the picture lies in the widget."""
        return self.scene.area(self.width(), self.height(), self.devicePixelRatioF())

    # --- full screen ---

    def toggle_full_screen(self) -> None:
        """Out of its place in the window and back: the layout keeps the place."""
        full = not self.isFullScreen()
        self.scene.rounded = not full
        self.setWindowFlag(Qt.WindowType.Window, full)
        if full:
            self.setWindowTitle("ffrt")
            self.setGeometry(self.screen().geometry())  # where no window manager does it
            self.showFullScreen()
        else:
            self.showNormal()
        self.setFocus()
        self._watch()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        """Of the full screen alone: it goes back to its place."""
        event.ignore()
        if self.isFullScreen():
            self.toggle_full_screen()

    # --- pictures ---

    def _take_in_time(self) -> None:
        """No sooner than the screen can show another."""
        screen = self.screen()
        period_ms = 1000 / (screen.refreshRate() or REFRESH_HZ) if screen else 1000 / REFRESH_HZ
        wait_ms = period_ms - self._since_drawn.elapsed() if self._since_drawn.isValid() else 0
        if wait_ms >= 1:
            self._later.start(int(wait_ms))
        else:
            self._take()

    def _take(self) -> None:
        if self._still or not self._running or not self._sink.wanted.visible:
            return
        picture: Picture | None = self._sink.take()
        if picture is None:
            return
        self._since_drawn.start()
        self.scene.picture = picture
        self._canvas.update()
        self.shown.emit(picture)

    def _watch(self) -> None:
        """Tells the sink what is to be seen now."""
        scales = cast("Canvas", self._canvas).scales
        ratio = self.devicePixelRatioF()
        fit = None if scales or self.scene.actual_size else (max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio)))
        self._sink.wanted = Wanted(
            visible=self._running and self._is_seen(),
            before=self.scene.split is not None,
            fit=fit,
            mirrored=self.scene.mirrored and not scales,
        )
        if self._running:
            self._take()  # what had come while nobody could see it

    def _is_seen(self) -> bool:
        return self.isVisible() and not self.window().isMinimized()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Of the window around: minimised, hidden, shown again, moved to a screen of other density."""
        if event.type() in (QEvent.Type.WindowStateChange, QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.DevicePixelRatioChange):
            self._changed.start()  # once the window has changed
        return False

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        if self._top is not self.window():
            if self._top is not None:
                self._top.removeEventFilter(self)
            self._top = self.window()
            self._top.installEventFilter(self)
        self._watch()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        self._watch()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        self._watch()

    # --- mouse and keyboard ---

    def _on_line(self, x: float) -> bool:
        area = self.area()
        return (
            self.scene.picture is not None
            and self.scene.split is not None
            and abs(x - area.left() - area.width() * self.scene.split) <= GRIP_PX
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        self._held = self._on_line(event.position().x())
        if not self._held:
            self._pick(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        at = event.position()
        if self._held:
            area = self.area()
            self.set_split((at.x() - area.left()) / max(1.0, area.width()))
        over_face = not self._on_line(at.x()) and self.scene.face_at(at, self.area()) is not None
        shape = Qt.CursorShape.PointingHandCursor if over_face else Qt.CursorShape.ArrowCursor
        self.setCursor(Qt.CursorShape.SplitHCursor if self._held or self._on_line(at.x()) else shape)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        self._held = False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        self.toggle_full_screen()

    def _pick(self, at: QPointF) -> None:
        face = self.scene.face_at(at, self.area())
        if face is not None:
            self.face_picked.emit(face)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        key = Qt.Key(event.key())
        if key is Qt.Key.Key_Escape and self.isFullScreen():
            self.toggle_full_screen()
            return
        step = STRIDE if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else STEP
        split = self.scene.split if self.scene.split is not None else 0.0
        places = {Qt.Key.Key_Left: split - step, Qt.Key.Key_Right: split + step, Qt.Key.Key_Home: 0.0, Qt.Key.Key_End: 1.0}
        if self.scene.split is None or key not in places:
            super().keyPressEvent(event)
        else:
            self.set_split(places[key])

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        self.scene.focused = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self._canvas.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        self.scene.focused = False
        self._canvas.update()


def make_canvas(scene: Scene, drawing: str) -> QWidget:
    """The card where it really draws, else the processor, which says why."""
    if drawing == "software":
        return SoftwareCanvas(scene, f"{DRAWING_VARIABLE}=software")
    from app.gui.canvas_gl import GpuCanvas, gpu_renderer

    renderer, why_not = gpu_renderer()
    if why_not and not (drawing == "gpu" and renderer):
        return SoftwareCanvas(scene, why_not)
    return GpuCanvas(scene, renderer)

"""A monkey at the window: operations drawn from a seed, and what must hold whatever it does.

**A stall** is a row of pictures that were due and did not come. Due is every picture that was filmed after the first picture of a run had
come out and before its last, by the camera's own numbering (the synthetic camera numbers its pictures by their stamps), but for those that
the camera did not make: in the ``stall`` of its SPEC, and after it was unplugged. What lies between two runs is not due, and a new run is
taken where the line is started or another input is asked for; nothing else may take one.

So a face, a look, a swapper, an output, a preset, a server that takes nothing, and whatever happens to the window leave no hole of more
than two pictures. A hole is judged where the machine was this process's own meanwhile: where others (and the host of a virtual machine)
had more than a tenth of the cores, as the kernel counts it, or the kernel does not tell (not Linux), it is counted apart.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import logging
import math
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton

from app.gui.cards.card import changed
from app.gui.live import LiveState
from app.gui.window import Window
from app.settings import Settings
from rt.capture.request import CaptureRequest
from rt.capture.synthetic import Parameters
from rt.frame import Frame, VideoFormat

PATIENCE_MS = 120_000

HOLE_MAX = 2
"""Pictures in a row that may be missing."""

ELSEWHERE_MAX = 0.1
"""The share of the cores that others may have, for a hole to be held against the line."""

CAMERAS = (
    "synthetic:size=640x360,fps=30",
    "synthetic:size=320x240,fps=30",
    "synthetic:size=848x480,fps=25,motion=2",
    "synthetic:size=640x360,fps=30,stall=0.5:0.5",
)
UNPLUGGED = "synthetic:size=640x360,fps=30,unplug=0.5"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the monkey does. All of it comes from the seed."""

    name: str
    value: Any
    pictures: int
    """It watches so many before the next step."""
    hasty: bool
    """…or none, and does not wait for what it did to take effect either."""

    def __str__(self) -> str:
        given = "" if self.value is None else f" {self.value}"
        return f"{self.name}{given}{' hastily' if self.hasty else f', {self.pictures} pictures'}"


def plan(seed: int, steps: int, does: dict[str, tuple[Any, ...]]) -> list[Step]:
    """``does``: operation → what it may be given. Each comes once, in an order of the seed's, and then any."""
    choice = random.Random(seed)
    names = [choice.choice(sorted(does)) for _ in range(max(0, steps - len(does)))]
    first = sorted(does)
    choice.shuffle(first)
    return [Step(name, choice.choice(does[name]), choice.randint(1, 12), choice.random() < 0.25) for name in [*first, *names][:steps]]


# --- stalls ---


@dataclass(frozen=True, slots=True)
class Delivered:
    """A picture that came."""

    number: int
    """By the camera: the pictures it could have made before this one."""
    captured_ns: int
    at_ns: int
    elsewhere_ns: float
    """See ``elsewhere_ns``."""
    marks_ms: dict[str, float]
    """What the line spent on it, by stage."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Between one picture that came and the next; mostly of length 0."""

    pictures: int
    """Those that were due and did not come."""
    elsewhere: float
    """The share of the cores that others had meanwhile."""
    before: Delivered
    after: Delivered

    @property
    def is_stall(self) -> bool:
        return self.pictures > HOLE_MAX

    @property
    def can_be_judged(self) -> bool:
        return self.elsewhere <= ELSEWHERE_MAX


@dataclass(slots=True)
class Run:
    video: VideoFormat
    camera: Parameters
    pictures: list[Delivered] = field(default_factory=list)

    def holes(self) -> Iterator[Hole]:
        for before, after in itertools.pairwise(self.pictures):
            due = sum(self._is_due(number) for number in range(before.number + 1, after.number))
            share = (after.elsewhere_ns - before.elsewhere_ns) / (after.at_ns - before.at_ns) / (os.cpu_count() or 1)
            yield Hole(due, share, before, after)

    def _is_due(self, number: int) -> bool:
        first = self.pictures[0]
        if first.captured_ns + (number - first.number) * self.video.period_ns < first.at_ns:
            return False  # it was filmed while the run began
        if self.camera.stall_s is None:
            return True
        at_s, length_s = self.camera.stall_s
        return not at_s <= number / self.video.fps < at_s + length_s


class Stamps:
    """A sink that notes what it gets. The runner's thread; ``runs`` may be read once the line is stopped."""

    name = "stamps"
    lossless = False

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self.runs: list[Run] = []
        self._settings = settings

    def open(self, video: VideoFormat) -> None:
        asked = self._settings().input
        request = CaptureRequest(width=asked.width, height=asked.height, fps=asked.fps)
        self.runs.append(Run(video, Parameters.parse(asked.spec, request)))

    def write(self, frame: Frame) -> None:
        run = self.runs[-1]
        number = round(frame.media_ns / run.video.period_ns)
        spent = {name: round(ns / 1e6, 1) for name, ns in frame.marks.items()}
        run.pictures.append(Delivered(number, frame.captured_ns, time.monotonic_ns(), elsewhere_ns(), spent))

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called."""

    def close(self) -> None:
        """Nothing to close."""

    def statistics(self) -> dict[str, Any]:
        return {"runs": len(self.runs)}


def elsewhere_ns() -> float:
    """What the cores did for others so far, all cores together, in steps of the kernel's tick (10 ms). Endless where it does not tell."""
    try:
        with open("/proc/stat", "rb") as file:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return math.inf
    ticks = user + nice + system + irq + softirq + steal
    return ticks * 1e9 / os.sysconf("SC_CLK_TCK") - time.process_time_ns()


# --- leaks ---


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds at rest: the line stopped, the same settings, nothing under way."""

    threads: tuple[str, ...]
    """Without the window's workers, of which there is one a kind, made when it is first needed."""
    system_threads: int
    """Those that Python does not know of among them."""
    files: int
    widgets: int
    objects: int
    """In the window, Qt's own count."""
    resident_mb: float

    @classmethod
    def now(cls, window: Window) -> Held:
        gc.collect()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        give_back_memory()
        linux, workers = sys.platform == "linux", window.bench._workers
        return cls(
            tuple(sorted(thread.name for thread in threading.enumerate() if thread.name not in workers)),
            (len(os.listdir("/proc/self/task")) if linux else threading.active_count()) - len(workers),
            len(os.listdir("/proc/self/fd")) if linux else 0,
            len(QApplication.allWidgets()),
            len(window.findChildren(QObject)),
            resident_mb() if linux else 0.0,
        )


def give_back_memory() -> None:
    """What the allocator keeps for later is no leak."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def slope(values: list[float]) -> float:
    """Of the line through equally spaced ``values``, by the median of all pairs (Theil and Sen): one that lies far out changes nothing."""
    steps = sorted((b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(enumerate(values), 2))
    return steps[len(steps) // 2] if steps else 0.0


# --- errors ---


class Complaints(logging.Handler):
    """Every exception that somebody logged: nothing that the monkey does is a reason for one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.heard.append(f"{record.name}: {record.getMessage()}: {record.exc_info[1]!r}")

    @contextmanager
    def listening(self) -> Iterator[None]:
        logging.getLogger().addHandler(self)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(self)


# --- the monkey ---


class Monkey:
    """At a window that is shown. ``presets``: names that can be worn; ``folder``: where recordings go."""

    def __init__(self, window: Window, qtbot: Any, folder: Path, presets: tuple[str, ...], swappers: tuple[str, ...]) -> None:
        self.window = window
        self._qtbot = qtbot
        self._folder = folder
        self._rest_settings = window.settings
        self._recordings = itertools.count()
        self._servers: list[socket.socket] = []
        self._begun: list[tuple[int, Step]] = []
        self._pictures = 0
        self.stamps = Stamps(lambda: window.control.studio.settings)
        window.control.studio._further_sinks += (self.stamps,)
        window.preview.shown.connect(self._count)
        self.said: list[str] = []
        """What the window told of its line."""
        window.control.failed.connect(self.said.append)
        window.control.ended.connect(self.said.append)
        on = (True, False)
        self.does: dict[str, tuple[Any, ...]] = {
            "stop": (None,),
            "start and stop": (None,),
            "camera": CAMERAS,
            "unplug": (None,),
            "face": (1, 2),
            "no face": (None,),
            "swapper": swappers,
            "opacity": (0.0, 0.3, 1.0),
            "masks": ((), ("hands",), ("hands", "mouth")),
            "seam": ("soft", "seamless"),
            "lost": ("hold", "blur", "freeze", "show"),
            "steadiness": (0.0, 0.5, 1.0),
            "faces": (1, 2),
            "detector": ("blazeface-full", "blazeface-short"),
            "preset": presets,
            "undo": (None,),
            "redo": (None,),
            "measure": on,
            "record": on,
            "deaf server": on,
            "snapshot": (None,),
            "split": (None, 0.0, 0.5, 1.0),
            "mirror": on,
            "outlines": on,
            "landmarks": on,
            "actual size": on,
            "full screen": (None,),
            "page": tuple(range(1, window.pages.count + 1)),
            "size of the window": ((1100, 700), (1500, 900)),
            "minimise": (None,),
        }

    def close(self) -> None:
        self._close_servers()

    def do(self, step: Step) -> None:
        self._begun.append((time.monotonic_ns(), step))
        if not step.hasty:
            self._until_settled()
        if self.window.state is LiveState.IDLE and not self.window.control.busy and step.name != "stop":
            self._press_live()
            if not step.hasty:
                self._until(lambda: self.window.state is LiveState.LIVE, "it is live")
        getattr(self, "_" + step.name.replace(" ", "_"))(step.value)
        if not step.hasty:
            self._until_settled()
            self._watch(step.pictures)

    def rest(self) -> Held:
        """Stops, sets all back, waits until nothing is under way, and counts."""
        self._stop(None)
        self._until(lambda: self.window.state is LiveState.IDLE, "it has stopped")
        self._close_servers()
        window = self.window
        window.apply(lambda _: self._rest_settings)
        window.pages.open(0)
        window.say("")
        for name in ("mirrored", "outlines", "landmarks", "actual_size"):
            window.preview.set_option(name, False)
        window.preview.set_split(None)
        window.resize(1280, 820)
        self._until_settled()
        for worker in window.bench._workers.values():
            done: list[object] = []
            worker.run(lambda: None, done.append, done.append)
            self._until(lambda: bool(done), "the workers have nothing to do")  # noqa: B023  called at once
        return Held.now(window)

    def stalls(self) -> list[str]:
        """One sentence each."""
        return [
            f"run {number}: {hole.pictures} pictures that were due did not come after picture {hole.before.number}; "
            f"it took {hole.before.marks_ms} ms, the next {hole.after.marks_ms}, and came {self._before(hole.after.at_ns)}"
            for number, run in enumerate(self.stamps.runs)
            for hole in run.holes()
            if hole.is_stall and hole.can_be_judged
        ]

    def _before(self, at_ns: int) -> str:
        """What was done last before that moment."""
        steps = [f"{(at_ns - begun_ns) / 1e6:.0f} ms after {step}" for begun_ns, step in self._begun if begun_ns < at_ns]
        return ", ".join(steps[-3:])

    def _count(self, _picture: object) -> None:
        self._pictures += 1

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        self._qtbot.waitUntil(lambda: holds() or _lacking(what), timeout=PATIENCE_MS)

    def _until_settled(self) -> None:
        """Live or not, and all that was wished is taken over."""
        control = self.window.control
        self._until(
            lambda: not control.busy and control._live_wish is None and self.window.state in (LiveState.LIVE, LiveState.IDLE),
            "it is settled",
        )

    def _watch(self, pictures: int) -> None:
        """Where it goes on living: the camera may be at its end, and a window that is not seen shows none."""
        goal = self._pictures + pictures
        preview = self.window.preview
        self._until(
            lambda: self._pictures >= goal or self.window.state is not LiveState.LIVE or not preview._sink.wanted.visible,
            f"{pictures} more pictures",
        )

    def _press_live(self) -> None:
        self.window.live_button.click()

    def _key(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.window, key, modifier)

    def _change(self, part: str, **fields: Any) -> None:
        self.window.apply(changed(part, **fields))

    # --- what it can do ---

    def _stop(self, _: None) -> None:
        if self.window.state in (LiveState.LIVE, LiveState.STARTING):
            self._press_live()

    def _start_and_stop(self, _: None) -> None:
        """Presses again before anything has come of it."""
        self._press_live()
        self._press_live()

    def _camera(self, spec: str) -> None:
        self.window.camera.take(spec)

    def _unplug(self, _: None) -> None:
        """…and another is plugged in."""
        self.window.camera.take(UNPLUGGED)
        self._until_settled()
        self._until(lambda: self._is_away(), "the camera is away")
        self.window.camera.take(CAMERAS[0])

    def _is_away(self) -> bool:
        """Or the line is not live at all: it was not when the camera was chosen."""
        session = self.window.control.studio.session
        return session is None or "lost" in session.source()

    def _face(self, number: int) -> None:
        self._key({1: Qt.Key.Key_1, 2: Qt.Key.Key_2}[number])

    def _no_face(self, _: None) -> None:
        self.window.face.none.click()

    def _swapper(self, name: str) -> None:
        self._change("look", swapper=name)

    def _opacity(self, value: float) -> None:
        self._change("look", opacity=value)

    def _masks(self, names: tuple[str, ...]) -> None:
        self._change("look", masks=names)

    def _seam(self, name: str) -> None:
        self._change("look", blending=name)

    def _lost(self, policy: str) -> None:
        self._change("look", on_lost=policy)

    def _steadiness(self, value: float) -> None:
        self._change("look", smoothing=value)

    def _faces(self, number: int) -> None:
        self._change("look", max_faces=number)

    def _detector(self, name: str) -> None:
        self._change("look", detector=name)

    def _preset(self, name: str) -> None:
        self.window.presets.wear(name)

    def _undo(self, _: None) -> None:
        self._key(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)

    def _redo(self, _: None) -> None:
        self._key(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)

    def _measure(self, on: bool) -> None:
        self._change("output", null=on)

    def _record(self, on: bool) -> None:
        self._change("output", record=self._folder / f"{next(self._recordings)}.mp4" if on else None)

    def _deaf_server(self, on: bool) -> None:
        """It accepts the connection and never reads."""
        if not on:
            self._change("output", streams=())
            return
        self._close_servers()
        server = socket.create_server(("127.0.0.1", 0))
        self._servers.append(server)
        self._change("output", streams=(f"rtmp://127.0.0.1:{server.getsockname()[1]}/app/key",))

    def _close_servers(self) -> None:
        while self._servers:
            self._servers.pop().close()

    def _snapshot(self, _: None) -> None:
        self.window.outputs.snapshot.click()

    def _split(self, share: float | None) -> None:
        self.window.preview.set_split(share)

    def _mirror(self, on: bool) -> None:
        next(button for button in self.window.findChildren(QToolButton) if button.text() == "Mirror").setChecked(on)

    def _outlines(self, on: bool) -> None:
        self.window.preview.set_option("outlines", on)

    def _landmarks(self, on: bool) -> None:
        self.window.preview.set_option("landmarks", on)

    def _actual_size(self, on: bool) -> None:
        self.window.preview.set_option("actual_size", on)

    def _full_screen(self, _: None) -> None:
        """…and back."""
        for _turn in range(2):
            self.window.preview.toggle_full_screen()
            self._watch(2)

    def _page(self, number: int) -> None:
        self.window.pages.open(number - 1)

    def _size_of_the_window(self, size: tuple[int, int]) -> None:
        self.window.resize(*size)

    def _minimise(self, _: None) -> None:
        self.window.showMinimized()
        QApplication.processEvents()
        self.window.showNormal()


def _lacking(what: str) -> bool:
    """Named in the message of a wait that was in vain."""
    raise AssertionError(f"waited until {what}")

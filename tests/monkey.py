"""A monkey at the window: operations drawn from a seed, and what must hold whatever it does.

**A stall** is a row of pictures that were due and did not come. Due is every picture that was filmed after the first picture of a run had
come out and before its last, by the camera's own numbering (the synthetic camera numbers its pictures by their stamps), but for those that
the camera did not make: in the ``stall`` of its SPEC, and after it was unplugged. What lies between two runs is not due, and a new run is
taken where the line is started or another input is asked for; nothing else may take one. From that wish on the old input owes nothing.

So a face, a look, a swapper, an output, a preset, a server that takes nothing, and whatever happens to the window leave no hole of more
than two pictures. What the machine has cost is taken off first, by what the kernel counts meanwhile (``Machine``): a thread that could run
and had no core, and no longer than other processes had one. A line that waits for a lock, a disk or a thread is not excused by that: it
waits for no core. Nor is the line to blame for what kept another process from waking, one that does nothing else (``Metronome``): a virtual
machine that its host had stopped. Where the kernel does not tell (not Linux), everything is excused, and said to be.
"""

from __future__ import annotations

import collections
import ctypes
import faulthandler
import gc
import itertools
import logging
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QToolButton

from app.gui.cards.card import changed
from app.gui.cards.numbers import Table
from app.gui.live import LiveState
from app.gui.window import Window
from app.presets import Presets
from app.settings import Settings
from rt.capture.request import CaptureRequest
from rt.capture.synthetic import Parameters
from rt.frame import Frame, VideoFormat

PATIENCE_MS = 120_000

HOLE_MAX = 2
"""Pictures in a row that may be missing."""

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
class Machine:
    """What the machine did so far, nanoseconds. Endless where the kernel does not tell."""

    elsewhere_ns: float
    """For others (the host of a virtual machine among them), all cores together, in steps of the kernel's tick (10 ms)."""
    waited_ns: float
    """For how long this process's threads could have run and had no core, all threads together; and what the host took."""
    worked_ns: float = 0.0
    """For how long they ran."""
    frozen_ns: float = 0.0
    """For how long the cores neither worked nor rested, on average: the host of a virtual machine had stopped it and does not say so."""

    def cost_ns(self, until: Machine) -> float:
        """By how much, at the most, work of this process can have become later because of others."""
        if math.isinf(until.elsewhere_ns):
            return math.inf
        frozen_ns = until.frozen_ns - self.frozen_ns - TICK_NS
        return max(0.0, min(until.elsewhere_ns - self.elsewhere_ns + TICK_NS, until.waited_ns - self.waited_ns)) + max(0.0, frozen_ns)

    def words(self, until: Machine) -> str:
        names = ("elsewhere_ns", "waited_ns", "worked_ns", "frozen_ns")
        others, waited, worked, frozen = (round((getattr(until, name) - getattr(self, name)) / 1e6) for name in names)
        return f"others worked for {others} ms, ffrt for {worked} ms and could have for {waited} ms more; the machine stood for {frozen} ms"


class MachineClock:
    """One thread."""

    def __init__(self) -> None:
        self._waited: dict[str, int] = {}
        self._gone_ns = 0  # of threads that have ended

    def now(self) -> Machine:
        try:
            with open("/proc/stat", "rb") as file:
                at_ns, ticks = time.monotonic_ns(), [int(count) for count in file.readline().split()[1:9]]
            user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
            waited = self._waited_of_all()
        except (OSError, ValueError, IndexError):
            return Machine(math.inf, math.inf)
        busy_ns, taken_ns = (count * TICK_NS for count in (user + nice + system + irq + softirq + steal, steal))
        worked_ns = time.process_time_ns()
        return Machine(busy_ns - worked_ns, waited + taken_ns, worked_ns, at_ns - sum(ticks) * TICK_NS / (os.cpu_count() or 1))

    def _waited_of_all(self) -> int:
        now: dict[str, int] = {}
        for thread in os.listdir("/proc/self/task"):
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                now[thread] = int(file.read().split()[1])
        for thread, waited in self._waited.items():
            if now.get(thread, -1) < waited:
                self._gone_ns += waited
        self._waited = now
        return self._gone_ns + sum(now.values())


class Metronome:
    """A process on every core that sleeps and wakes, and notes when it woke late: a host may stop one core alone.

    Whoever made it closes it.
    """

    BEAT_MS = 5

    PROGRAM = f"""
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[1])])
last = time.monotonic_ns()
while True:
    time.sleep({BEAT_MS / 1000})
    now = time.monotonic_ns()
    if now - last > {3 * BEAT_MS * 1_000_000}:
        print(last + {BEAT_MS * 1_000_000}, now, flush=True)
    last = now
"""

    def __init__(self, notes: Path) -> None:
        """``notes``: a file."""
        self._notes = notes
        cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        with notes.open("a") as file:
            self._processes = [subprocess.Popen([sys.executable, "-c", self.PROGRAM, str(core)], stdout=file) for core in cores]

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def late(self) -> list[tuple[int, int]]:
        """From when to when one should have been awake and was not, nanoseconds of the monotonic clock; none overlaps another."""
        pairs = [line.split() for line in self._notes.read_text().splitlines()]
        merged: list[tuple[int, int]] = []
        for begin, end in sorted((int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2):
            begin = max(begin, merged[-1][1] if merged else 0)
            if begin < end:
                merged.append((begin, end))
        return merged


TICK_NS = 10_000_000
"""Of the kernel's count of what cores do (USER_HZ is 100)."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A picture that came."""

    number: int
    """By the camera: the pictures it could have made before this one."""
    captured_ns: int
    at_ns: int
    machine: Machine
    marks_ms: dict[str, float]
    """What the line spent on it, by stage."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Between one picture that came and the next; mostly of length 0."""

    pictures: int
    """Those that were due and did not come."""
    excused: float
    """So many pictures of those the machine may have cost."""
    before: Delivered
    after: Delivered

    @property
    def is_long(self) -> bool:
        return self.pictures > HOLE_MAX

    @property
    def is_stall(self) -> bool:
        return self.pictures - self.excused > HOLE_MAX


@dataclass(slots=True)
class Run:
    video: VideoFormat
    camera: Parameters
    pictures: list[Delivered] = field(default_factory=list)
    given_up_ns: float = math.inf
    """When another input was asked for."""

    def holes(self, late: Sequence[tuple[int, int]] = ()) -> Iterator[Hole]:
        """``late``: as ``Metronome`` has it."""
        for before, after in itertools.pairwise(self.pictures):
            due = sum(self._is_due(number) for number in range(before.number + 1, after.number))
            asleep_ns = sum(max(0, min(end, after.at_ns) - max(begin, before.at_ns)) for begin, end in late) if due else 0
            asleep_ns -= after.machine.worked_ns - before.machine.worked_ns  # that may have been our own doing
            cost_ns = max(before.machine.cost_ns(after.machine), asleep_ns)
            yield Hole(due, cost_ns / self.video.period_ns, before, after)

    def _is_due(self, number: int) -> bool:
        first = self.pictures[0]
        captured_ns = first.captured_ns + (number - first.number) * self.video.period_ns
        if not first.at_ns <= captured_ns < self.given_up_ns:
            return False  # it was filmed while the run began, or once its end was wished
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
        self._machine = MachineClock()
        place = os.environ.get("FFRT_STACKS")
        self._stacks = None if place is None else open(place, "a")  # noqa: SIM115  until the process ends

    def open(self, video: VideoFormat) -> None:
        asked = self._settings().input
        request = CaptureRequest(width=asked.width, height=asked.height, fps=asked.fps)
        self.runs.append(Run(video, Parameters.parse(asked.spec, request)))

    def write(self, frame: Frame) -> None:
        run = self.runs[-1]
        number = round(frame.media_ns / run.video.period_ns)
        if self._stacks is not None:
            self._stacks.write(f"--- after picture {number} of run {len(self.runs) - 1}\n")
            self._stacks.flush()
            faulthandler.dump_traceback_later((HOLE_MAX + 1) * run.video.period_ns / 1e9, file=self._stacks)
        spent = {name: round(ns / 1e6, 1) for name, ns in frame.marks.items()}
        run.pictures.append(Delivered(number, frame.captured_ns, time.monotonic_ns(), self._machine.now(), spent))

    def give_up(self) -> None:
        """Another input is asked for. The window's thread."""
        if self.runs:
            self.runs[-1].given_up_ns = min(self.runs[-1].given_up_ns, time.monotonic_ns())

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called."""

    def close(self) -> None:
        if self._stacks is not None:
            faulthandler.cancel_dump_traceback_later()

    def statistics(self) -> dict[str, Any]:
        return {"runs": len(self.runs)}


# --- leaks ---


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds at rest: the line stopped, the same settings, nothing under way."""

    threads: tuple[str, ...]
    """Without the window's workers, of which there is one a kind, made when it is first needed."""
    system_threads: int
    """Those that Python does not know of among them."""
    files: int
    widgets: collections.Counter[str]
    """By class; without the rows of tables, of which there are as many as the last line had outputs and models."""
    objects: collections.Counter[str]
    """In the window, Qt's own count, by class; without those that a label makes of its words once it has some."""
    python: collections.Counter[str]
    """What Python's collector knows of, by type."""
    resident_mb: float

    def __str__(self) -> str:
        counts = {"widgets": self.widgets, "objects": self.objects, "of Python": self.python}
        sums = ", ".join(f"{count.total()} {name}" for name, count in counts.items())
        return f"{len(self.threads)} threads ({self.system_threads} of the system), {self.files} files, {sums}, {self.resident_mb:.0f} MB"

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
            collections.Counter(type(widget).__name__ for widget in QApplication.allWidgets() if not isinstance(widget.parent(), Table)),
            collections.Counter(type(found).__name__ for found in window.findChildren(QObject) if not _is_within_words(found)),
            collections.Counter(f"{type(found).__module__}.{type(found).__qualname__}" for found in gc.get_objects()),
            resident_mb() if linux else 0.0,
        )


def _is_within_words(found: QObject) -> bool:
    """…or a row of a table."""
    above = found.parent()
    while above is not None and not isinstance(above, QLabel | Table):
        above = above.parent()
    return above is not None


def give_back_memory() -> None:
    """What the allocator keeps for later is no leak."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


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
        self.metronome = Metronome(folder / "late")
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
        self.metronome.close()

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
        window = self.window
        self._until_workers_rest()  # a preset that is still being read is worn later, and may take a new line
        self._until(self._has_stopped, "it has stopped")
        self._close_servers()
        window.apply(lambda _: self._rest_settings)
        window.pages.open(0)
        window.say("")
        for name in ("mirrored", "outlines", "landmarks", "actual_size"):
            window.preview.set_option(name, False)
        window.preview.set_split(None)
        window.resize(1280, 820)
        self._until_settled()
        self._until_workers_rest()
        return Held.now(window)

    def _until_workers_rest(self) -> None:
        for worker in self.window.bench._workers.values():
            done: list[object] = []
            worker.run(lambda: None, done.append, done.append)
            self._until(lambda: bool(done), "the workers have nothing to do")  # noqa: B023  called at once

    def _has_stopped(self) -> bool:
        """The button does nothing while a line gives way to the next: it is pressed again."""
        self._stop(None)
        return self.window.state is LiveState.IDLE and not self.window.control.busy

    def stalls(self) -> list[str]:
        """One sentence each."""
        return [
            f"run {number}: {hole.pictures} pictures that were due did not come after picture {hole.before.number}, {hole.excused:.1f} of "
            f"them excused ({hole.before.machine.words(hole.after.machine)}); it took {hole.before.marks_ms} ms, the next "
            f"{hole.after.marks_ms}, and came {self._before(hole.after.at_ns)}"
            for number, run in enumerate(self.stamps.runs)
            for hole in run.holes(self.metronome.late())
            if hole.is_stall
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

    def _take(self, spec: str) -> None:
        """Another input; the same changes nothing."""
        if spec != self.window.settings.input.spec:
            self.stamps.give_up()
        self.window.camera.take(spec)

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
        self._take(spec)

    def _unplug(self, _: None) -> None:
        """…and another is plugged in. A preset that is still being read would plug in its own."""
        self._until_workers_rest()
        self._take(UNPLUGGED)
        self._until_settled()
        self._until(self._is_away, "the camera is away")
        self._take(CAMERAS[0])

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
        if Presets().load(name).input not in (None, self.window.settings.input):
            self.stamps.give_up()
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

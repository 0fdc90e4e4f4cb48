"""A seeded monkey at the real window (``tests/monkey.py``). `make test-monkey` lets it do 200 things, the suite a few.

``FFRT_MONKEY``: how many; ``FFRT_SEED``: which. The same seed does the same things in the same order. ``FFRT_STACKS``: a file into which is
written what every thread does whenever a picture is late (by faulthandler, which looks at threads that run and may end the process by that:
for looking, not for judging).
"""

from __future__ import annotations

import collections
import itertools
import os
import random
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import HOPPER
from monkey import CAMERAS, Complaints, Delivered, Held, Machine, MachineClock, Metronome, Monkey, Run, Step, plan
from standins.shelf import OTHERS, fill

from app.gui import theme
from app.gui.window import Window
from app.presets import Preset, Presets, SourcePreset
from app.settings import InputSettings, LookSettings, Settings
from rt.capture.request import CaptureRequest
from rt.capture.synthetic import Parameters
from rt.frame import VideoFormat

SHORT = 30
"""Of the suite."""
STEPS = int(os.environ.get("FFRT_MONKEY", str(SHORT)))
SEED = int(os.environ.get("FFRT_SEED", "0" if STEPS <= SHORT else str(random.SystemRandom().randrange(10**6))))
REST_EVERY = 20
AGAIN = 3 * REST_EVERY

GROWTH_MB = 0.1
"""Resident memory, each step: a picture that is kept at every start is twice that. Judged where all threads share an arena
(``MALLOC_ARENA_MAX=1``): what each keeps of its own hides a leak."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("models"), {"identity": OTHERS["identity"]})


@pytest.fixture
def window(qtbot: Any, qapp: Any, tmp_path: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    monkeypatch.setattr("app.gui.window.pictures", lambda: tmp_path)
    theme.apply(qapp, theme.LIGHT)
    Presets().save("Soft", Preset(look=LookSettings(opacity=0.4, smoothing=0.2)))
    Presets().save("Hopper", Preset(look=LookSettings(), source=SourcePreset(photos=(HOPPER,))))
    Presets().save("Small", Preset(look=LookSettings(), input=InputSettings(spec=CAMERAS[1])))
    made = Window(Settings(input=InputSettings(spec=CAMERAS[0])), theme.LIGHT)
    made.resize(1280, 820)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()


def test_the_plan_is_the_seeds() -> None:
    does = {"a": (1, 2), "b": (None,), "c": (3, 4, 5)}
    assert plan(7, 50, does) == plan(7, 50, does)
    assert plan(7, 50, does) != plan(8, 50, does)
    assert {step.name for step in plan(7, 3, does)} == set(does)


def run_of(*pictures: tuple[int, float, float], camera: str = CAMERAS[0]) -> Run:
    """Number, what others had meanwhile and what our threads waited for a core (both in pictures), each since the start; on time."""
    video = VideoFormat(640, 360, 30.0)
    made = Run(video, Parameters.parse(camera, CaptureRequest()))
    for number, elsewhere, waited in pictures:
        at_ns = number * video.period_ns
        machine = Machine(elsewhere * video.period_ns, waited * video.period_ns)
        made.pictures.append(Delivered(number, at_ns, at_ns, machine, {}))
    return made


STARTED = ((0, 0.0, 0.0), (1, 0.0, 0.0))


@pytest.mark.parametrize(
    ("after", "stalls"),
    [
        ((4, 0, 0), 0),  # two are missing
        ((5, 0, 0), 1),
        ((5, 9, 0), 1),  # others were busy and we waited for no core: a lock, a disk, a thread
        ((5, 0, 9), 1),  # our own threads kept each other from the cores
        ((5, 2, 2), 0),
        ((40, 2, 2), 1),  # what others had does not explain it
        ((40, 40, 40), 0),
    ],
)
def test_what_the_machine_has_cost_is_no_stall_and_all_else_is(after: tuple[int, float, float], stalls: int) -> None:
    assert sum(hole.is_stall for hole in run_of(*STARTED, after).holes()) == stalls


def test_a_machine_that_was_stopped_is_no_stall() -> None:
    stopped = run_of(*STARTED, (9, 0, 0))
    last = stopped.pictures[-1]
    assert [hole.is_stall for hole in stopped.holes()] == [False, True]
    stopped.pictures[-1] = replace(last, machine=replace(last.machine, frozen_ns=6 * stopped.video.period_ns))
    assert [hole.is_stall for hole in stopped.holes()] == [False, False]


def test_what_kept_another_process_asleep_is_no_stall(tmp_path: Path) -> None:
    run = run_of(*STARTED, (9, 0, 0))
    period_ns = run.video.period_ns
    assert [hole.is_stall for hole in run.holes([(0, period_ns), (8 * period_ns, 9 * period_ns)])] == [False, True]
    assert [hole.is_stall for hole in run.holes([(period_ns, 8 * period_ns)])] == [False, False]
    last = run.pictures[-1]
    run.pictures[-1] = replace(last, machine=replace(last.machine, worked_ns=7 * period_ns))  # by our own load
    assert [hole.is_stall for hole in run.holes([(period_ns, 8 * period_ns)])] == [False, True]
    metronome = Metronome(tmp_path / "late")
    metronome.close()
    (tmp_path / "late").write_text("10 30\n5 20\n40 50\n12 15\n7")
    assert metronome.late() == [(5, 20), (20, 30), (40, 50)]


def test_what_the_camera_did_not_make_is_not_due() -> None:
    """It stands still from the 15th picture to the 30th."""
    camera = CAMERAS[3]
    assert [hole.pictures for hole in run_of(*STARTED, (30, 0, 0), camera=camera).holes()] == [0, 13]
    given_up = run_of(*STARTED, (60, 0, 0))
    given_up.given_up_ns = 5 * given_up.video.period_ns
    assert [hole.pictures for hole in given_up.holes()] == [0, 3]


def test_the_machine_s_clock_counts_on_when_threads_end() -> None:
    clock = MachineClock()
    seen = [clock.now()]
    for _ in range(20):
        thread = threading.Thread(target=lambda: sum(range(100_000)))
        thread.start()
        seen.append(clock.now())
        thread.join()
        seen.append(clock.now())
    waits = [machine.waited_ns for machine in seen]
    assert waits == sorted(waits)
    assert all(before.cost_ns(after) >= 0 for before, after in itertools.pairwise(seen))


@pytest.mark.timeout(240 + 8 * STEPS)
def test_a_monkey_at_the_window(window: Window, qtbot: Any, tmp_path: Path) -> None:
    """Everything that was found is told at once: what is due to one operation may be told by another."""
    complaints = Complaints()
    monkey = Monkey(window, qtbot, tmp_path, ("Soft", "Hopper", "Small"), ("mesh", "inswapper_128"))
    print(f"\nFFRT_SEED={SEED} FFRT_MONKEY={STEPS}", flush=True)
    steps = plan(SEED, STEPS, monkey.does)
    rests: list[Held] = []
    found: list[str] = []
    qtbot.waitUntil(lambda: len(window.face.tiles) == 2, timeout=60_000)
    with complaints.listening():
        try:
            for number, step in enumerate([*steps, *again(steps)], 1):
                print(f"{number:4} {step}", flush=True)
                monkey.do(step)
                if number % REST_EVERY == 0 or number == STEPS:
                    rests.append(monkey.rest())
                    print(f"     {rests[-1]}", flush=True)
        except Exception as error:
            found.append("".join(traceback.format_exception(error)))
        finally:
            monkey.close()
    found += complaints.heard
    found += [f"said: {text}" for text in monkey.said if text and "was unplugged" not in text]
    stalls = monkey.stalls()
    print(holes(monkey), *stalls, sep="\n")
    found += stalls if STEPS > SHORT else []  # nothing in the suite depends on the clock
    found += leaks(rests)
    assert not found, f"{len(found)} found by seed {SEED}:\n" + "\n".join(found)


def again(steps: list[Step]) -> list[Step]:
    """The last of them two times more: what was made when it was first needed is made by then, and what grows all the same is lost."""
    return steps[-AGAIN:] * 2 if len(steps) > SHORT else []


def leaks(rests: list[Held]) -> list[str]:
    """A sentence each. From the middle on: some of the window is made when it is first needed."""
    if not rests:
        return []
    half = rests[(len(rests) - 1) // 2 :]
    first, last = half[0], half[-1]
    found = []
    if last.threads != first.threads:
        found.append(f"threads: {first.threads} became {last.threads}")
    for name in ("system_threads", "files"):
        if getattr(last, name) > getattr(first, name):
            found.append(f"{name}: {[getattr(rest, name) for rest in rests]}")
    if len(rests) * REST_EVERY < 3 * AGAIN:
        return found
    for name in ("widgets", "objects"):
        counts = [getattr(rest, name) for rest in rests]
        more = getattr(last, name) - getattr(first, name)
        if getattr(last, name).total() > getattr(first, name).total():
            found.append(f"{name}: {[count.total() for count in counts]}; more {dict(more)}")
    before, once, twice = (rest.resident_mb for rest in rests[-1 - 2 * AGAIN // REST_EVERY :: AGAIN // REST_EVERY])
    if os.environ.get("MALLOC_ARENA_MAX") == "1" and min(once - before, twice - once) > GROWTH_MB * AGAIN:
        grown = (last.python - first.python).most_common(8)
        found.append(f"resident memory, MB: {[round(rest.resident_mb) for rest in rests]}; more {grown}")
    return found


def holes(monkey: Monkey) -> str:
    """How many holes there were, by their length."""
    runs, late = monkey.stamps.runs, monkey.metronome.late()
    found = [hole for run in runs for hole in run.holes(late)]
    count = collections.Counter(hole.pictures for hole in found)
    excused = sum(hole.is_long and not hole.is_stall for hole in found)
    return f"{len(runs)} runs; pictures missing in a row: times {dict(sorted(count.items()))}; {excused} long ones excused"

"""Hotkeys that work everywhere: on a real X server where there is one, and in words where they cannot be."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from app.hotkeys import KEYS, problem, shown_keys

PATIENCE_MS = 60_000
HAS_PYNPUT = importlib.util.find_spec("pynput") is not None

PRESSES = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from app.hotkeys import KEYS, Hotkeys
from Xlib import X, XK, display
from Xlib.ext import xtest

heard, all_heard = [], threading.Event()
wanted = ["live", "face 3", "snapshot"]

def hear(name):
    heard.append(name)
    if len(heard) == len(wanted):
        all_heard.set()

keys = Hotkeys()
acts = {name: lambda name=name: hear(name) for name in KEYS}
keys.start(acts)
keys.start(acts)
screen = display.Display()

def press(*names):  # as a keyboard does: pynput does not count what other programs send
    codes = [screen.keysym_to_keycode(XK.string_to_keysym(name)) for name in names]
    for code in codes:
        xtest.fake_input(screen, X.KeyPress, code)
    for code in reversed(codes):
        xtest.fake_input(screen, X.KeyRelease, code)
    screen.sync()

press("l")  # alone it is nobody's
for key in ("l", "3", "s"):
    press("Control_L", "Alt_L", key)
assert all_heard.wait(30), heard
assert heard == wanted, heard
keys.stop()
keys.stop()
assert not [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
print("heard")
"""


def test_keys_are_shown_as_people_write_them() -> None:
    assert shown_keys("live") == "Ctrl+Alt+L"
    assert shown_keys("face 9") == "Ctrl+Alt+9"
    assert len(set(KEYS.values())) == len(KEYS)


def test_wayland_is_said_with_what_helps_there() -> None:
    for environment in ({"XDG_SESSION_TYPE": "wayland", "DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}):
        assert "ffrt ctl" in problem(environment, "linux")
    assert "X server" in problem({}, "linux")


def test_what_is_missing_is_said() -> None:
    said = problem({"DISPLAY": ":0"}, "linux")
    assert ("ffrt[hotkeys]" in said) is not HAS_PYNPUT
    assert bool(problem({}, "win32")) is not HAS_PYNPUT


@pytest.mark.skipif(not HAS_PYNPUT or shutil.which("xvfb-run") is None, reason="no pynput or no Xvfb")
def test_keys_are_heard_on_an_x_server() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("WAYLAND_DISPLAY", "XDG_SESSION_TYPE")}
    command = ["xvfb-run", "-a", sys.executable, "-c", PRESSES, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.stdout.strip() == "heard", done.stderr


# --- the window ---


@pytest.fixture
def window(qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("pytestqt")
    from app.gui import theme
    from app.gui.window import Window
    from app.settings import InputSettings, Settings
    from app.state import State, StateFile

    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    theme.apply(qapp, theme.LIGHT)
    made = Window(Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30")), theme.LIGHT, memory=(StateFile(), State()))
    made.show()
    yield made
    made.close()


@pytest.mark.skipif(importlib.util.find_spec("PySide6") is None, reason="no PySide6")
def test_they_are_off_and_a_switch_that_cannot_work_is_grey_and_says_why(qtbot: Any, window: Any) -> None:
    card = window.hotkeys
    assert not card.switch.isChecked()
    why = problem(os.environ)
    assert card.switch.isEnabled() is not bool(why)
    from app.gui.cards.hotkeys import REASONS

    assert card.reason.text() == (REASONS[why] if why else "")
    assert {problem({"DISPLAY": ":0", "WAYLAND_DISPLAY": "x"}, "linux"), problem({}, "linux")} < set(REASONS)


@pytest.mark.skipif(importlib.util.find_spec("PySide6") is None, reason="no PySide6")
def test_a_key_does_what_the_windows_own_does(qtbot: Any, window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.gui.live import LiveState

    worn: list[int] = []
    monkeypatch.setattr(window.face, "wear_number", worn.append)
    window.hotkeys.pressed.emit("face 4")
    qtbot.waitUntil(lambda: worn == [4], timeout=PATIENCE_MS)
    window.hotkeys.pressed.emit("live")
    qtbot.waitUntil(lambda: window.state is LiveState.LIVE, timeout=PATIENCE_MS)
    window.hotkeys.pressed.emit("live")
    qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)

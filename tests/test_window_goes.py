"""A closed window is gone, with all that it showed: Qt keeps nothing that the garbage collector cannot see."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from conftest import delete_windows

from app.gui import theme
from app.gui.live import LiveState
from app.gui.window import Window
from app.settings import InputSettings, Settings

PATIENCE_MS = 60_000


@pytest.mark.parametrize("live", [False, True])
def test_a_window_that_was_closed_is_gone(qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: bool) -> None:
    monkeypatch.setenv("FFRT_CONFIG", str(tmp_path / "config"))
    gone = weakref.ref(used_and_closed(qtbot, live))
    delete_windows()
    gc.unfreeze()  # what a first start loads is out of the collector's sight, and this window with it
    gc.collect()
    assert gone() is None


def used_and_closed(qtbot: Any, live: bool) -> Window:
    window = Window(Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30")), theme.LIGHT)
    window.show()
    qtbot.waitUntil(lambda: len(window.face.tiles) >= 2, timeout=PATIENCE_MS)
    if live:
        window.face.wear_number(1)
        with qtbot.waitSignal(window.preview.shown, timeout=PATIENCE_MS):
            window.toggle_live()
        window.toggle_live()
        qtbot.waitUntil(lambda: window.state is LiveState.IDLE, timeout=PATIENCE_MS)
    window.close()
    return window

"""A start waits for nothing it does not use: what each of its steps may load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ON_PICTURES = {"av", "cv2", "numba", "numpy", "onnxruntime", "PIL", "PySide6"}
"""Packages that work on them."""

ASKED_FOR_BY_NAME = {
    "app.presets",
    "app.gallery",
    "app.addresses",
    "app.models",
    "engines.build",
    "engines.kit",
    "httpx",
    "onnx",
    "platformdirs",
}
"""What the embedded default has no need of: presets, kept faces and addresses, and the user's own models."""

LIVE = """
from pathlib import Path
from app.demo import DEMO_PHOTO
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, Settings, SourceSettings
LiveSession(
    Settings(
        source=SourceSettings(photos=(DEMO_PHOTO,)),
        input=InputSettings(spec="synthetic:size=320x240,frames=1"),
        output=OutputSettings(null=True),
    )
).close()
"""


@pytest.mark.parametrize(
    ("step", "needless"),
    [
        ("import app.cli", ON_PICTURES | ASKED_FOR_BY_NAME),
        ("import app.cli, engines.detect.blazeface, engines.landmarks.facemesh", ASKED_FOR_BY_NAME),
        (f"import app.cli, app.run\n{LIVE}", ASKED_FOR_BY_NAME | {"app.control.door", "app.studio", "pillow_heif", "PySide6"}),
    ],
    ids=["help and lists", "the embedded models", "the embedded default live"],
)
def test_loads_nothing_needless(step: str, needless: set[str]) -> None:
    check(step, needless)


def test_the_window_loads_nothing_that_only_going_live_takes() -> None:
    pytest.importorskip("PySide6")
    check("import app.gui.application", {"numba", "onnxruntime", "engines.build", "engines.kit", "httpx", "onnx", "pillow_heif"})


def check(step: str, needless: set[str]) -> None:
    code = f"import sys\n{step}\nprint(sorted(set({sorted(needless)}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"

"""The preview: where the picture lies, what mouse and keyboard do, that nothing is drawn when nobody sees it, and both ways of drawing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
pytest.importorskip("pytestqt")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from app.gui import theme
from app.gui.canvas import Scene
from app.gui.preview import STEP, STRIDE, Preview
from rt.frame import FaceState, Frame, TrackedFace
from rt.sinks.preview import Picture, PreviewSink
from tests.faces import face_at

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT = 320, 180


def picture(*faces: TrackedFace, seq: int = 0) -> Frame:
    """Red left, blue right, a white stripe on top; before the work all is inverted."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[:, : WIDTH // 2], pixels[:, WIDTH // 2 :], pixels[: HEIGHT // 4] = (0, 0, 255), (255, 0, 0), 255
    return Frame(pixels, seq, 0, faces=faces)


def face(number: int, x: float, y: float, size: float = 20) -> TrackedFace:
    return TrackedFace(number, face_at(x, y, size), FaceState.SEEN, 1.0)


@pytest.fixture
def preview(qtbot: Any) -> Iterator[Preview]:
    made = Preview(PreviewSink(), lambda: theme.LIGHT, "software")
    made.resize(640, 400)
    made.show()
    qtbot.waitExposed(made)
    made.set_running(True)
    yield made
    made.set_running(False)
    made.hide()


def give(preview: Preview, qtbot: Any, frame: Frame) -> None:
    with qtbot.waitSignal(preview.shown):
        preview._sink.before(Frame(255 - frame.pixels, frame.seq, 0))
        preview._sink.write(frame)


def colour(preview: Preview, x: float, y: float) -> tuple[int, int, int]:
    found = preview.grab().toImage().pixelColor(int(x), int(y))
    return found.red(), found.green(), found.blue()


RED, BLUE, BLACK = (255, 0, 0), (0, 0, 255), (0, 0, 0)


def test_letterboxed_in_black_and_in_its_own_colours(preview: Preview, qtbot: Any) -> None:
    give(preview, qtbot, picture())
    assert preview.area().getRect() == (0, 20, 640, 360)
    assert colour(preview, 320, 5) == BLACK
    assert colour(preview, 320, 395) == BLACK
    assert (colour(preview, 160, 200), colour(preview, 480, 200)) == (RED, BLUE)


def test_mirror_also_turns_the_picture_that_is_there(preview: Preview, qtbot: Any) -> None:
    give(preview, qtbot, picture())
    preview.set_option("mirrored", True)
    assert (colour(preview, 160, 200), colour(preview, 480, 200)) == (BLUE, RED)
    give(preview, qtbot, picture(seq=1))
    assert (colour(preview, 160, 200), colour(preview, 480, 200)) == (BLUE, RED)


def test_actual_size_shows_a_pixel_for_a_pixel(preview: Preview, qtbot: Any) -> None:
    preview.set_option("actual_size", True)
    give(preview, qtbot, picture())
    assert preview.area().getRect() == (160, 110, WIDTH, HEIGHT)
    image = preview.grab().toImage()
    assert image.pixelColor(319, 200).name() == "#ff0000"
    assert image.pixelColor(320, 200).name() == "#0000ff"


def test_the_split_is_dragged_by_mouse_and_moved_by_keys(preview: Preview, qtbot: Any) -> None:
    preview.set_split(0.5)
    give(preview, qtbot, picture())
    assert (colour(preview, 160, 200), colour(preview, 480, 200)) == ((0, 255, 255), BLUE)
    QTest.mousePress(preview, Qt.MouseButton.LeftButton, pos=QPoint(322, 200))
    QTest.mouseMove(preview, QPoint(400, 200))
    QTest.mouseMove(preview, QPoint(512, 200))
    QTest.mouseRelease(preview, Qt.MouseButton.LeftButton, pos=QPoint(512, 200))
    assert preview.split == pytest.approx(0.8)
    assert colour(preview, 480, 200) == (255, 255, 0)
    QTest.keyClick(preview, Qt.Key.Key_Left)
    assert preview.split == pytest.approx(0.8 - STEP)
    QTest.keyClick(preview, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert preview.split == pytest.approx(0.8 - STEP + STRIDE)
    QTest.keyClick(preview, Qt.Key.Key_End)
    QTest.keyClick(preview, Qt.Key.Key_Right)
    assert preview.split == 1.0
    preview.set_split(None)
    assert not preview._sink.wanted.before


def test_a_click_picks_the_face_under_it_mirrored_or_not(preview: Preview, qtbot: Any) -> None:
    picked: list[TrackedFace] = []
    preview.face_picked.connect(picked.append)
    give(preview, qtbot, picture(face(7, 80, 90), face(8, 240, 90)))
    QTest.mouseClick(preview, Qt.MouseButton.LeftButton, pos=QPoint(160, 200))
    preview.set_option("mirrored", True)
    QTest.mouseClick(preview, Qt.MouseButton.LeftButton, pos=QPoint(160, 200))
    QTest.mouseClick(preview, Qt.MouseButton.LeftButton, pos=QPoint(320, 200))
    assert [face.id for face in picked] == [7, 8]


def test_outlines_and_landmarks_lie_on_the_face(preview: Preview, qtbot: Any) -> None:
    give(preview, qtbot, picture(face(1, 240, 90)))
    plain = np_image(preview)
    for option in ("outlines", "landmarks"):
        preview.set_option(option, True)
        changed = np.argwhere((np_image(preview) != plain).any(-1))
        preview.set_option(option, False)
        points = face_at(240, 90, 20)[:, :2] * 2 + [0, 20]
        assert len(changed) > 100
        assert (changed[:, ::-1].min(0) >= points.min(0) - 5).all()
        assert (changed[:, ::-1].max(0) <= points.max(0) + 5).all()


def np_image(preview: Preview) -> np.ndarray:
    image = preview.grab().toImage().convertToFormat(preview.grab().toImage().Format.Format_RGB32)
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)[..., :3].copy()


def test_nothing_is_made_while_nobody_sees_it(preview: Preview, qtbot: Any) -> None:
    shown: list[Picture] = []
    preview.shown.connect(shown.append)
    preview.hide()
    qtbot.waitUntil(lambda: not preview._sink.wanted.visible)
    preview._sink.write(picture(seq=5))
    preview.show()
    qtbot.waitUntil(lambda: preview._sink.wanted.visible)
    preview.showMinimized()
    qtbot.waitUntil(lambda: not preview._sink.wanted.visible)
    preview._sink.write(picture(seq=6))
    preview.showNormal()
    qtbot.waitUntil(lambda: preview._sink.wanted.visible)
    give(preview, qtbot, picture(seq=7))
    assert [one.seq for one in shown] == [7]


def test_full_screen_and_back_by_key_double_click_and_escape(qtbot: Any) -> None:
    from PySide6.QtWidgets import QVBoxLayout, QWidget

    window = QWidget()
    preview = Preview(PreviewSink(), lambda: theme.LIGHT, "software")
    QVBoxLayout(window).addWidget(preview)
    window.show()
    qtbot.addWidget(window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    for go, back in ((Qt.Key.Key_F11, Qt.Key.Key_Escape), (None, Qt.Key.Key_F11)):
        QTest.keyClick(preview, go) if go else QTest.mouseDClick(preview, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: preview.isFullScreen())
        assert preview.window() is preview
        qtbot.waitUntil(lambda: preview.isActiveWindow())
        QTest.keyClick(preview, back)
        qtbot.waitUntil(lambda: not preview.isFullScreen() and preview.window() is window)
    preview.toggle_full_screen()
    preview.close()  # as a window manager does it: the picture goes back, it is not gone
    assert preview.window() is window
    assert preview.isVisible()


@given(
    st.integers(2, 4000),
    st.integers(2, 4000),
    st.integers(10, 3000),
    st.integers(10, 3000),
    st.sampled_from([1, 1.25, 1.5, 2]),
    st.booleans(),
)
def test_the_picture_lies_on_whole_pixels_of_the_screen(
    width: int, height: int, wide: int, high: int, ratio: float, actual_size: bool
) -> None:
    scene = Scene(lambda: theme.LIGHT, actual_size=actual_size)
    scene.picture = Picture(np.empty((1, 1, 4), np.uint8), None, False, (width, height), (), 0, 0)
    area = scene.area(wide, high, ratio)
    for value in area.getRect():
        assert value * ratio == pytest.approx(round(value * ratio), abs=1e-6)
    if actual_size:
        assert area.width() * ratio == pytest.approx(width)
    else:
        assert area.left() * ratio >= -1e-6
        assert area.right() * ratio <= round(wide * ratio) + 1e-6
    corner = scene.place(area).map(QPointF(width, 0))
    assert corner.x() == pytest.approx(area.right(), abs=0.01)


BOTH_WAYS = """
import sys
import numpy as np
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication
from app.gui import theme
from app.gui.preview import Preview
from rt.frame import Frame
from rt.sinks.preview import PreviewSink

def wait(ms):
    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()

def screen():
    wait(300)
    image = application.primaryScreen().grabWindow(0).toImage().convertToFormat(image_format)
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)[:360, :640, :3].copy()

application = QApplication([])
from PySide6.QtGui import QImage
image_format = QImage.Format.Format_RGB32
shots = []
for drawing in ("software", "gpu"):
    preview = Preview(PreviewSink(), lambda: theme.LIGHT, drawing)
    print(preview.drawing)
    preview.setGeometry(0, 0, 640, 360)
    preview.show()
    preview.set_running(True)
    preview.set_split(0.25)
    rows, columns = np.mgrid[0:180, 0:320]
    pixels = np.stack([columns * 255 // 320, rows * 255 // 180, np.full_like(rows, 80)], -1).astype(np.uint8)
    preview._sink.before(Frame(255 - pixels, 0, 0))
    preview._sink.write(Frame(pixels, 0, 0))
    shots.append(screen())
    preview.set_option("mirrored", True)
    shots.append(screen())
    preview.toggle_full_screen()
    wait(100)
    preview.toggle_full_screen()
    preview.setGeometry(0, 0, 640, 360)
    shots.append(screen())
    preview.hide()
np.savez(sys.argv[1], *shots)
"""


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="no Xvfb: nothing to draw on")
def test_the_card_draws_what_the_processor_draws(tmp_path: Path) -> None:
    """With Mesa's software renderer for a card; the preview alone is on the screen."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(ROOT)}
    command = ["xvfb-run", "-a", "-s", "-screen 0 800x600x24", sys.executable, "-c", BOTH_WAYS, str(tmp_path / "shots.npz")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    if "could not load the Qt platform plugin" in done.stderr or "OpenGL is not there" in done.stdout:
        pytest.skip("this X server or this Qt cannot draw by OpenGL")
    assert done.returncode == 0, done.stderr
    assert "GPU (" in done.stdout
    shots = list(np.load(tmp_path / "shots.npz").values())
    for name, by_processor, by_card in zip(("plain", "mirrored", "back from full screen"), shots[:3], shots[3:], strict=True):
        away = np.abs(by_processor.astype(int) - by_card.astype(int)).max(-1)
        assert (away > 6).mean() < 0.004, name  # of both, the line of the split and the round corners are smoothed differently

"""What a run took it gives back when it ends, not when the garbage collector comes by: a window may start a hundred."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import HOPPER
from onnxruntime import InferenceSession

from app.parts import Parts
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, Settings, SourceSettings
from engines.family import Kind
from rt.frame import Frame, VideoFormat

SMALL = Settings(input=InputSettings(spec="synthetic:size=320x180,fps=30"), source=SourceSettings(photos=(HOPPER,)))
ENOUGH = 8
PATIENCE_S = 60.0


class Memories:
    """A sink that knows the memory of every picture without keeping it."""

    name = "memories"
    lossless = False

    def __init__(self) -> None:
        self.pictures: dict[int, weakref.ref[Any]] = {}
        self.enough = threading.Event()

    def open(self, video: VideoFormat) -> None:
        """Nothing to open."""

    def write(self, frame: Frame) -> None:
        self.pictures[frame.pixels.ctypes.data] = weakref.ref(frame.pixels)
        if frame.seq > ENOUGH:
            self.enough.set()

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called."""

    def close(self) -> None:
        """Nothing was opened."""

    def statistics(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_the_pictures_of_a_run_are_gone_when_it_is_closed() -> None:
    seen = Memories()
    session = LiveSession(SMALL, further_sinks=(seen,))
    session.start()
    assert seen.enough.wait(PATIENCE_S)
    session.close()
    del session
    assert seen.pictures
    assert [place for place, picture in seen.pictures.items() if picture() is not None] == []


@pytest.mark.usefixtures("no_collector")
def test_the_models_of_a_run_are_closed_with_it() -> None:
    others = networks()
    session = LiveSession(SMALL)
    assert len(networks()) > len(others)
    session.close()
    assert networks() == others


@pytest.mark.usefixtures("no_collector")
def test_closing_parts_closes_what_is_built_in() -> None:
    others, parts = networks(), Parts(LookSettings())
    parts.named(Kind.DETECTOR, LookSettings().detector)
    parts.named(Kind.MASK, "hands")
    assert len(networks()) > len(others)
    parts.close()
    parts.close()
    assert networks() == others


def networks() -> set[int]:
    """ONNX Runtime's own sessions that are alive. By type: of a proxy ``isinstance`` would ask what it stands for."""
    return {id(thing) for thing in gc.get_objects() if type(thing) is InferenceSession}

"""Which memory a picture goes up from: a slot, which is page-locked, and never a source's own buffer, so that none is registered."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from test_capture_media import numbered, write_clip

from engines.device.host import HostDevice
from engines.device.simulated import SimulatedDevice
from rt.audio import AudioBus
from rt.capture import media
from rt.capture.media import MediaSource
from rt.capture.request import CaptureRequest
from rt.clock import MonotonicClock
from rt.frame import Frame
from rt.lane import Lane
from rt.options import Look
from rt.ring import SlotRing


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write_clip(tmp_path / "clip.mp4", numbered(12, 320, 180), [4 * k for k in range(12)], codec="libx264")


def test_opencv_s_picture_is_the_slot_itself(clip: Path) -> None:
    """What ``rt.capture.camera`` relies on: of a camera of the size that was granted nothing is copied."""
    capture = cv2.VideoCapture(str(clip), cv2.CAP_FFMPEG)
    slot = SlotRing(1, 180, 320, HostDevice().pinned).acquire()
    assert slot is not None
    for _ in range(12):
        assert capture.grab()
        well, picture = capture.retrieve(slot.pixels)
        assert well
        assert picture is slot.pixels
    capture.release()


def test_pyav_s_picture_is_gone_before_the_next(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registration would outlive what it is of: the allocator may give the address to anybody, or back to the system."""
    alive: list[weakref.ref[Any]] = []
    convert = media._to_bgr

    def watched(*args: Any) -> np.ndarray:
        assert not any(reference() is not None for reference in alive)
        made = convert(*args)
        alive.append(weakref.ref(made))
        return made

    monkeypatch.setattr(media, "_to_bgr", watched)
    source = MediaSource(str(clip), CaptureRequest(None, None, None, None, False), MonotonicClock())
    source.live = False
    source.open(threading.Event(), AudioBus())
    into = np.empty((180, 320, 3), np.uint8)
    while source.grab() is not None:
        source.retrieve(into)
        gc.collect()
    source.close()
    assert len(alive) == 12


def test_a_lane_sends_up_the_slot_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    lane = Lane(SimulatedDevice({}), MonotonicClock())
    upload = lane._streams["upload"].upload
    monkeypatch.setattr(lane._streams["upload"], "upload", lambda pixels, image: (sent.append(id(pixels)), upload(pixels, image)))
    ring = SlotRing(2, 4, 4, lane.slot_memory)
    slots = [ring.acquire(), ring.acquire()]
    for seq, slot in enumerate(slots * 2):
        assert slot is not None
        lane.process(Frame(slot.pixels, seq, seq, slot=slot), Look())
    lane.close()
    assert sent == [id(slot.pixels) for slot in slots if slot is not None] * 2

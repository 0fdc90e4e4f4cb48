"""The face of the person filmed is never seen, on real clips: other models than the tracker's say where it is."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import HOPPER
from one_lane import OneLane

from engines.detect import detectors
from engines.identity.source import load_source
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.mask.hands import HandsMask
from engines.swap import swappers
from rt.audio import AudioBus
from rt.capture import CaptureRequest, open_spec
from rt.clock import MonotonicClock
from rt.frame import Frame
from rt.options import Look, OnLost, Role, Wear
from rt.track.options import TrackOptions
from rt.track.people import People
from rt.track.tracker import Tracker

CLIPS = {
    "face_then_noface_vfr.mov": 110,
    "noface_then_face_vfr.mov": 169,
    "hand_over_face.mp4": 160,
    "hard_cut_two_people.mp4": 100,
    "lowlight_noisy_15fps.mp4": 60,
    "head_turn_profile.gif": 23,
    "two_faces_head_tilt.gif": 56,
}
"""Clip → how many of its frames are looked at."""


def middle_of(points: np.ndarray, picture: np.ndarray) -> np.ndarray:
    """The part of ``picture`` from eyes to mouth."""
    centre, reach = points[:, :2].mean(0), np.ptp(points[:, 0]) * 0.25
    left, top = np.maximum(centre - reach, 0).astype(int)
    right, bottom = np.ceil(centre + reach).astype(int)
    return picture[top:bottom, left:right].astype(int)


@pytest.mark.parametrize("policy", [OnLost.HOLD, OnLost.BLUR])
@pytest.mark.parametrize("clip", CLIPS)
def test_no_frame_shows_the_face_that_was_filmed(clip: str, policy: OnLost, shared_data: Path) -> None:
    judge, mesh = detectors["blazeface-short"](), FaceMesh()
    swapper = swappers["mesh"]()
    identity = swapper.prepare(load_source([HOPPER], None, detectors["blazeface-full"](), mesh))
    tracker = Tracker(detectors["blazeface-full"](), FaceMesh(), TrackOptions(max_faces=2))
    source = open_spec(str(shared_data / "videos" / clip), CaptureRequest(realtime=False), MonotonicClock())
    video = source.open(threading.Event(), AudioBus())
    lane = OneLane(tracker)
    pixels = np.empty((video.height, video.width, 3), np.uint8)
    look = Look(swapper, identity, on_lost=policy, masks=(HandsMask(),))
    looked_at, shown = 0, []
    for number in range(CLIPS[clip]):
        grab = source.grab()
        if grab is None:
            break
        source.retrieve(pixels)
        before = pixels.copy()
        lane.process(Frame(pixels, number, grab.media_ns + 1), look)
        for face in find_faces(before, judge, mesh) if number % 3 == 0 else []:
            looked_at += 1
            # Compressed pictures of the same place differ by under 1 level where nothing was done, and by 5 and more by a swap
            if np.abs(middle_of(face.points, pixels) - middle_of(face.points, before)).mean() < 1:
                shown.append(number)
    lane.close()
    source.close()
    assert looked_at > 5
    assert not shown


@pytest.mark.parametrize(("clip", "someone_else"), [("two_faces_head_tilt.gif", True), ("hard_cut_two_people.mp4", False)])
def test_where_one_person_is_chosen_that_face_is_never_seen(clip: str, someone_else: bool, shared_data: Path) -> None:
    """…and a second who is there with the first is left alone; one who comes in place of the first may be the first, and is not seen."""
    judge, mesh = detectors["blazeface-short"](), FaceMesh()
    swapper = swappers["mesh"]()
    identity = swapper.prepare(load_source([HOPPER], None, detectors["blazeface-full"](), mesh))
    people = People(Tracker(detectors["blazeface-full"](), FaceMesh(), TrackOptions(max_faces=2)))
    source = open_spec(str(shared_data / "videos" / clip), CaptureRequest(realtime=False), MonotonicClock())
    video = source.open(threading.Event(), AudioBus())
    lane = OneLane(people)
    pixels = np.empty((video.height, video.width, 3), np.uint8)
    look = Look(swapper, identity, roles={1: Role()}, others=Role(Wear.LEAVE), faces=2)
    shown: list[int] = []
    for number in range(CLIPS[clip]):
        grab = source.grab()
        if grab is None:
            break
        source.retrieve(pixels)
        before = pixels.copy()
        frame = Frame(pixels, number, grab.media_ns + 1)
        lane.process(frame, look)
        for face in find_faces(before, judge, mesh) if number % 3 == 0 else []:
            if np.abs(middle_of(face.points, pixels) - middle_of(face.points, before)).mean() < 1:
                distances = {one.person: np.hypot(*(one.points[:, :2].mean(0) - face.points[:, :2].mean(0))) for one in frame.faces}
                shown.append(min(distances, key=lambda person: distances[person]))
    lane.close()
    source.close()
    assert set(shown) == ({2} if someone_else else set())

"""A lane whose device composes: the picture goes up and down once, and shows what the processor would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import HOPPER
from one_lane import OneLane

from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, RunSettings, Settings, SourceSettings
from engines.detect import detectors
from engines.device.checking import CheckingDevice
from engines.device.simulated import SimulatedDevice
from engines.errors import DeviceError
from engines.face import SourceFace
from engines.landmarks.facemesh import FaceMesh, roi_from_detection
from engines.swap.mesh.swapper import MeshSwapper
from rt.clock import MonotonicClock
from rt.compose.device import DeviceCompositor
from rt.compose.kernels.host import HostKernels
from rt.frame import FaceState, Frame, TrackedFace
from rt.lane import Lane
from rt.options import Look, OnLost
from rt.ring import SlotRing


@pytest.fixture(scope="module")
def face(astronaut: np.ndarray) -> SourceFace:
    found = detectors["blazeface-short"]().detect(astronaut)
    return SourceFace(astronaut, FaceMesh().locate(astronaut, roi_from_detection(found[0])), "astronaut.png")


def look_of(face: SourceFace, **more: Any) -> Look:
    swapper = MeshSwapper()
    return Look(swapper, swapper.prepare([face]), **more)


class Still:
    """Says the same of every picture."""

    def __init__(self, face: SourceFace, state: FaceState = FaceState.SEEN) -> None:
        self.faces = (TrackedFace(1, face.landmarks.points, state, 1.0),)

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        return self.faces


def test_it_shows_what_the_processor_would_and_moves_the_frame_once_each_way(kernels: HostKernels, face: SourceFace) -> None:
    device = CheckingDevice(SimulatedDevice({}))
    lane = Lane(device, MonotonicClock(), compositor=DeviceCompositor(kernels))
    plain = OneLane(Still(face))
    look, same = look_of(face), look_of(face)
    ring = SlotRing(2, *face.image.shape[:2], lane.slot_memory)
    for number in range(6):
        slot = ring.acquire()
        assert slot is not None
        slot.pixels[...] = face.image
        frame = Frame(slot.pixels, number, number * 33_000_000, slot=slot, faces=Still(face).faces)
        lane.process(frame, look)
        shown = plain.process(Frame(face.image.copy(), number, number * 33_000_000), same)
        assert np.abs(slot.pixels.astype(int) - shown.pixels).max() <= 2
        assert np.abs(slot.pixels.astype(int) - face.image).max() > 20
        assert frame.marks["compose"] >= 0
        slot.release()
    lane.close()
    plain.close()
    for count in device.frames:
        assert (count.bytes_up, count.bytes_down) == (face.image.nbytes,) * 2
        assert count.launches <= 12
        assert count.synchronisations == 1
    assert device.summary()["replay"] >= 1, "what comes again is a graph"


@pytest.mark.parametrize("policy", OnLost)
@pytest.mark.parametrize("state", FaceState)
def test_the_freeze_policy_is_told_the_same(policy: OnLost, state: FaceState, kernels: HostKernels, face: SourceFace) -> None:
    look = look_of(face, on_lost=policy)
    told = []
    for compositor in (None, DeviceCompositor(kernels)):
        lane = Lane(SimulatedDevice({}), MonotonicClock(), compositor=compositor)
        frame = Frame(face.image.copy(), 0, 0, faces=Still(face, state).faces)
        lane.process(frame, look)
        lane.close()
        told.append((frame.is_good, frame.wants_good))
    assert told[0] == told[1]
    assert told[0] == (policy is OnLost.FREEZE and state is FaceState.SEEN, policy is OnLost.FREEZE and state is not FaceState.SEEN)


def settings(**look: Any) -> Settings:
    return Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=320x180,fps=10"),
        look=LookSettings(masks=(), **look),
        output=OutputSettings(null=True),
        run=RunSettings(devices=("kernels",)),
    )


def test_a_session_goes_live_on_kernels(kernels: HostKernels) -> None:
    session = LiveSession(settings())
    session.start()
    try:
        while session.metrics().frames_out < 4:
            assert not session.wait(0.01)
    finally:
        session.close()
    report = session.report()
    assert report["error"] is None
    assert report["lanes"]["kernels"]["bytes_up"] == 320 * 180 * 3
    assert "compose" in report["stages_ms"]


def test_a_look_that_the_device_cannot_show_is_refused_before_it_is_worn(kernels: HostKernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceCompositor, "refusal", lambda compositor, look: "the enhancer x works on pictures of the processor alone")
    with pytest.raises(DeviceError, match=r"^kernels cannot show this look: the enhancer x works on .* choose another --device"):
        LiveSession(settings())

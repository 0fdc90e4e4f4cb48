"""The checking device finds what is out of order, and the real lane gives it nothing to find; any call may fail and the line still ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_lane import OneLane

from engines.detect import detectors
from engines.device.checking import CheckingDevice, CheckingEvent, CheckingStream, OrderError
from engines.device.host import HostDevice
from engines.errors import DeviceError
from engines.face import Landmarks
from engines.landmarks.facemesh import FaceMesh, roi_from_detection
from engines.swap.contract import SourceFace
from engines.swap.echo import echo
from engines.swap.mesh.swapper import MeshSwapper
from rt.audio import AudioBus
from rt.capture import CaptureRequest, open_spec
from rt.clock import MonotonicClock
from rt.frame import FaceState, Frame, TrackedFace
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look, OnLost
from rt.ring import SlotRing
from rt.sinks.null import NullSink
from rt.tracking import Tracking


@pytest.fixture(scope="module")
def source_face(astronaut: np.ndarray) -> SourceFace:
    found = detectors["blazeface-short"]().detect(astronaut)
    return SourceFace(astronaut, FaceMesh().locate(astronaut, roi_from_detection(found[0])), "astronaut.png")


class StandingFaces:
    """A tracker that finds the same faces in every picture."""

    def __init__(self, landmarks: Landmarks, count: int) -> None:
        shifts = [np.array([number * 12, number * 7, 0], np.float32) for number in range(count)]
        self._faces = tuple(TrackedFace(n + 1, landmarks.points + by, FaceState.SEEN, 1.0) for n, by in enumerate(shifts))

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        return self._faces


def look_of(swapper: Any, face: SourceFace) -> Look:
    return Look(swapper=swapper, identity=swapper.prepare([face]), on_lost=OnLost.FREEZE)


def run_lane(device: CheckingDevice, face: SourceFace, look: Look, frames: int = 6, faces: int = 1) -> list[np.ndarray]:
    lane = OneLane(StandingFaces(face.landmarks, faces), device)
    ring = SlotRing(3, *face.image.shape[:2], lane.lane.slot_memory)
    shown = []
    try:
        for seq in range(frames):
            slot = ring.acquire()
            assert slot is not None
            slot.pixels[:] = face.image
            lane.process(Frame(slot.pixels, seq, seq * 33_000_000, slot=slot), look)
            shown.append(slot.pixels.copy())
            slot.release()
            device.steady = seq >= 2  # every slot has had its turn
    finally:
        lane.close()
    assert ring.free == len(ring)
    return shown


@pytest.mark.parametrize("faces", [1, 2, 4])
@pytest.mark.parametrize("kind", [echo, MeshSwapper])
def test_the_lane_is_in_order_and_moves_a_frame_once_each_way(kind: Any, faces: int, source_face: SourceFace) -> None:
    device = CheckingDevice(HostDevice())
    run_lane(device, source_face, look_of(kind(), source_face), faces=faces)
    for count in device.frames:
        assert (count.bytes_up, count.bytes_down) == (source_face.image.nbytes,) * 2
        assert count.launches <= 12
        assert count.synchronisations == 1


def test_the_lane_shows_the_same_on_memory_of_the_device_as_on_the_slot(source_face: SourceFace) -> None:
    look = look_of(MeshSwapper(), source_face)
    checked = run_lane(CheckingDevice(HostDevice()), source_face, look, frames=2)
    lane = OneLane(StandingFaces(source_face.landmarks, 1))
    frame = Frame(source_face.image.copy(), 0, 0)
    lane.process(frame, replace(look_of(MeshSwapper(), source_face)))
    lane.close()
    np.testing.assert_array_equal(frame.pixels, checked[0])
    assert not np.array_equal(checked[0], source_face.image)


class Forgetful(CheckingDevice):
    """Forgets one wait: what a bug would do."""

    def __init__(self, forgotten: int) -> None:
        super().__init__(HostDevice())
        self.waits = 0
        self._forgotten = forgotten

    def stream(self, name: str) -> CheckingStream:
        device, inner = self, super().stream(name)

        class Stream(CheckingStream):
            def wait(self, event: Any) -> None:
                device.waits += 1
                if device.waits - 1 != device._forgotten:
                    super().wait(event)

        return Stream(self, name, inner._inner)


@pytest.mark.parametrize("forgotten", range(6))
def test_each_missing_wait_is_caught(forgotten: int, source_face: SourceFace) -> None:
    with pytest.raises(OrderError, match=r"before its writer's event|still in use"):
        run_lane(Forgetful(forgotten), source_face, Look(), frames=3)


def test_a_frame_that_is_not_waited_for_is_caught_when_its_slot_comes_again(
    source_face: SourceFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckingEvent, "synchronize", lambda event: None)
    with pytest.raises(OrderError, match="in flight"):
        run_lane(CheckingDevice(HostDevice()), source_face, Look(), frames=4)


def test_the_steady_state_allocates_nothing_and_waits_once() -> None:
    device = CheckingDevice(HostDevice())
    pixels = device.pinned((4, 4, 3))
    image, stream = device.mirror(pixels), device.stream("s")
    device.steady = True
    for allocate in (lambda: device.pinned((1,)), lambda: device.mirror(pixels), lambda: device.stream("t")):
        with pytest.raises(OrderError, match="steady state"):
            allocate()
    stream.upload(pixels, image)
    stream.record().synchronize()
    with pytest.raises(OrderError, match="more than once"):
        stream.record().synchronize()
    stream.close()


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_step_is_let_through_exactly_when_events_order_it(plan: list[tuple[int, bool, bool]]) -> None:
    """Against the definition: is there a path of program order and waits from the last conflicting steps to this one?"""
    device = CheckingDevice(HostDevice())
    streams = [device.stream(str(number)) for number in range(3)]
    array, reaches, accepted, last_event, frontier = np.zeros(1), [], [], None, [set(), set(), set()]  # type: ignore[var-annotated]
    for number, (which, waits, writes) in enumerate(plan):
        if waits and last_event is not None:
            streams[which].wait(last_event[0])
            frontier[which] |= last_event[1]
        conflicting = {n for n, wrote in accepted if wrote or writes}
        latest_write = max((n for n, wrote in accepted if wrote), default=-1)
        conflicting = {n for n in conflicting if n >= latest_write}
        allowed = conflicting <= frontier[which]
        try:
            streams[which].enqueue(lambda: None, reads=(array,), writes=(array,) if writes else ())
            assert allowed
        except OrderError:
            assert not allowed
            break
        accepted.append((number, writes))
        frontier[which].add(number)
        reaches.append(frontier[which])
        last_event = (streams[which].record(), set(frontier[which]))
    for stream in streams:
        stream.close()


# --- faults ---


def run_line(device: CheckingDevice) -> tuple[Line | None, Exception | None]:
    clock, metrics = MonotonicClock(), Metrics()
    nobody = StandingFaces(Landmarks(np.zeros((468, 3), np.float32), 0.0), 0)
    try:
        lane = Lane(device, clock)
    except DeviceError as error:
        return None, error
    source = open_spec("synthetic:size=64x36,fps=500,frames=3", CaptureRequest(), clock)
    line = Line(source, Tracking(nobody, metrics, clock), [lane], [NullSink(clock)], [Look()], clock, metrics, AudioBus())
    try:
        line.start()
    except DeviceError as error:
        return line, error
    assert line.wait(30)
    line.join()
    return line, line.error


CALLS = 3 + 6 + 3 * 12 + 3
"""At most: streams, slots, three frames, closing."""


@given(st.integers(0, CALLS))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whichever_call_fails_the_line_ends_in_a_known_state(number: int) -> None:
    """Threads are joined (the fixture of all tests looks), slots are free, and the error is that of the call."""
    device = CheckingDevice(HostDevice(), fail_at=number)
    line, error = run_line(device)
    if len(device.calls) > number:
        assert isinstance(error, DeviceError)
        assert f"call {number}," in str(error)
    else:
        assert error is None
    if line is not None and line._ring is not None:
        assert line._ring.free == len(line._ring)

"""A composed picture comes to the host where somebody reads it there, and not else: an encoder of the device takes it as it lies."""

from __future__ import annotations

import gc
import inspect
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from av.codec.hwaccel import HWAccel
from av.video.frame import CudaContext
from av.video.reformatter import ColorRange, Colorspace
from hypothesis import given, settings
from hypothesis import strategies as st
from small_line import FACE, MIDDLE, Grey, Keeping, Painting, Scripted

from app.settings import InputSettings, OutputSettings, RunSettings, Settings
from app.studio import Studio
from engines.device.checking import CheckingDevice
from engines.device.memory import ApartArray, Ledger
from engines.device.simulated import SimulatedDevice
from rt.audio import AudioBus, AudioQueue
from rt.clock import MonotonicClock
from rt.compose.device import DeviceCompositor
from rt.compose.kernels.checking import CheckingKernels
from rt.compose.kernels.host import HostKernels
from rt.compose.kernels.idle import IdleKernels
from rt.compose.packed import PackedPictures
from rt.delivery import NOTHING, Delivery, can_read
from rt.frame import FaceState, Frame, PlanarPicture, TrackedFace, VideoFormat
from rt.lane import Lane
from rt.line import Line
from rt.metrics import Metrics
from rt.options import Look, OnLost
from rt.ring import SlotRing
from rt.sinks.contract import Sink
from rt.sinks.encode import ToYuv, matrix_for
from rt.sinks.encoders import NVIDIA, EncoderChoice, encoders
from rt.sinks.preview import PreviewSink, Wanted
from rt.sinks.recorder import RecorderSink
from rt.tracking import Tracking

HOST_PLACE, CARD = (1, 0), (NVIDIA, 0)
PICTURE = 160 * 90 * 3
FRAMES, WARM = 48, 20
"""Of a clip, and those until its sink is open: that pushes back with 8 that wait for it, and a lane has 2."""


class Counted:
    """A lane of the checking device that counts what passes; its kernels are the host's, in memory of their own."""

    def __init__(self, kernels: HostKernels) -> None:
        self.device = CheckingDevice(SimulatedDevice({}))
        self.lane = Lane(self.device, MonotonicClock(), compositor=DeviceCompositor(CheckingKernels(kernels, self.device)))


def run(lane: Lane, sinks: Sequence[Sink], look: Look | None = None, *, frames: int | None = FRAMES, tracker: Any = None) -> Line:
    clock, metrics = MonotonicClock(), Metrics()
    tracking = Tracking(tracker or Scripted(), metrics, clock)
    line = Line(Grey(frames, clock), tracking, [lane], sinks, [look or worn()], clock, metrics, AudioBus())
    line.start()
    return line


def finish(line: Line) -> None:
    line.wait()
    line.close()
    line.join()
    assert line.error is None
    assert line._ring is not None
    assert line._ring.free == len(line._ring)


def worn(policy: OnLost = OnLost.HOLD) -> Look:
    return Look(Painting(), "white", on_lost=policy)


def recorder(path: Path, encoder: str = "libx264") -> RecorderSink:
    return RecorderSink(path, AudioQueue(1), encoder=encoder)


def recorded(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [picture.to_ndarray(format="bgr24") for picture in container.decode(video=0)]


def test_what_an_encoder_takes_where_it_lies_never_comes_down(kernels: HostKernels, tmp_path: Path) -> None:
    """libx264 stands for NVENC: the memory of the device, which the processor's hands may not reach, is its own."""
    counted, sink = Counted(kernels), recorder(tmp_path / "clip.mp4")
    finish(run(counted.lane, [sink]))
    steady = counted.device.frames[WARM:]
    assert len(steady) == FRAMES - WARM
    assert {(count.bytes_up, count.bytes_down) for count in steady} == {(PICTURE, 0)}
    assert all(count.bytes_other <= 4096 * 4 for count in steady), "pieces of less than 4 kB for a face"
    assert {count.synchronisations for count in steady} == {1}
    assert sink.statistics()["in_place"] >= FRAMES - WARM
    pictures = recorded(tmp_path / "clip.mp4")
    assert len(pictures) == FRAMES
    for picture in pictures:
        assert np.median(picture[MIDDLE]) > 245, "the swapped face, not who was filmed"
        assert abs(int(np.median(picture)) - 90) <= 5, "as near as a recording is"


def test_with_a_sink_of_the_host_beside_it_comes_down_once_for_all(kernels: HostKernels, tmp_path: Path) -> None:
    counted, sink, host, other = Counted(kernels), recorder(tmp_path / "clip.mp4"), Keeping(), Keeping()
    other.name = "other"
    finish(run(counted.lane, [sink, host, other]))
    assert {(count.bytes_up, count.bytes_down) for count in counted.device.frames} == {(PICTURE, PICTURE)}
    assert sink.statistics()["in_place"] >= FRAMES - WARM
    assert host.seqs == other.seqs == list(range(FRAMES))
    assert all((middle == 255).all() for middle in host.middles)
    assert np.median(recorded(tmp_path / "clip.mp4")[-1][MIDDLE]) > 245


def test_an_encoder_of_another_device_gets_pixels(kernels: HostKernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostKernels, "place", CARD)  # as if the lane were on a card
    counted, sink = Counted(kernels), recorder(tmp_path / "clip.mp4")
    finish(run(counted.lane, [sink]))
    assert {(count.bytes_up, count.bytes_down) for count in counted.device.frames} == {(PICTURE, PICTURE)}
    assert sink.statistics()["in_place"] == 0
    assert np.median(recorded(tmp_path / "clip.mp4")[-1][MIDDLE]) > 245


def test_nobody_reads_nothing_comes_down_and_it_comes_again_when_the_window_is_looked_at(kernels: HostKernels) -> None:
    counted, preview = Counted(kernels), PreviewSink()
    preview.wanted = Wanted(visible=False)
    line = run(counted.lane, [preview], frames=None)
    seen = threading.Event()
    preview.on_picture = seen.set
    while counted.lane.count.frames < 5:
        line.wait(0.01)
    assert counted.lane.count.bytes_down == 0
    preview.wanted = Wanted()
    assert seen.wait(20)
    picture = preview.take()
    finish_live(line)
    assert picture is not None
    assert (picture.pixels[MIDDLE][..., :3] == 255).all(), "not one that was filmed, nor black"


def finish_live(line: Line) -> None:
    line.stop()
    finish(line)


class Started(Keeping):
    """Says when it has three."""

    lossless = False

    def __init__(self) -> None:
        super().__init__()
        self.has_some = threading.Event()

    def write(self, frame: Frame) -> None:
        super().write(frame)
        if len(self.seqs) == 3:
            self.has_some.set()


def test_a_sink_that_is_switched_on_while_live_sees_no_picture_that_did_not_come_down(kernels: HostKernels, tmp_path: Path) -> None:
    counted, host = Counted(kernels), Started()
    line = run(counted.lane, [recorder(tmp_path / "clip.mp4")], frames=None)
    for _ in range(3):
        while counted.lane.count.bytes_down == counted.lane.count.frames * PICTURE:
            line.wait(0.01)
        host.has_some.clear()
        host.seqs.clear()
        line.add(host)
        assert host.has_some.wait(20)
        runner = line.remove(host)
        assert runner is not None
        assert runner.join(20)
    finish_live(line)
    assert all((middle == 255).all() for middle in host.middles)


def test_the_freeze_policy_shows_the_last_good_picture_where_it_lies(kernels: HostKernels, tmp_path: Path) -> None:
    counted, sink = Counted(kernels), recorder(tmp_path / "clip.mp4")
    lost = Scripted(lambda number: FaceState.LOST if number in (25, 26, 27) else FaceState.SEEN)
    finish(run(counted.lane, [sink], worn(OnLost.FREEZE), tracker=lost))
    assert not any(count.bytes_down for count in counted.device.frames[WARM:])
    pictures = recorded(tmp_path / "clip.mp4")
    assert len(pictures) == FRAMES
    assert all(np.median(picture[MIDDLE]) > 245 for picture in pictures)


class Changing(Keeping):
    """Takes pictures where they lie until it breaks, and pixels afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.in_place = True
        self.planar = 0

    def lie_in(self, places: frozenset[tuple[int, int]]) -> None: ...

    def wants(self, place: tuple[int, int] | None) -> Delivery:
        return Delivery(False, 601) if self.in_place and place == HOST_PLACE else Delivery()

    def write(self, frame: Frame) -> None:
        if frame.seq >= 7:
            self.in_place = False
        if not frame.is_here:
            self.planar += 1
        else:
            super().write(frame)


def test_an_encoder_that_gives_way_to_another_never_gets_what_it_cannot_read(kernels: HostKernels) -> None:
    counted, sink = Counted(kernels), Changing()
    finish(run(counted.lane, [sink]))
    assert sink.planar == 8
    assert not sink.in_place
    assert sink.seqs[-1] == FRAMES - 1
    assert all((middle == 255).all() for middle in sink.middles)


def test_pixels_that_stayed_away_are_black_and_not_who_was_filmed(kernels: HostKernels) -> None:
    lane = Counted(kernels).lane
    slot = SlotRing(1, 90, 160, lane.slot_memory).acquire()
    assert slot is not None
    slot.pixels[:] = 77
    frame = Frame(slot.pixels, 0, 0, slot=slot, faces=(TrackedFace(1, FACE, FaceState.SEEN, 1.0),))
    lane.process(frame, worn(), NOTHING)
    lane.close()
    assert not frame.is_here
    assert (frame.pixels.shape, frame.pixels.max()) == ((90, 160, 3), 0)
    assert not frame.pixels.flags.writeable


@pytest.mark.parametrize("sides", [(160, 90), (161, 91), (2, 2), (3, 2)])
def test_what_is_packed_is_the_picture(kernels: HostKernels, sides: tuple[int, int]) -> None:
    """Against FFmpeg's own conversion; chroma is averaged here and filtered there, which plain areas do not show."""
    width, height = sides
    image = np.full((height, width, 3), (200, 90, 40), np.uint8)
    compositor, device = DeviceCompositor(kernels), SimulatedDevice({})
    stream = device.stream("compute")
    picture = compositor.pack(stream, image, 709)
    stream.record().synchronize()
    stream.close()
    even = (height & ~1, width & ~1)
    assert [plane.shape for plane in picture.planes] == [even, (even[0] // 2, even[1])]
    frame = av.VideoFrame.from_dlpack(picture.planes, format="nv12")
    wanted = av.VideoFrame.from_ndarray(np.ascontiguousarray(image[: even[0], : even[1]]), format="bgr24")
    planes = wanted.reformat(format="nv12", dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG).planes
    for own, other in zip(frame.planes, planes, strict=True):
        values = [np.frombuffer(plane, np.uint8).reshape(plane.height, -1)[:, : even[1]] for plane in (own, other)]
        assert np.abs(values[0].astype(int) - values[1]).max() <= 1


def test_chroma_follows_luma_at_once_as_nvenc_reads_it() -> None:
    luma, chroma = PackedPictures(IdleKernels()).take(1280, 720)
    begin, then = (plane.__array_interface__["data"][0] for plane in (luma, chroma))
    assert then - begin == luma.strides[0] * 720
    assert luma.strides == chroma.strides == (1280, 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["take", "encode", "let go"]), st.integers(0, 5)), max_size=40))
def test_memory_comes_back_when_nobody_holds_it_and_no_sooner(plan: list[tuple[str, int]]) -> None:
    """``encode``: FFmpeg has it too, and who gave it lets go."""

    class Apart(IdleKernels):
        made = 0

        def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
            self.made += 1
            return ApartArray(np.empty(shape, dtype), Ledger())

    kernels = Apart()
    pictures, held, most = PackedPictures(kernels), [], 0
    for what, number in plan:
        if what == "take":
            planes = pictures.take(64, 32)
            taken = planes[0].__cuda_array_interface__["data"][0]
            assert taken not in [address for address, _ in held]
            held.append((taken, planes))
            most = max(most, len(held))
            del planes
        elif held and what == "encode":
            address, planes = held[number % len(held)]
            if isinstance(planes, tuple):
                held[number % len(held)] = (address, av.VideoFrame.from_dlpack(planes, format="nv12"))
            del planes
        elif held:
            held.pop(number % len(held))
    assert kernels.made == most


# --- which encoder reads where ---


class Cards:
    """A machine whose encoders refuse what it is told to: (name, place)."""

    def __init__(self, *refused: tuple[str, Any]) -> None:
        self.refused = refused

    def __call__(self, name: str, video: VideoFormat, options: Any, place: Any) -> str:
        return "no" if (name, place) in self.refused else ""


@pytest.mark.parametrize(
    ("places", "refused", "chosen", "place"),
    [
        ({CARD}, (), "h264_nvenc", CARD),
        ({CARD, (NVIDIA, 1)}, (), "h264_nvenc", CARD),
        ({CARD, (NVIDIA, 1)}, (("h264_nvenc", CARD),), "h264_nvenc", (NVIDIA, 1)),
        ({CARD}, (("h264_nvenc", CARD),), "h264_nvenc", None),
        ({CARD}, (("h264_nvenc", None),), "libx264", None),
        ({HOST_PLACE}, (), "h264_nvenc", None),
        ({HOST_PLACE}, (("h264_nvenc", None),), "libx264", HOST_PLACE),
        (set(), (), "h264_nvenc", None),
    ],
)
def test_the_encoder_reads_on_the_card_that_composes(places: set[Any], refused: Any, chosen: str, place: Any) -> None:
    choice = EncoderChoice("auto", Cards(*refused), places=frozenset(places))
    assert choice.choose(VideoFormat(320, 180, 30), lambda encoder: encoder.live) is encoders[chosen]
    assert choice.place == place


def test_who_reads_in_place_reads_its_own_matrix_and_place_alone(tmp_path: Path) -> None:
    sink = Changing()
    planes = (np.zeros((4, 4), np.uint8), np.zeros((2, 4), np.uint8))
    assert can_read(sink, PlanarPicture("nv12", planes, 601, False))
    assert not can_read(sink, PlanarPicture("nv12", planes, 709, False))
    assert not can_read(sink, None)
    assert not can_read(Keeping(), PlanarPicture("nv12", planes, 601, False))
    closed = recorder(tmp_path / "clip.mp4")
    assert closed.wants(HOST_PLACE) == Delivery(), "before it is opened nobody knows which encoder it will be"


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (av.VideoFrame.from_dlpack, "planes format cuda_context"),
        (CudaContext, "device_id primary_ctx"),
        (HWAccel, "device_type device options"),
    ],
)
def test_what_is_asked_of_pyav_exists(call: Callable[..., Any], names: str) -> None:
    """Its compiled functions say their parameters in their documentation alone."""
    try:
        said = str(inspect.signature(call))
    except (TypeError, ValueError):
        said = f"{call.__doc__}"
    assert all(name in said for name in names.split()), said


@pytest.mark.gpu
def test_nvenc_encodes_what_was_composed_on_its_card(tmp_path: Path) -> None:
    from engines.device.cuda import CudaDevice
    from rt.compose.device import on_cuda

    device = CudaDevice(0)
    with device.current():
        lane = Lane(device, MonotonicClock(), compositor=on_cuda())
    sink = recorder(tmp_path / "clip.mp4", "h264_nvenc")
    finish(run(lane, [sink]))
    gc.collect()
    assert sink.statistics()["encoder"] == "h264_nvenc"
    assert sink.statistics()["in_place"] >= FRAMES - WARM
    assert lane.count.bytes_down <= WARM * PICTURE
    pictures = recorded(tmp_path / "clip.mp4")
    assert all(np.median(picture[MIDDLE]) > 245 for picture in pictures)


def test_a_picture_of_the_moment_comes_down_when_it_is_asked_for(tmp_path: Path) -> None:
    """Through the real session: nobody looks, a recording is encoded where it lies, and a snapshot is not black."""
    studio = Studio(
        Settings(
            input=InputSettings(spec="synthetic:size=320x180,fps=30,motion=0"),
            output=OutputSettings(record=tmp_path / "clip.mp4"),
            run=RunSettings(devices=("kernels",), budget_ms=0),
        )
    )
    studio.start()
    try:
        assert studio.session is not None
        lane = studio.session.line.lanes._runners[0].lane
        for _ in range(2):
            before, frames = lane.count.bytes_down, lane.count.frames
            while lane.count.frames < frames + 20:
                studio.wait(0.01)
            assert studio.snapshot().mean() > 40
            assert lane.count.bytes_down > before
    finally:
        report = studio.stop()
    assert report is not None
    assert report["sinks"]["record"]["in_place"] > 0
    assert report["lanes"]["kernels"]["bytes_down"] < 320 * 180 * 3


@pytest.mark.parametrize("video", [VideoFormat(640, 360, 30), VideoFormat(1280, 720, 30)], ids=str)
def test_a_lane_of_the_host_and_one_of_a_device_give_an_encoder_the_same_colours(
    kernels: HostKernels, astronaut: np.ndarray, video: VideoFormat
) -> None:
    """Their frames follow one another in one stream: a level of difference would flicker, were it more than rounding."""
    image = cv2.resize(astronaut, (video.width, video.height))
    stream = SimulatedDevice({}).stream("compute")
    picture = DeviceCompositor(kernels).pack(stream, image, matrix_for(video.height).number)
    stream.record().synchronize()
    stream.close()
    there = av.VideoFrame.from_dlpack(picture.planes, format="nv12").reformat(format="yuv420p").to_ndarray()
    here = ToYuv(video)(image).to_ndarray()
    assert np.abs(there.astype(int) - here).max() <= 1

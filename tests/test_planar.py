"""Pictures that stay where they were decoded: NV12 and P010 of a decoder that is PyAV's, unpacked by the kernels on the lane's device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from test_capture_media import numbered, write_clip

from engines.device.checking import CheckingDevice
from engines.device.host import HostDevice
from engines.device.simulated import SimulatedDevice
from rt.audio import AudioBus
from rt.capture.contract import Decodes, Grab
from rt.capture.framing import FramedSource, Framing
from rt.capture.media import MediaSource
from rt.capture.nvdec import NvdecSource
from rt.capture.reconnect import ReconnectingSource
from rt.capture.request import CaptureRequest
from rt.clock import Clock, ManualClock, MonotonicClock
from rt.compose.device import DeviceCompositor
from rt.compose.kernels.host import HostKernels
from rt.errors import SourceLostError
from rt.frame import Frame, PlanarPicture, VideoFormat
from rt.lane import Lane
from rt.options import Look
from rt.ring import SlotRing


class Biplanar(MediaSource):
    """A file whose decoder leaves NV12 or P010, as NVDEC does, in the memory of the device that is the host."""

    layout = "nv12"

    def planar(self) -> PlanarPicture | None:
        return self._planar()

    def _play_once(self, offset_ns: int) -> Iterator[av.VideoFrame]:
        for frame in super()._play_once(offset_ns):
            given = frame.reformat(format=self.layout)
            given.pts, given.time_base = frame.pts, frame.time_base
            yield given


class Deep(Biplanar):
    layout = "p010le"


def opened(path: Path, kind: type[Biplanar] = Biplanar) -> Biplanar:
    source = kind(str(path), CaptureRequest(None, None, None, None, False), MonotonicClock())
    source.open(threading.Event(), AudioBus())
    return source


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write_clip(tmp_path / "clip.mp4", numbered(6, 320, 180), [40 * k for k in range(6)], codec="libx264")


@pytest.mark.parametrize("kind", [Biplanar, Deep])
def test_what_the_kernel_unpacks_is_the_picture(kernels: HostKernels, clip: Path, kind: type[Biplanar]) -> None:
    """Chroma is repeated here and interpolated by FFmpeg, which shows along edges of colour alone."""
    source, device = opened(clip, kind), HostDevice()
    stream, compositor = device.stream("upload"), DeviceCompositor(kernels)
    try:
        for _ in range(6):
            assert source.grab() is not None
            wanted, image = np.empty((180, 320, 3), np.uint8), np.full((180, 320, 3), 0xCD, np.uint8)
            source.retrieve(wanted)
            picture = source.planar()
            assert picture is not None
            assert compositor.unpack(stream, picture, image)
            stream.record().synchronize()
            off = np.abs(image.astype(int) - wanted)
            assert np.median(off) <= 1
            assert off.mean() < 3
    finally:
        stream.close()
        source.close()


@pytest.mark.parametrize(("matrix", "height"), [(601, 180), (709, 720)], ids=["small", "large"])
@pytest.mark.parametrize("full", [False, True])
def test_the_picture_says_its_matrix_and_range(tmp_path: Path, matrix: int, height: int, full: bool) -> None:
    path = tmp_path / "clip.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(25), options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 1280, height, "yuvj420p" if full else "yuv420p"
        container.mux(stream.encode(av.VideoFrame(1280, height, stream.pix_fmt)))
        container.mux(stream.encode())
    source = opened(path)
    picture = source.planar()
    source.close()
    assert picture is not None
    assert (picture.layout, picture.matrix) == ("nv12", matrix)
    assert picture.is_full_range is full


class Elsewhere:
    """A plane on a device that is not here."""

    def __init__(self, device: tuple[int, int]) -> None:
        self._device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **asked: Any) -> Any:
        raise AssertionError("what lies elsewhere is not asked for")


def test_a_picture_of_another_device_or_size_goes_up_as_any_other(kernels: HostKernels, clip: Path) -> None:
    compositor, stream = DeviceCompositor(kernels), HostDevice().stream("upload")
    source = opened(clip)
    picture = source.planar()
    assert picture is not None
    try:
        there = PlanarPicture("nv12", (Elsewhere((2, 0)), Elsewhere((2, 0))), 601, False)
        assert not compositor.unpack(stream, there, np.zeros((180, 320, 3), np.uint8))
        assert not compositor.unpack(stream, picture, np.zeros((90, 160, 3), np.uint8))
    finally:
        stream.close()
        source.close()


def test_on_a_lane_nothing_goes_up_and_the_decoder_has_its_picture_back(kernels: HostKernels, clip: Path) -> None:
    source, device = opened(clip), CheckingDevice(SimulatedDevice({}))
    lane = Lane(device, MonotonicClock(), compositor=DeviceCompositor(kernels))
    slot = SlotRing(1, 180, 320, lane.slot_memory).acquire()
    assert slot is not None
    for number in range(6):
        assert source.grab() is not None
        source.retrieve(slot.pixels)
        decoded = slot.pixels.copy()
        frame = Frame(slot.pixels, number, number, slot=slot, planar=source.planar())
        lane.process(frame, Look())
        assert frame.planar is None
        assert np.median(np.abs(slot.pixels.astype(int) - decoded)) <= 1
    lane.close()
    source.close()
    assert device.summary()["upload"] == 0
    assert (lane.count.bytes_up, lane.count.bytes_down) == (0, 6 * 320 * 180 * 3)


def test_without_a_compositor_the_host_s_picture_is_taken(clip: Path) -> None:
    lane, pixels = Lane(SimulatedDevice({}), MonotonicClock()), np.full((180, 320, 3), 7, np.uint8)
    source = opened(clip)
    frame = Frame(pixels, 0, 0, planar=source.planar())
    lane.process(frame, Look())
    lane.close()
    source.close()
    assert frame.planar is None
    assert (pixels == 7).all()
    assert lane.count.bytes_up == pixels.nbytes


@pytest.mark.parametrize(("framing", "is_there"), [(Framing(), True), (Framing(mirror=True), False)])
def test_a_picture_that_is_framed_is_not_what_was_decoded(clip: Path, framing: Framing, is_there: bool) -> None:
    source = opened(clip)
    framed = FramedSource(source, framing)
    assert isinstance(framed, Decodes)
    assert (framed.planar() is not None) is is_there
    source.close()


class Loose(Biplanar):
    """Goes off the air after two pictures, and is back, half as large where it is asked to be, when it is opened again."""

    def __init__(self, paths: list[Path], clock: Clock) -> None:
        super().__init__(str(paths[0]), CaptureRequest(None, None, None, None, False), clock)
        self._paths = iter(paths)
        self._left = 0

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._spec, self._left = str(next(self._paths)), 2
        return super().open(stop, audio)

    def grab(self) -> Grab | None:
        self._left -= 1
        if self._left < 0:
            raise SourceLostError("it went off the air")
        return super().grab()


class JumpingClock(ManualClock):
    def wait_until(self, deadline_ns: int, stop: threading.Event) -> bool:
        self.advance(max(0, deadline_ns - self.now_ns()))
        return not stop.is_set()


@pytest.mark.parametrize("size_changes", [False, True])
def test_a_source_that_is_waited_for_hands_on_what_was_decoded_and_nothing_that_stands_in(
    tmp_path: Path, clip: Path, size_changes: bool
) -> None:
    half = write_clip(tmp_path / "half.mp4", numbered(6, 160, 90), [40 * k for k in range(6)], codec="libx264")
    source = ReconnectingSource(Loose([clip, half if size_changes else clip], clock := JumpingClock()), clock)
    framed = FramedSource(source, Framing())
    framed.open(threading.Event(), AudioBus())
    pixels, there = np.empty((180, 320, 3), np.uint8), []
    while len(there) < 4 or there[-1][0]:
        grab = framed.grab()
        assert grab is not None
        framed.retrieve(pixels)
        picture = framed.planar()
        there.append((grab.stands_in, picture is not None))
        assert picture is None or picture.planes[0].height == 180
    source.close()
    assert there[:2] == [(False, True)] * 2
    assert set(there[2:-1]) == {(True, False)}
    assert there[-1] == (False, not size_changes)


def test_a_picture_that_is_lost_while_it_is_fetched_leaves_none_that_was_decoded(clip: Path) -> None:
    class Torn(Biplanar):
        def retrieve(self, into: np.ndarray) -> None:
            raise SourceLostError("it was pulled out")

    clock = JumpingClock()
    source = ReconnectingSource(Torn(str(clip), CaptureRequest(None, None, None, None, False), clock), clock)
    source.open(threading.Event(), AudioBus())
    assert source.grab() is not None
    source.retrieve(np.empty((180, 320, 3), np.uint8))
    assert source.planar() is None
    source.close()


def test_a_source_without_a_device_has_none(clip: Path) -> None:
    plain = MediaSource(str(clip), CaptureRequest(None, None, None, None, False), MonotonicClock())
    assert FramedSource(plain, Framing()).planar() is None
    assert ReconnectingSource(plain, MonotonicClock()).planar() is None


@pytest.mark.gpu
def test_nvdec_s_pictures_are_unpacked_on_the_gpu(clip: Path) -> None:
    from engines.device.cuda import CudaDevice
    from rt.compose.device import on_cuda

    device = CudaDevice(0)
    source = NvdecSource(f"nvdec:{clip}", CaptureRequest(None, None, None, None, False), MonotonicClock())
    source.open(threading.Event(), AudioBus())
    assert source.describe()["decoder"] == "NVDEC"
    with device.current():
        lane = Lane(device, MonotonicClock(), compositor=on_cuda())
    slot = SlotRing(1, 180, 320, lane.slot_memory).acquire()
    assert slot is not None
    for number in range(6):
        assert source.grab() is not None
        source.retrieve(slot.pixels)
        decoded, picture = slot.pixels.copy(), source.planar()
        assert picture is not None
        lane.process(Frame(slot.pixels, number, number, slot=slot, planar=picture), Look())
        assert np.median(np.abs(slot.pixels.astype(int) - decoded)) <= 1
    lane.close()
    source.close()
    assert lane.count.bytes_up == 0

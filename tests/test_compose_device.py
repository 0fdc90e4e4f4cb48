"""The compositor of a device, its kernels compiled for the host, against the processor's; and what a frame costs, counted."""

from __future__ import annotations

import copy
import ctypes
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engines.align import MeshAligner
from engines.detect import detectors
from engines.device.checking import CheckingDevice, OrderError
from engines.device.contract import Device
from engines.device.host import HostDevice
from engines.device.memory import HOST, place_of
from engines.device.simulated import SimulatedDevice
from engines.enhance.restore import Restorer
from engines.errors import DeviceError
from engines.face import Patch, SourceFace
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.mask.contract import Cover
from engines.mask.mouth import MouthMask
from engines.mask.shapes import Ramp, Shapes, capsules
from engines.network import Network
from engines.session import TensorSpec
from engines.swap.echo import echo
from engines.swap.mesh.swapper import MeshSwapper
from rt.clock import MonotonicClock
from rt.compose.badge import Badge
from rt.compose.device import DeviceCompositor
from rt.compose.kernels.checking import CheckingKernels
from rt.compose.kernels.contract import Size
from rt.compose.kernels.declared import Kernel
from rt.compose.kernels.host import HostKernels
from rt.compose.launches import HIDE, launches
from rt.compose.layers import Layers
from rt.compose.memory import PIECE_BYTES
from rt.frame import FaceState, Frame, TrackedFace
from rt.lane import Lane
from rt.options import Blending, Corner, Look, OnLost, Role, Wear
from tests.conftest import ASTRONAUT, HOPPER
from tests.faces import face_at


def photo_of(path: Path) -> SourceFace:
    image = open_photo(path)
    (face,) = find_faces(image, detectors["blazeface-full"](), FaceMesh())
    return SourceFace(image, face, path.name)


@pytest.fixture(scope="module")
def woman() -> SourceFace:
    return photo_of(ASTRONAUT)


@pytest.fixture(scope="module")
def man() -> SourceFace:
    return photo_of(HOPPER)


# --- looks ---


class Patches:
    """A swapper that makes patches of its own: the middle of the face, mirrored."""

    name = "patches"
    needs_photo = False

    def warm_up(self) -> None: ...

    def prepare(self, faces: Sequence[SourceFace]) -> str:
        return self.name

    def swap(self, image: np.ndarray, points: np.ndarray, identity: Any, face_id: int, captured_ns: int) -> Patch | None:
        height, width = image.shape[:2]
        left, top = np.clip(points[:, :2].min(0), 0, [width, height]).astype(int)
        right, bottom = np.clip(points[:, :2].max(0), 0, [width, height]).astype(int)
        if right <= left or bottom <= top:
            return None
        alpha = (255 * cv2.resize(np.outer(*[np.hanning(64)] * 2), (right - left, bottom - top))).astype(np.uint8)
        return Patch(np.ascontiguousarray(image[top:bottom, left:right][:, ::-1]), alpha, int(left), int(top))

    def forget(self, face_id: int) -> None: ...


class Cloudy:
    """Keeps ``engines.session.Session``: a picture that is darkened, as a restorer's network of 64 pixels."""

    inputs = (TensorSpec("input", ("batch", 3, 64, 64), np.dtype(np.float32)),)
    outputs = (TensorSpec("output", ("batch", 3, 64, 64), np.dtype(np.float32)),)
    runtime = "test"
    memory_bytes = None

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"output": feeds["input"] * np.float32(0.7) - np.float32(0.2)}

    def works_in(self, memory: str) -> bool:
        return memory == HOST

    def run_into(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        """By addresses, as a runtime does it."""
        given, made = (
            np.ctypeslib.as_array((ctypes.c_float * array.size).from_address(place_of(array).address))
            for array in (feeds["input"], results["output"])
        )
        made[:] = given * np.float32(0.7) - np.float32(0.2)

    def warm_up(self) -> None: ...

    def close(self) -> None: ...


def enhancer() -> Restorer:
    return Restorer(Network("cloudy", Cloudy()), MeshAligner(), "ffhq_512")


class Bar:
    """A mask that draws: a bar across every face, of many pieces or few."""

    name = "bar"

    def __init__(self, pieces: int = 6) -> None:
        self._pieces = pieces

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        raise AssertionError("what can be drawn is not asked")

    def shapes(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Sequence[Shapes]]:
        drawn = []
        for points in faces:
            low, high = points[:, :2].min(0), points[:, :2].max(0)
            chain = np.linspace(low, high, self._pieces + 1)
            drawn.append([Shapes(capsules([chain], 3), Ramp(127.5, 40))])
        return drawn


class AskedMouth:
    """The mouth's mask, which cannot be drawn."""

    name = "asked mouth"

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        return MouthMask().covers(image, faces)


class AskedBar(AskedMouth):
    def __init__(self, pieces: int = 6) -> None:
        self._bar = Bar(pieces)

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        def lowering(shapes: Sequence[Shapes]) -> Cover:
            from engines.mask.shapes import limit_all

            return lambda patch: limit_all(patch, shapes)

        return [lowering(shapes) for shapes in self._bar.shapes(image, faces)]


class NetworkBar(AskedBar):
    """Says that it is a network's; nobody asks it."""

    aligner = MeshAligner()
    recipe: Any = None
    network: Any = None

    def feeds(self, identity: None, count: int) -> Mapping[str, np.ndarray]:
        return {}

    def check_made(self, pictures: np.ndarray) -> None: ...


SWAPPERS = {"mesh": MeshSwapper, "echo": echo, "boosted": lambda: echo(boost=2), "patches": Patches}


def look_of(kind: str, photo: SourceFace, **changed: Any) -> Look:
    swapper = SWAPPERS[kind]()
    return Look(swapper=swapper, identity=swapper.prepare([photo]), on_lost=OnLost.BLUR, **changed)


# --- the two ways ---


def by_the_processor(frame: Frame, look: Look, drawn: Sequence[Any]) -> np.ndarray:
    """As a lane does it: it is one, over the processor. ``drawn``: the masks, in the form in which they are asked."""
    own = Frame(frame.pixels.copy(), 0, frame.captured_ns, faces=tuple(map(copy.copy, frame.faces)))
    lane = Lane(HostDevice(), MonotonicClock())
    try:
        lane.process(own, replace(look, masks=tuple(drawn)))
    finally:
        lane.close()
    return own.pixels


def by_the_kernels(kernels: HostKernels, frame: Frame, look: Look, frames: int = 1, device: Device | None = None) -> np.ndarray:
    device, compositor = device or HostDevice(), DeviceCompositor(kernels)
    stream, image = device.stream("compute"), np.full_like(frame.pixels, 0xCD)
    try:
        for _ in range(frames):
            stream.upload(frame.pixels, image)
            compositor.compose(stream, frame, image, look)
            stream.record().synchronize()
    finally:
        stream.close()
        compositor.clear()
    return image


def scene(woman: SourceFace, *places: tuple[float, float, float, float], state: FaceState = FaceState.SEEN) -> Frame:
    """The portrait on a canvas of 480 by 360, its face known; further faces of the mean shape at x, y, size, degrees."""
    matrix = np.array([[1.2, 0, -20], [0, 1.2, -30]])
    pixels = cv2.warpAffine(woman.image, matrix, (480, 360), borderMode=cv2.BORDER_REFLECT_101)
    points = woman.landmarks.points.copy() * np.float32(1.2)
    points[:, :2] += [-20, -30]
    faces = [TrackedFace(1, points, state, 1.0)]
    faces += [TrackedFace(n, face_at(*place), FaceState.SEEN, 1.0) for n, place in enumerate(places, 2)]
    return Frame(pixels, 0, 1_000_000, faces=tuple(faces))


def differences(made: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.abs(made.astype(int) - wanted)


MASKS: dict[str, tuple[list[Any], list[Any]]] = {
    "none": ([], []),
    "drawn": ([MouthMask(), Bar()], [MouthMask(), AskedBar()]),
    "asked": ([AskedMouth()], [AskedMouth()]),
    "more than there is room for": ([Bar(300)], [AskedBar(300)]),
}


@pytest.mark.parametrize(
    ("blending", "masks"),
    [*product([Blending.SOFT, Blending.SEAMLESS], MASKS), (Blending.POISSON, "drawn"), (Blending.MULTIBAND, "drawn")],
)
@pytest.mark.parametrize("kind", SWAPPERS)
def test_a_portrait_is_composed_as_by_the_processor(
    kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str, blending: Blending, masks: str
) -> None:
    frame, (drawn, asked) = scene(woman), MASKS[masks]
    look = look_of(kind, man, blending=blending, masks=tuple(drawn), opacity=0.9)
    made, wanted = by_the_kernels(kernels, frame, look), by_the_processor(frame, look_of(kind, man, blending=blending, opacity=0.9), asked)
    assert differences(made, wanted).max() <= 1
    if kind != "echo":
        assert differences(made, frame.pixels).max() > 20


@pytest.mark.parametrize("kind", ["mesh", "echo"])
def test_enhanced_it_is_the_same(kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str) -> None:
    """Where the swap differs by a level the enhancer sees that, and may make another one of it."""
    frame, look = scene(woman), look_of(kind, man, enhancer=enhancer(), masks=(Bar(),))
    made = by_the_kernels(kernels, frame, look)
    off = differences(made, by_the_processor(frame, replace(look_of(kind, man), enhancer=enhancer()), [AskedBar()]))
    assert off.max() <= 1


@pytest.mark.parametrize("blending", list(Blending))
@pytest.mark.parametrize("kind", ["mesh", "echo"])
def test_finished_it_is_the_same(kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str, blending: Blending) -> None:
    """Sharpened, of other colours, and stamped. A crop that was warped may be a level off here and there (OpenCV's rounding of halves is
    its processor's); sharpening adds up to 1.05 times (0.7 · 1.5) of that."""
    finish = {
        "sharpness": 0.7,
        "colour_match": 0.5,
        "colour_transfer": 0.3,
        "badge": Badge("AI face", Corner.TOP_RIGHT),
        "blending": blending,
    }
    frame = scene(woman)
    made = by_the_kernels(kernels, frame, look_of(kind, man, masks=(Bar(),), **finish))
    off = differences(made, by_the_processor(frame, look_of(kind, man, **finish), [AskedBar()]))
    assert off.max() <= (1 if kind == "mesh" else 3)
    assert (off > 1).mean() < 1e-3
    assert differences(made, frame.pixels)[:40].max() > 100, "the badge"


@pytest.mark.parametrize("kind", ["mesh", "echo", "boosted"])
def test_a_seam_of_any_width_is_the_same(kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str) -> None:
    """Also where it changes from one frame to the next."""
    frame, look = scene(woman), look_of(kind, man)
    device, compositor, image = HostDevice(), DeviceCompositor(kernels), np.empty_like(frame.pixels)
    stream, made = device.stream("compute"), {}
    try:
        for width in (1.0, 0.4, 1.8, 1.0):
            stream.upload(frame.pixels, image)
            compositor.compose(stream, frame, image, replace(look, seam_width=width))
            stream.record().synchronize()
            made[width] = image.copy()
            off = differences(image, by_the_processor(frame, replace(look_of(kind, man), seam_width=width), []))
            assert off.max() <= 1
    finally:
        stream.close()
        compositor.clear()
    if kind == "mesh":  # an echo is the picture itself, wherever it ends
        assert differences(made[0.4], made[1.8]).max() > 20


anywhere = st.tuples(st.floats(-60, 540), st.floats(-60, 420), st.floats(4, 110), st.floats(-180, 180))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([(2.375, 267.5, 110, 69.5625)], "mesh", 1)  # once two levels off: an alpha and a colour, each by one, of the same pixel
@given(st.lists(anywhere, min_size=1, max_size=3), st.sampled_from(["mesh", "boosted", "patches"]), st.integers(1, 4))
def test_faces_anywhere_are_composed_as_by_the_processor(
    kernels: HostKernels, woman: SourceFace, man: SourceFace, places: list[tuple[float, float, float, float]], kind: str, most: int
) -> None:
    """Over the border, too small, upside down. Those that overlap are left to the next test."""
    frame = scene(woman, *places)
    if len(Layers().of(frame.faces)) > 1:
        frame = replace(frame, faces=frame.faces[-1:])
    look = look_of(kind, man, faces=most)
    off = differences(by_the_kernels(kernels, frame, look), by_the_processor(frame, look_of(kind, man, faces=most), []))
    assert off.max() <= 1


@pytest.mark.parametrize("place", [(103.8, 103.8, 103.8, 80), (300, 170, 60, 0), (285, 152, 110, 173)], ids=str)
@pytest.mark.parametrize("kind", ["mesh", "boosted", "patches"])
def test_of_two_faces_the_nearer_covers_the_other(
    kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str, place: tuple[float, float, float, float]
) -> None:
    """Its light is that of who was filmed; a crop is taken from what the other one left: an echo of both is the picture, but for what
    resampling does twice."""
    frame = scene(woman, place)
    assert len(Layers().of(frame.faces)) == 2
    off = differences(by_the_kernels(kernels, frame, look_of(kind, man)), by_the_processor(frame, look_of(kind, man), []))
    assert off.max() <= 1


@pytest.mark.parametrize("state", [FaceState.HELD, FaceState.LOST])
def test_a_face_that_is_not_seen_is_hidden(kernels: HostKernels, woman: SourceFace, man: SourceFace, state: FaceState) -> None:
    frame, look = scene(woman, (380, 90, 30, 20), state=state), look_of("mesh", man)
    made = by_the_kernels(kernels, frame, look)
    assert differences(made, by_the_processor(frame, look_of("mesh", man), [])).max() <= 1
    assert differences(made, frame.pixels).max() > 20


@pytest.mark.parametrize("kind", ["mesh", "boosted"])
def test_everybody_gets_their_role(kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str) -> None:
    """One wears a face of their own, one is hidden, one is left alone, and who is nobody of these wears what all do."""
    places = [(90, 80, 25, 0), (400, 90, 30, 20), (400, 290, 25, 0)]
    look = look_of(kind, man)
    assert look.swapper is not None
    roles = {1: Role(Wear.SWAP, look.swapper.prepare([woman])), 2: Role(Wear.HIDE), 3: Role(Wear.LEAVE)}
    frame = scene(woman, *places)
    frame = replace(frame, faces=tuple(replace(face, person=face.id) for face in frame.faces))
    made = by_the_kernels(kernels, frame, replace(look, roles=roles))
    other = look_of(kind, man)
    assert other.swapper is not None
    wanted = by_the_processor(frame, replace(other, roles={**roles, 1: Role(Wear.SWAP, other.swapper.prepare([woman]))}), [])
    assert differences(made, wanted).max() <= 1
    left = differences(made, frame.pixels)[60:120, 370:430]
    assert not left.any(), "the one who is left alone"


def test_who_is_to_be_hidden_is_hidden_though_nobody_wears_anything(kernels: HostKernels, woman: SourceFace) -> None:
    frame = scene(woman)
    made = by_the_kernels(kernels, frame, Look(others=Role(Wear.HIDE)))
    assert differences(made, by_the_processor(frame, Look(others=Role(Wear.HIDE)), [])).max() <= 1
    assert differences(made, frame.pixels).max() > 20


def test_nobody_worn_is_nothing_done(kernels: HostKernels, woman: SourceFace) -> None:
    frame = scene(woman)
    np.testing.assert_array_equal(by_the_kernels(kernels, frame, Look()), frame.pixels)


@pytest.mark.parametrize("device", [HostDevice(), SimulatedDevice({"compute": 0.1})], ids=lambda device: device.name)
def test_recorded_it_is_the_same(kernels: HostKernels, woman: SourceFace, man: SourceFace, device: Device) -> None:
    """From the third frame on the steps are a graph. The light settles, so both ways are given as many frames."""
    frame = scene(woman)
    look, other = look_of("mesh", man, masks=(MouthMask(),)), look_of("mesh", man)
    made = by_the_kernels(kernels, frame, look, 6, device)
    for _ in range(6):
        wanted = by_the_processor(frame, other, [MouthMask()])
    assert differences(made, wanted).max() <= 1


def test_an_enhancer_of_the_processor_is_refused(kernels: HostKernels, woman: SourceFace, man: SourceFace) -> None:
    class Plain:
        name = "plain"

        def enhance(self, image: np.ndarray, points: np.ndarray) -> Patch | None:
            return None

    compositor, look = DeviceCompositor(kernels), look_of("mesh", man, enhancer=Plain())
    assert compositor.refusal(look) == "the enhancer plain works on pictures of the processor alone"
    assert not compositor.refusal(look_of("mesh", man, enhancer=enhancer()))
    many = look_of("mesh", man, masks=tuple(NetworkBar() for _ in range(17)))
    assert compositor.refusal(many) == "17 masks of networks were chosen, and a device takes 16 of one face"
    with pytest.raises(DeviceError, match="nothing draws plain on a device"):
        by_the_kernels(kernels, scene(woman), look)


class Failing(HostKernels):
    """Fails at one launch of the kernel of that name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.fails = 1
        self._name = name

    def launch(self, kernel: Kernel, threads: Size, *args: Any) -> None:
        if kernel.name == self._name and self.fails:
            self.fails -= 1
            raise DeviceError(f"{kernel.name} failed as it was asked to")
        super().launch(kernel, threads, *args)


@pytest.mark.parametrize("fails", ["mesh_raster", "mesh_draw"])
def test_after_a_frame_that_failed_the_next_is_whole(kernels: HostKernels, woman: SourceFace, man: SourceFace, fails: str) -> None:
    """What was to go up first, and what was half drawn, is not taken for done."""
    frame, look = scene(woman), look_of("mesh", man)
    device, compositor = HostDevice(), DeviceCompositor(Failing(fails))
    stream, image = device.stream("compute"), frame.pixels.copy()
    elsewhere = replace(frame, faces=(TrackedFace(1, face_at(200, 150, 90, 40), FaceState.SEEN, 1.0),))
    try:
        compositor.compose(stream, elsewhere, image, look)
        with pytest.raises(DeviceError, match="failed as it was asked to"):
            stream.record().synchronize()
        np.copyto(image, frame.pixels)
        compositor.compose(stream, frame, image, look)
        stream.record().synchronize()
    finally:
        stream.close()
    assert differences(image, by_the_processor(frame, look_of("mesh", man), [])).max() <= 1


# --- what it costs ---


class Counted:
    """A lane's three streams over the checking device, and kernels that are counted."""

    def __init__(self, kernels: HostKernels, look: Look) -> None:
        self.device = CheckingDevice(HostDevice())
        self.kernels = CheckingKernels(kernels, self.device)
        self._compositor, self.look = DeviceCompositor(self.kernels), look
        self._streams = [self.device.stream(name) for name in ("upload", "compute", "download")]
        self._images: dict[int, Any] = {}

    def process(self, frame: Frame) -> None:
        upload, compute, download = self._streams
        image = self._images.setdefault(id(frame), None)
        if image is None:
            image = self._images[id(frame)] = self.device.mirror(frame.pixels)
        self.kernels.begin_frame()
        upload.upload(frame.pixels, image)
        compute.wait(upload.record())
        self._compositor.compose(compute, frame, image, self.look)
        download.wait(compute.record())
        download.download(image, frame.pixels)
        download.record().synchronize()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


def counted(kernels: HostKernels, frame: Frame, look: Look, frames: int = 6) -> Counted:
    """After so many frames, those from the fourth on with nothing allocated. The same pixels come down as go up next."""
    lane = Counted(kernels, look)
    try:
        for number in range(frames):
            lane.device.steady = number >= 4
            lane.process(frame)
    finally:
        lane.close()
    return lane


@pytest.mark.parametrize("blending", [Blending.SOFT, Blending.MULTIBAND])
@pytest.mark.parametrize("kind", ["mesh", "echo", "boosted"])
def test_a_face_goes_up_in_small_pieces_and_nothing_else_moves(
    kernels: HostKernels, woman: SourceFace, man: SourceFace, kind: str, blending: Blending
) -> None:
    frame = scene(woman)
    look = look_of(kind, man, blending=blending, masks=(MouthMask(), Bar()), enhancer=enhancer())
    lane = counted(kernels, frame, look)
    count = lane.device.frames[-1]
    assert (count.bytes_up, count.bytes_down) == (frame.pixels.nbytes,) * 2
    assert lane.kernels.moved.up
    assert max(lane.kernels.moved.up) < PIECE_BYTES
    assert not lane.kernels.moved.down
    assert count.bytes_other == sum(lane.kernels.moved.up)
    assert count.synchronisations == 1


def test_from_the_third_frame_on_all_launches_are_one(kernels: HostKernels, woman: SourceFace, man: SourceFace) -> None:
    lane = counted(kernels, scene(woman), look_of("mesh", man, masks=(Bar(),)), frames=6)
    calls = [what for stream, what in lane.device.calls if stream == "compute"]
    assert calls.count("capture") == 1
    assert calls.count("replay") == 4
    assert lane.kernels.launched == Counter(launches("mesh")), "a graph launches the same"


def test_a_hidden_face_launches_two(kernels: HostKernels, woman: SourceFace, man: SourceFace) -> None:
    lane = counted(kernels, scene(woman, state=FaceState.LOST), look_of("mesh", man), frames=1)
    assert lane.kernels.launched == Counter(HIDE)


def test_memory_that_is_asked_for_in_the_steady_state_is_found(kernels: HostKernels, woman: SourceFace, man: SourceFace) -> None:
    """What the tests above rely on."""
    lane = Counted(kernels, look_of("mesh", man))
    lane.device.steady = True
    try:
        with pytest.raises(OrderError, match="allocated in the steady state"):
            lane.process(scene(woman))
    finally:
        lane.close()

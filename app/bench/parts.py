"""What each part costs, on one thread: the embedded models, the mesh swap, a neural swap outside of its network, the runtime layer.

One face of a given width in pictures of the usual sizes. Times are of this machine and move with what else runs on it; the report says
which machine it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from app.report import machine, versions
from engines.align import five_of_mesh, similarity, template
from engines.detect import detectors
from engines.detect.blazeface import close_canvas
from engines.device.host import HostDevice
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.landmarks.find import find_faces
from engines.mask import masks
from engines.mask.contract import Mask
from engines.session import open_session
from engines.store import embedded_model
from engines.swap import swappers
from engines.swap.contract import SourceFace, Swapper
from rt.compose.device import DeviceCompositor
from rt.compose.kernels.idle import IdleKernels
from rt.compose.lay import covers_of, lay
from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Blending, Look
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker

PORTRAIT = Path(str(files("assets") / "portraits" / "astronaut.png"))

SIZES = {"720p": (1280, 720), "1080p": (1920, 1080)}

FRAME_NS = 33_333_333


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one part, once a frame."""

    part: str
    picture: str
    face_px: int
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture with one face."""

    name: str
    face_px: int
    image: np.ndarray
    points: np.ndarray
    """float32 [468, 3] pixels."""


Task = tuple[str, Callable[[], object]]
"""What a part is called, and one round of it."""


def run_parts_bench(rounds: int, progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """JSON-ready: ``costs``, ``versions``, ``machine``. Seconds to a minute, on the calling thread."""
    costs: list[dict[str, Any]] = []
    with ExitStack() as open_parts:
        groups = list(_groups(open_parts))
        for done, (scene, tasks) in enumerate(groups):
            progress(done, len(groups), f"{tasks[0][0]}, {scene.name}, {scene.face_px} px")
            costs += [asdict(cost) for cost in _measured(scene, tasks, rounds)]
    progress(len(groups), len(groups), "done")
    return {"costs": costs, "rounds": rounds, "versions": versions(), "machine": machine()}


def _groups(open_parts: ExitStack) -> Iterator[tuple[Scene, list[Task]]]:
    """What is to be compared stands in one group: its rounds take turns, so that a machine that slows down slows all of it.

    ``open_parts``: closes what is open once all is measured.
    """
    for face_px in (300, 500):
        scene = _scene("720p", face_px)
        yield (
            scene,
            [
                ("analysis: FaceMesh from FaceMesh, smoothing", _tracking(scene)),
                ("mesh swap + blend", _swapping(scene, swappers["mesh"]())),
            ],
        )
    for name in SIZES:
        scene = _scene(name, 300)
        yield scene, [("analysis with detection", _detecting(scene))]
        yield (
            scene,
            [
                ("two warps and a hard paste", _hard_paste(scene)),
                ("neural swap, all but the network", _swapping(scene, swappers["echo"]())),
                ("  with mouth mask", _swapping(scene, swappers["echo"](), masks=(masks["mouth"](),))),
                *(
                    (f"  with {way} blending", _swapping(scene, swappers["echo"](), blending=way))
                    for way in Blending
                    if way != Blending.SOFT
                ),
            ],
        )
    scene = _scene("1080p", 300)
    yield (
        scene,
        [
            ("a frame on a device, all but its kernels: mesh", _launching(scene, swappers["mesh"](), open_parts)),
            ("  neural swap", _launching(scene, swappers["echo"](), open_parts)),
        ],
    )
    yield _scene("720p", 300), _networks()


def _scene(name: str, face_px: int) -> Scene:
    """The portrait, enlarged so that its face is ``face_px`` wide, in the middle of a picture of the size called ``name``."""
    width, height = SIZES[name]
    portrait = open_photo(PORTRAIT)
    detector, mesh = detectors["blazeface-full"](), FaceMesh()
    points = find_faces(portrait, detector, mesh)[0].points
    scale = face_px / float(np.ptp(points[:, 0]))
    x, y = points[:, :2].mean(0)
    matrix = np.array([[scale, 0, width / 2 - scale * x], [0, scale, height / 2 - scale * y]])
    image = cv2.warpAffine(portrait, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    return Scene(name, face_px, image, find_faces(image, detector, mesh)[0].points)


def _tracking(scene: Scene) -> Callable[[], object]:
    tracker = Tracker(detectors["blazeface-full"](), FaceMesh(), TrackOptions())
    clock = _Ticks()
    tracker.update(scene.image, clock())
    return lambda: tracker.update(scene.image, clock())


def _detecting(scene: Scene) -> Callable[[], object]:
    detector, mesh = detectors["blazeface-full"](), FaceMesh()

    def look() -> None:
        detector.detect(scene.image)
        mesh.locate(scene.image, roi_from_points(scene.points))

    return look


def _swapping(scene: Scene, swapper: Swapper, masks: tuple[Mask, ...] = (), blending: Blending = Blending.SOFT) -> Callable[[], object]:
    identity = swapper.prepare([SourceFace(scene.image, find_faces(scene.image, detectors["blazeface-full"](), FaceMesh())[0], scene.name)])
    out, clock = scene.image.copy(), _Ticks()

    def swap() -> None:
        patch = swapper.swap(out, scene.points, identity, 1, clock())
        assert patch is not None
        (covers,) = covers_of(masks, scene.image, [scene.points])
        lay(out, patch, covers, blending, 1.0)

    return swap


def _launching(scene: Scene, swapper: Swapper, open_parts: ExitStack) -> Callable[[], object]:
    """What a device's compositor costs the thread that gives it a frame: planning, pieces that go up, launches. Mouth mask, seamless."""
    (photo,) = find_faces(scene.image, detectors["blazeface-full"](), FaceMesh())
    identity = swapper.prepare([SourceFace(scene.image, photo, scene.name)])
    look = Look(swapper, identity, masks=(masks["mouth"](),), blending=Blending.SEAMLESS)
    stream, compositor, clock = HostDevice().stream("compute"), DeviceCompositor(IdleKernels()), _Ticks()
    open_parts.callback(stream.close)
    face, image = TrackedFace(1, scene.points, FaceState.SEEN, 1.0), scene.image.copy()

    def give() -> None:
        compositor.compose(stream, Frame(scene.image, 0, clock(), faces=(face,)), image, look)
        stream.record().synchronize()

    return give


def _hard_paste(scene: Scene) -> Callable[[], object]:
    """The least that a neural swap can do around its network, with OpenCV: no tensor, no soft edge. To compare with."""
    side, out = 128, scene.image.copy()
    matrix = similarity(five_of_mesh(scene.points), template("arcface_128", side))
    there, back = cv2.INTER_LINEAR, cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP

    def swap() -> None:
        crop = cv2.warpAffine(scene.image, matrix, (side, side), flags=there)
        cv2.warpAffine(crop, matrix, out.shape[1::-1], dst=out, flags=back, borderMode=cv2.BORDER_TRANSPARENT)

    return swap


def _networks() -> list[Task]:
    """The embedded networks bare and through ``engines.session``: the difference is what the layer costs."""
    import onnxruntime as ort

    tasks: list[Task] = []
    height, width = close_canvas(720, 1280, 192)
    opened_for = {"face_landmark": {}, "face_detection_full_range_sparse": {"N": 1, "height": height, "width": width}}
    for model, sizes in opened_for.items():
        shape = (1, sizes.get("height", 192), sizes.get("width", 192), 3)
        path, feeds = embedded_model(model), {"image": np.zeros(shape, np.uint8)}
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        for name, length in sizes.items():
            options.add_free_dimension_override_by_name(name, length)
        bare = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        tasks.append((f"{model} bare", partial(bare.run, None, feeds)))
        tasks.append((f"{model} through the layer", partial(open_session(path, sizes=sizes).run, feeds)))
    return tasks


class _Ticks:
    """Capture times a frame apart."""

    def __init__(self) -> None:
        self._at_ns = 0

    def __call__(self) -> int:
        self._at_ns += FRAME_NS
        return self._at_ns


def _measured(scene: Scene, tasks: Sequence[Task], rounds: int) -> list[Cost]:
    spent: list[list[float]] = [[] for _ in tasks]
    for number in range(-max(3, rounds // 10), rounds):  # those below 0 warm up
        for (_, task), times in zip(tasks, spent, strict=True):
            begin = time.perf_counter_ns()
            task()
            if number >= 0:
                times.append((time.perf_counter_ns() - begin) / 1e6)
    return [
        Cost(part, scene.name, scene.face_px, round(float(np.median(times)), 3), round(float(np.quantile(times, 0.95)), 3))
        for (part, _), times in zip(tasks, spent, strict=True)
    ]

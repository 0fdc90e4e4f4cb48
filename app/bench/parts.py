"""What each part costs, on one thread: the embedded models, the mesh swap, a neural swap outside of its network, the runtime layer.

One face of a given width in pictures of the usual sizes. Times are of this machine and move with what else runs on it; the report says
which machine it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from app.report import machine, versions
from engines.detect import detectors
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.landmarks.find import find_faces
from engines.mask import masks
from engines.mask.contract import Mask
from engines.session import open_session
from engines.store import embedded_model
from engines.swap import swappers
from engines.swap.contract import SourceFace, Swapper
from rt.compose.lay import lay
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


def run_parts_bench(rounds: int, progress: Callable[[int, int, str], None]) -> dict[str, Any]:
    """JSON-ready: ``costs``, ``versions``, ``machine``. Seconds to a minute, on the calling thread."""
    work = list(_work())
    costs = []
    for done, (part, scene, task) in enumerate(work):
        progress(done, len(work), f"{part}, {scene.name}, {scene.face_px} px")
        costs.append(asdict(_measured(part, scene, task, rounds)))
    progress(len(work), len(work), "done")
    return {"costs": costs, "rounds": rounds, "versions": versions(), "machine": machine()}


def _work() -> Iterator[tuple[str, Scene, Callable[[], object]]]:
    for face_px in (300, 500):
        scene = _scene("720p", face_px)
        yield "analysis: FaceMesh from FaceMesh, smoothing", scene, _tracking(scene)
        yield "mesh swap + blend", scene, _swapping(scene, swappers["mesh"]())
    for name in SIZES:
        scene = _scene(name, 300)
        yield "analysis with detection", scene, _detecting(scene)
        yield "neural swap, all but the network", scene, _swapping(scene, swappers["echo"]())
        yield "  with mouth mask", scene, _swapping(scene, swappers["echo"](), masks=(masks["mouth"](),))
        yield "  with seamless blending", scene, _swapping(scene, swappers["echo"](), blending=Blending.SEAMLESS)
    yield from _layer(_scene("720p", 300))


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


def _swapping(
    scene: Scene, swapper: Swapper, masks: tuple[Mask, ...] = (), blending: Blending = Blending.SOFT
) -> Callable[[], object]:
    identity = swapper.prepare([SourceFace(scene.image, find_faces(scene.image, detectors["blazeface-full"](), FaceMesh())[0], scene.name)])
    look, out, clock = Look(swapper, identity, masks=masks, blending=blending), scene.image.copy(), _Ticks()

    def swap() -> None:
        patch = swapper.swap(out, scene.points, identity, 1, clock())
        assert patch is not None
        lay(out, scene.points, patch, look, 1.0)

    return swap


def _layer(scene: Scene) -> Iterator[tuple[str, Scene, Callable[[], object]]]:
    """The same model bare and through ``engines.session``: the difference is what the layer costs."""
    import onnxruntime as ort

    path = embedded_model("face_landmark")
    feeds = {"image": np.zeros((1, 192, 192, 3), np.uint8)}
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    bare = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    yield "FaceMesh's network, bare ONNX Runtime", scene, partial(bare.run, None, feeds)
    yield "FaceMesh's network, through the layer", scene, partial(open_session(path).run, feeds)


class _Ticks:
    """Capture times a frame apart."""

    def __init__(self) -> None:
        self._at_ns = 0

    def __call__(self) -> int:
        self._at_ns += FRAME_NS
        return self._at_ns


def _measured(part: str, scene: Scene, task: Callable[[], object], rounds: int) -> Cost:
    for _ in range(max(3, rounds // 10)):
        task()
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        task()
        spent.append((time.perf_counter_ns() - begin) / 1e6)
    return Cost(part, scene.name, scene.face_px, round(float(np.median(spent)), 3), round(float(np.quantile(spent, 0.95)), 3))

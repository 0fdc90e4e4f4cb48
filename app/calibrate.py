"""`ffrt engines calibrate`: crops of the face before the user's own camera, as a model looks at it, for small precisions and the gate."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from app import build
from app.engine_builds import FRAMINGS, model_name, model_path
from app.errors import AppError, UsageError
from app.settings import InputSettings, LookSettings, Settings
from engines.build.crops import CROPS_MIN, SIDE, Framing, crop_of, crops_folder
from engines.errors import ModelError
from engines.family import Kind, families
from engines.folders import written_path
from engines.landmarks.facemesh import FaceMesh
from engines.store import embedded_models
from engines.wording import counted
from rt.address import shown
from rt.audio import AudioBus
from rt.capture.contract import Source
from rt.clock import MonotonicClock
from rt.frame import FaceState, TrackedFace

SCORE_MIN = 0.9
"""FaceMesh's probability from which a face is surely one (``rt.track.tracker.SCORE_SURE``)."""

WIDTH_MIN_PX = 60
"""Of a face that says something about a model's picture; smaller ones are mostly enlargement."""

PATIENCE = 3
"""So many times the seconds that were asked for are waited for good crops; then what there is has to do."""

CONSENT = (
    "The pictures show the face before your camera. They stay on the disk of this machine, in {folder}, and are sent nowhere; "
    "delete the folder to be rid of them."
)

Crop = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``crop(image, points)`` → uint8 [S, S, 3] BGR; ``image`` uint8 [H, W, 3] BGR, ``points`` float32 [468, 3] in its pixels."""


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """The words of the command line."""

    model: str
    input: InputSettings
    folder: Path | None = None
    count: int = 64
    seconds: float = 20.0

    def check(self) -> None:
        """Raises ``UsageError``."""
        if not CROPS_MIN <= self.count <= 4096:
            raise UsageError(f"--count {self.count} was given; it takes {CROPS_MIN} to 4096 crops")
        if not 0 < self.seconds <= 3600:
            raise UsageError(f"--seconds {self.seconds:g} was given; the crops are spread over more than 0 and at most 3600")

    @property
    def out(self) -> Path:
        """Where the crops go."""
        return self.folder or crops_folder(model_name(self.model))


def consent(request: CalibrationRequest) -> str:
    """What a person is told before the first picture is taken. Raises ``UsageError`` and ``ModelError`` where none could be used."""
    request.check()
    model_path(request.model)
    return CONSENT.format(folder=request.out)


def record(request: CalibrationRequest, report: Callable[[int, int, str], None]) -> dict[str, Any]:
    """Follows the face and keeps ``count`` crops, spread over ``seconds``; blocks the calling thread, on which ``report`` is called.

    JSON-ready: ``folder``, ``crops``, ``shows``, ``frames``. Raises ``UsageError``, ``AppError`` where no 32 good crops were to be had,
    and what models and sources raise. Crops that are not enough are not kept.
    """
    request.check()
    _check_folder(request.out)
    settings = Settings(input=request.input)
    shows, crop = _view(request.model)
    frames = _Frames(build.source(settings, MonotonicClock()))
    kept: list[np.ndarray] = []
    due_ns, interval_ns = 0.0, request.seconds * 1e9 / request.count
    for elapsed_ns, image, face in _faces(settings, frames, request.seconds * PATIENCE):
        if elapsed_ns >= due_ns and _is_good(face, image):
            kept.append(_sized(crop(image, face.points)))
            due_ns = elapsed_ns + interval_ns
            report(len(kept), request.count, "recording crops")
        if len(kept) == request.count:
            break
    _require(kept, frames, request)
    _write(request.out, kept)
    return {"folder": str(request.out), "crops": len(kept), "shows": shows, "frames": frames.count}


class _Frames:
    """Pictures of a source with their time since the first, and what was seen of them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.count = 0
        self.with_face = 0

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        with closing(self._source):
            video = self._source.open(threading.Event(), AudioBus())
            image = np.empty((video.height, video.width, 3), np.uint8)
            first_ns: int | None = None
            while (grab := self._source.grab()) is not None:
                self._source.retrieve(image)
                first_ns = grab.captured_ns if first_ns is None else first_ns
                self.count += 1
                yield grab.captured_ns - first_ns, image


def _faces(settings: Settings, frames: _Frames, seconds_max: float) -> Iterator[tuple[int, np.ndarray, TrackedFace]]:
    """The first face of every picture that has one, through the tracker of the line."""
    here = build.parts(settings)
    tracker = build.tracker(settings, build.detector(settings, here), FaceMesh())
    for elapsed_ns, image in frames:
        if elapsed_ns > seconds_max * 1e9:
            return
        faces = tracker.update(image, elapsed_ns)
        if faces and faces[0].state is FaceState.SEEN:
            frames.with_face += 1
            yield elapsed_ns, image, faces[0]


def _is_good(face: TrackedFace, image: np.ndarray) -> bool:
    """Sure, large enough, and wholly in the picture."""
    low, high = face.points[:, :2].min(0), face.points[:, :2].max(0)
    inside = bool((low >= 0).all() and (high < [image.shape[1], image.shape[0]]).all())
    return inside and face.score >= SCORE_MIN and float(high[0] - low[0]) >= WIDTH_MIN_PX


def _view(model: str) -> tuple[str, Crop]:
    """What the model looks at, by name, and how it is cut: as the model's own part does, or by framing."""
    if model in embedded_models():
        return _framed(FRAMINGS.get(model, Framing.FACE))
    from engines.store.catalog import load_catalog
    from engines.store.identify import identify
    from engines.store.shelf import Shelf

    path, shelf = written_path(model), Shelf()
    if path.is_file():
        kind, name = Kind(identify(path, load_catalog(), families).kind), str(path)
    elif shelf.matches(model):
        kind, name = Kind(shelf.find(model).kind), model
    else:
        raise ModelError(f"{model} is neither a file nor a model that is here; `ffrt models list` shows those that are")
    if kind is Kind.DETECTOR:
        return _framed(Framing.SCENE)
    part = build.parts(Settings(look=LookSettings(runtime="ort"))).named(kind, name)
    if not hasattr(part, "crop"):  # what looks at pictures says at which
        raise ModelError(f"{model} takes no picture, and so no crops: it is of the kind {kind} and makes numbers of numbers")
    return f"{part.name}'s own crop", part.crop


def _framed(framing: Framing) -> tuple[str, Crop]:
    return str(framing), lambda image, points: crop_of(image, points, framing)


def _sized(crop: np.ndarray) -> np.ndarray:
    """Not larger than what is read back."""
    if crop.shape[0] <= SIDE:
        return crop.copy()
    return cv2.resize(crop, (SIDE, SIDE), interpolation=cv2.INTER_AREA)


def _require(kept: list[np.ndarray], frames: _Frames, request: CalibrationRequest) -> None:
    if len(kept) >= CROPS_MIN:
        return
    looked = f"{counted(frames.count, 'picture')} of {shown(request.input.spec)}"
    if not frames.with_face:
        raise AppError(f"no face was found in {looked}; sit before the camera, well lit, or give another --input")
    raise AppError(
        f"{counted(len(kept), 'good crop')} in {looked}, and {CROPS_MIN} are needed: a face at least {WIDTH_MIN_PX} pixels wide and wholly"
        " in the picture; come nearer, give a longer clip, or --loop one"
    )


def _check_folder(folder: Path) -> None:
    """Raises ``UsageError`` before anybody has sat before a camera for nothing."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there and not an empty folder; give another --out, or delete it if you no longer need its crops")
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK):
        raise UsageError(f"{nearest} cannot be written to, where the crops are to go; give --out a folder that can be")


def _write(folder: Path, crops: list[np.ndarray]) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number, crop in enumerate(crops):
            (folder / f"{number:04d}.png").write_bytes(cv2.imencode(".png", crop)[1].tobytes())
    except OSError as error:
        raise AppError(f"the crops cannot be written to {folder}: {error.strerror}; give --out a folder that can be written") from error

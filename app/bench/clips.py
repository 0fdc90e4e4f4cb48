"""Clips and photos of a folder, as the quality bench takes them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from app.bench.measures import turned_aside
from engines.detect.contract import Detector
from engines.errors import EngineError
from engines.face import SourceFace
from engines.identity.source import load_source
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.wording import counted
from rt.audio import AudioBus
from rt.capture.media import MediaSource
from rt.capture.request import CaptureRequest
from rt.clock import ManualClock
from rt.errors import RtError

PROBES, PROBE_EVERY = 8, 12
"""A clip is judged by so many pictures, one in so many."""

CLIP_FACE_PX = 80.0
"""dlib needs a face of about this width to tell people apart."""

SOURCE_FACE_PX = 90.0

TURN_MAX = 0.3
"""``turned_aside`` up to which a photo counts as seen from the front."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of a clip."""

    pixels: np.ndarray
    """uint8 [H, W, 3] BGR."""
    media_ns: int


def pictures(path: Path) -> Iterator[Picture]:
    """Every picture of a clip, decoded as the program does. Raises ``SourceError``."""
    source = MediaSource(str(path), CaptureRequest(realtime=False), ManualClock())
    try:
        video = source.open(threading.Event(), AudioBus())
        while (grab := source.grab()) is not None:
            pixels = np.empty((video.height, video.width, 3), np.uint8)
            source.retrieve(pixels)
            yield Picture(pixels, grab.media_ns)
    finally:
        source.close()


def usable_clips(folder: Path, detector: Detector, mesh: FaceMesh, skipped: dict[str, str]) -> list[Path]:
    """Clips that show one face, large enough. Why others were left is added to ``skipped``."""
    usable = []
    for path in _files(folder):
        try:
            why = _clip_fault(path, detector, mesh)
        except RtError as error:
            why = str(error)
        if why:
            skipped[path.name] = why
        else:
            usable.append(path)
    return usable


def _clip_fault(path: Path, detector: Detector, mesh: FaceMesh) -> str | None:
    probes = [find_faces(picture.pixels, detector, mesh) for picture in islice(pictures(path), 0, PROBES * PROBE_EVERY, PROBE_EVERY)]
    if any(len(faces) != 1 for faces in probes) or not probes:
        return f"does not show one face throughout ({min(map(len, probes), default=0)} to {max(map(len, probes), default=0)})"
    width = float(np.median([np.ptp(faces[0].points[:, 0]) for faces in probes]))
    return f"the face is {width:.0f} pixels wide; {CLIP_FACE_PX:.0f} are needed" if width < CLIP_FACE_PX else None


def usable_sources(folder: Path, detector: Detector, mesh: FaceMesh, skipped: dict[str, str]) -> list[SourceFace]:
    """Photos with one face, seen from the front, large enough."""
    usable = []
    for path in _files(folder):
        try:
            face = load_source([path], None, detector, mesh)[0]
            why = _source_fault(face, detector, mesh)
        except EngineError as error:
            why = str(error)
        if why:
            skipped[path.name] = why
        else:
            usable.append(face)
    return usable


def _source_fault(face: SourceFace, detector: Detector, mesh: FaceMesh) -> str | None:
    count = len(find_faces(face.image, detector, mesh))
    width, turn = float(np.ptp(face.landmarks.points[:, 0])), turned_aside(face.landmarks.points)
    if count != 1:
        return f"shows {counted(count, 'face')}; a photo with one is needed"
    if width < SOURCE_FACE_PX:
        return f"the face is {width:.0f} pixels wide; {SOURCE_FACE_PX:.0f} are needed"
    return f"the face is turned aside ({turn:.2f}; {TURN_MAX} is accepted)" if turn > TURN_MAX else None


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))

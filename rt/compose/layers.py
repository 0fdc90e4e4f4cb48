"""In what order the faces of a frame are drawn, and which of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rt.frame import TrackedFace
from rt.options import Look
from rt.track.track import box_of, overlap

REACH = 0.6
"""How far beyond its points' box what is drawn for a face reaches, in longer sides of the box: the crops of all templates of
``engines.align``, with the head tilted any way, but for corners that are all but transparent."""

RESIZED = 1.15
"""A face keeps its place in the order until its size differs by this factor: of two of one size neither is to flicker through the other."""


class Layers:
    """Faces drawn from the back to the front: what is nearer covers what is behind it, as it does before the camera. One thread."""

    def __init__(self) -> None:
        self._sizes: dict[int, float] = {}  # id → longer side of its box, as it was when it last counted

    def of(self, faces: Sequence[TrackedFace]) -> list[list[TrackedFace]]:
        """Lists of faces that lie apart, whose crops may be taken at once; each list sees the picture as the ones before left it.

        Of two where what is drawn for one reaches the other's face, the smaller is taken for the one behind. Where two crops share
        background alone nothing is lost: both paint it as it is.
        """
        self._sizes = {face.id: self._size(face) for face in faces}
        layers: list[list[TrackedFace]] = []
        for face in sorted(faces, key=lambda face: (self._sizes[face.id], face.id)):
            depth = max((number for number, layer in enumerate(layers, 1) if any(_touch(face, other) for other in layer)), default=0)
            if depth == len(layers):
                layers.append([])
            layers[depth].append(face)
        return layers

    def _size(self, face: TrackedFace) -> float:
        box = box_of(face.points)
        now, before = float((box[2:] - box[:2]).max()), self._sizes.get(face.id)
        return before if before is not None and before / RESIZED < now < before * RESIZED else now


def by_identity(look: Look, faces: Sequence[TrackedFace]) -> list[tuple[Any, list[TrackedFace]]]:
    """Those that wear the same, together."""
    found: dict[int, tuple[Any, list[TrackedFace]]] = {}
    for face in faces:
        identity = look.role(face).identity
        found.setdefault(id(identity), (identity, []))[1].append(face)
    return list(found.values())


def reach_of(points: np.ndarray) -> np.ndarray:
    """float32 [4]: left, top, right, bottom of what may be drawn for the face at ``points`` (float32 [468, 2+]), pixels."""
    box = box_of(points)
    margin = REACH * (box[2:] - box[:2]).max()
    return box + np.array([-margin, -margin, margin, margin], np.float32)


def _touch(one: TrackedFace, other: TrackedFace) -> bool:
    pairs = ((one.points, other.points), (other.points, one.points))
    return any(overlap(reach_of(drawn), box_of(face)) > 0 for drawn, face in pairs)

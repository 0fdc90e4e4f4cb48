"""Which face is whose, from frame to frame.

A face that was there is looked for where it was (mesh from mesh); the detector runs only when one is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from engines.detect.contract import Detector
from engines.face import Landmarks
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.landmarks.find import SCORE_MIN, face_area, locate_detection
from rt.frame import FaceState, TrackedFace
from rt.track.options import TrackOptions
from rt.track.smoothing import LandmarkFilter

OVERLAP_SAME = 0.3
"""Two boxes with a higher intersection over union are one face."""

DETECT_LOST_EVERY = 2
"""While a known face is missing, the detector looks for it every so many frames; in the first one always."""

NEAR_SIZES = 1.0
"""A face that appears within so many sizes of where one was lost is that one."""

SPEED_SIZES_MAX = 0.08
"""A prediction moves at most so many face sizes a frame; it is damped by half each frame."""

THUMB = 16
CUT_LEVELS = 40.0
"""A cut: the thumbnails of two frames differ by this many grey levels on average. Turning the head makes 5 to 15."""


@dataclass(slots=True)
class _Track:
    """One face's memory."""

    id: int
    raw: np.ndarray
    """Unfiltered points of the last frame in which it was seen: where to look next."""
    shown: np.ndarray
    score: float
    seen_ns: int
    filter: LandmarkFilter
    step: np.ndarray = field(default_factory=lambda: np.zeros(2, np.float32))
    """Movement of the centre in the last frame, pixels."""
    missing: int = 0
    """Frames since it was seen."""

    @property
    def width_px(self) -> float:
        return float(np.ptp(self.raw[:, 0]))


class Tracker:
    """One thread; frames in the order of capture."""

    def __init__(self, detector: Detector, mesh: FaceMesh, options: TrackOptions) -> None:
        self._detector = detector
        self._mesh = mesh
        self._options = options
        self._tracks: list[_Track] = []
        self._next_id = 1
        self._frames = 0
        self._thumb: np.ndarray | None = None

    def configure(self, options: TrackOptions) -> None:
        """Takes effect with the next frame; faces keep their ids."""
        self._options = options

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        """The faces of ``image`` (uint8 [H, W, 3] BGR): seen, held or lost, the longest known first."""
        if self._is_cut(image):
            self._forget_places()
        for track in self._tracks:
            self._follow(track, image, captured_ns)
        self._merge_doubles()
        if self._wants_detector():
            self._detect(image, captured_ns)
        self._frames += 1
        self._tracks = [track for track in self._tracks if not self._is_over(track, captured_ns)]
        return tuple(self._report(track) for track in self._tracks)

    # --- following ---

    def _follow(self, track: _Track, image: np.ndarray, captured_ns: int) -> None:
        if track.missing > self._options.hold_frames:
            return  # the detector is to find it
        found = self._mesh.locate(image, roi_from_points(track.raw))
        if self._is_good(found):
            self._accept(track, found, captured_ns)
        else:
            self._miss(track)

    def _is_good(self, found: Landmarks) -> bool:
        return found.score > SCORE_MIN and float(np.ptp(found.points[:, 0])) >= self._options.min_face_px

    def _accept(self, track: _Track, found: Landmarks, captured_ns: int) -> None:
        if track.missing:
            track.filter.reset()
        track.filter.strength = self._options.smoothing
        shown = track.filter(found.points, captured_ns)
        track.step = (shown - track.shown)[:, :2].mean(0) if not track.missing else np.zeros(2, np.float32)
        track.raw, track.shown, track.score, track.seen_ns, track.missing = found.points, shown, found.score, captured_ns, 0

    def _miss(self, track: _Track) -> None:
        """Predicts: the last movement goes on, damped and bounded."""
        track.missing += 1
        length = float(np.hypot(*track.step))
        limit = SPEED_SIZES_MAX * track.width_px
        if length > limit:
            track.step = track.step * (limit / length)
        if track.missing <= self._options.hold_frames:
            track.shown = track.shown.copy()
            track.shown[:, :2] += track.step
        track.step = track.step * 0.5

    # --- finding ---

    def _wants_detector(self) -> bool:
        missing = [track.missing for track in self._tracks if track.missing]
        if missing:
            return min(missing) == 1 or self._frames % DETECT_LOST_EVERY == 0
        if not self._tracks:
            return True
        return len(self._tracks) < self._options.max_faces and self._frames % self._options.detect_every == 0

    def _detect(self, image: np.ndarray, captured_ns: int) -> None:
        present = [_box(track.raw) for track in self._tracks if not track.missing]
        found = []
        for detection in self._detector.detect(image):
            if any(_overlap(detection.box, box) > OVERLAP_SAME for box in present):
                continue
            face = locate_detection(image, detection, self._mesh)
            if face is not None and self._is_good(face):
                found.append(face)
        for face in sorted(found, key=face_area, reverse=True):
            self._adopt(face, captured_ns)

    def _adopt(self, face: Landmarks, captured_ns: int) -> None:
        """Gives a face that was found to the track that misses it, or to a new one while there is room."""
        track = self._missing_near(face)
        if track is not None:
            self._accept(track, face, captured_ns)
        elif sum(not t.missing for t in self._tracks) < self._options.max_faces:
            self._make_room()
            fresh = _Track(self._next_id, face.points, face.points, face.score, captured_ns, LandmarkFilter())
            self._next_id += 1
            fresh.filter.strength = self._options.smoothing
            fresh.filter(face.points, captured_ns)
            self._tracks.append(fresh)

    def _missing_near(self, face: Landmarks) -> _Track | None:
        centre = face.points[:, :2].mean(0)

        def away(track: _Track) -> float:
            return float(np.hypot(*(track.shown[:, :2].mean(0) - centre))) / max(1.0, track.width_px)

        near = [track for track in self._tracks if track.missing and away(track) < NEAR_SIZES]
        return min(near, key=away, default=None)

    def _make_room(self) -> None:
        """A newcomer takes the place of the one that has been missing longest, when the house is full."""
        if len(self._tracks) >= self._options.max_faces:
            gone = max((track for track in self._tracks if track.missing), key=lambda track: track.missing)
            self._tracks.remove(gone)

    # --- housekeeping ---

    def _merge_doubles(self) -> None:
        """Two tracks that have slid onto one face: the older keeps it."""
        kept: list[_Track] = []
        for track in self._tracks:
            seen = [other for other in kept if not other.missing and not track.missing]
            if not any(_overlap(_box(track.raw), _box(other.raw)) > 0.5 for other in seen):
                kept.append(track)
        self._tracks = kept

    def _is_over(self, track: _Track, captured_ns: int) -> bool:
        return captured_ns - track.seen_ns > self._options.lost_seconds * 1e9

    def _is_cut(self, image: np.ndarray) -> bool:
        thumb = cv2.resize(image[::8, ::8], (THUMB, THUMB), interpolation=cv2.INTER_AREA).astype(np.float32)
        before, self._thumb = self._thumb, thumb
        return before is not None and float(np.abs(thumb - before).mean()) > CUT_LEVELS

    def _forget_places(self) -> None:
        """After a cut nothing is where it was: what is found now are other faces."""
        self._tracks = []

    def _report(self, track: _Track) -> TrackedFace:
        if not track.missing:
            state = FaceState.SEEN
        else:
            state = FaceState.HELD if track.missing <= self._options.hold_frames else FaceState.LOST
        return TrackedFace(track.id, track.shown, state, track.score)


def _box(points: np.ndarray) -> np.ndarray:
    return np.concatenate([points[:, :2].min(0), points[:, :2].max(0)])


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two boxes [left, top, right, bottom]."""
    size = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    if (size <= 0).any():
        return 0.0
    shared = float(size.prod())
    return shared / float((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - shared)

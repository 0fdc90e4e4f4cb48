"""Which face is whose, from frame to frame.

A face that was there is looked for where it was (mesh from mesh); the detector runs only when one is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from engines.detect.contract import Detector
from engines.face import Landmarks, Roi
from engines.landmarks.facemesh import roi_from_detection, roi_from_points
from engines.landmarks.find import face_area
from rt.frame import FaceState, TrackedFace
from rt.track.cut import CutDetector
from rt.track.options import TrackOptions
from rt.track.track import Track, box_of, overlap

SCORE_MIN, SCORE_SURE = 0.5, 0.9
"""FaceMesh's probability from which something may be a face, and from which it surely is one.

A likely face is swapped at once; one that never was sure is dropped when it goes, not held and hidden for seconds. Measured on
the frames of 20 clips: faces give 0.999 and more, false hits of the detector at most 0.81 but for a scene fading in.
"""

FLEETING_NS = 500_000_000
"""A face that was in sight for less than this in all is not hidden after its hold: most likely it never was one."""

OVERLAP_SAME = 0.3
"""Two boxes with a higher intersection over union are one face."""

DETECT_LOST_EVERY = 2
"""While a known face is missing, the detector looks for it every so many frames; in the first one always."""

NEAR_WIDTHS = 1.0
"""A face that appears within so many face widths of where one went missing is that one."""

UNMOVED_WIDTHS = 0.03
"""After a cut a face is the one from before only if its points lie where they were, to so many widths on average."""

RETURN_S, FAST_WIDTHS = 1.0, 3.0
"""The only face in sight is the only one that went missing, for so long: within so many widths of it at first, and anywhere
once the hold is over. A bystander farther off does not get the face of somebody who is hidden for a moment."""


class Mesh(Protocol):
    """What the tracker needs of ``engines.landmarks.facemesh.FaceMesh``."""

    def locate(self, image: np.ndarray, roi: Roi) -> Landmarks: ...

    def locate_all(self, image: np.ndarray, rois: Sequence[Roi]) -> Sequence[Landmarks]: ...


class Iris(Protocol):
    """What the tracker needs of ``engines.landmarks.iris.Iris``."""

    def locate(self, image: np.ndarray, points: np.ndarray) -> np.ndarray: ...


class Tracker:
    """One thread; frames in the order of capture."""

    def __init__(self, detector: Detector, mesh: Mesh, options: TrackOptions, iris: Iris | None = None) -> None:
        """``iris``: where given, it says where the eyes of every face that is seen look."""
        self._detector = self._next_detector = detector
        self._mesh = mesh
        self._options = self._next_options = options
        self._iris = iris
        self.patience = 1
        """The detector looks for further faces so many times less often than the options say. Set between two updates."""
        self._tracks: list[Track] = []
        self._removed: list[int] = []
        self._next_id = 1
        self._frames = 0
        self._cuts = CutDetector()

    def configure(self, options: TrackOptions) -> None:
        """Takes effect with the next frame, as a whole; faces keep their ids. Any thread."""
        self._next_options = options

    def find_with(self, detector: Detector) -> None:
        """Another detector from the next frame on. Any thread, but it is the tracker's alone from then on."""
        self._next_detector = detector

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        """The faces of ``image`` (uint8 [H, W, 3] BGR): seen, held or lost, the longest known first."""
        self._options, self._detector = self._next_options, self._next_detector
        if self._cuts.is_cut(image):
            self._keep([track for track in self._tracks if self._is_unmoved(track, image)])
        self._follow(image, captured_ns)
        self._merge_doubles()
        if self._wants_detector():
            self._detect(image, captured_ns)
        self._frames += 1
        self._keep([track for track in self._tracks if not self._is_over(track, captured_ns)][: self._options.max_faces])
        faces = tuple(track.report(self._options.hold_frames) for track in self._tracks if not self._is_hidden(track))
        if self._iris is not None:
            for face in faces:
                if face.state is FaceState.SEEN:
                    face.iris = self._iris.locate(image, face.points)
        return faces

    def clear(self) -> None:
        """Forgets every face: the next frame starts afresh, with new ids."""
        self._keep([])

    def take_removed(self) -> tuple[int, ...]:
        """Ids that will not come again, each told once: whoever remembers anything of these faces may forget it."""
        removed, self._removed = tuple(self._removed), []
        return removed

    # --- following ---

    def _follow(self, image: np.ndarray, captured_ns: int) -> None:
        """Looks for every face where it was. Where one is lost nobody knows where to look: the detector is to find it."""
        hold = self._options.hold_frames
        near = [track for track in self._tracks if not track.is_lost(hold)]
        found = iter(self._mesh.locate_all(image, [roi_from_points(track.raw) for track in near]))
        for track in self._tracks:
            face = next(found) if track in near else None
            if face is not None and face.score > SCORE_MIN and self._is_large(face):
                track.accept(face, captured_ns, self._options.smoothing)
            else:
                track.miss(captured_ns, hold)

    def _is_unmoved(self, track: Track, image: np.ndarray) -> bool:
        """Somebody stepping before the camera looks like a cut, too; the others' faces then stay where they are."""
        if track.is_missing:
            return False
        found = self._mesh.locate(image, roi_from_points(track.raw))
        moved = float(np.hypot(*(found.points - track.raw)[:, :2].T).mean())
        return found.score > SCORE_MIN and moved < UNMOVED_WIDTHS * track.width_px

    def _is_large(self, face: Landmarks) -> bool:
        return float(np.ptp(face.points[:, 0])) >= self._options.min_face_px

    def _merge_doubles(self) -> None:
        """Two tracks that have slid onto one face: the older keeps it."""
        kept: list[Track] = []
        for track in self._tracks:
            if track.is_missing or not _is_among(track.box, [other.box for other in kept if not other.is_missing]):
                kept.append(track)
        self._keep(kept)

    # --- finding ---

    def _wants_detector(self) -> bool:
        missing = [track.missing_frames for track in self._tracks if track.is_missing]
        if missing:
            return min(missing) == 1 or self._frames % DETECT_LOST_EVERY == 0
        if not self._tracks:
            return True
        return len(self._tracks) < self._options.max_faces and self._frames % (self._options.detect_every * self.patience) == 0

    def _detect(self, image: np.ndarray, captured_ns: int) -> None:
        """Adopts the faces that no track has, the largest first."""
        strangers = self._strangers(image)
        if len(strangers) == 1 and self._is_back(strangers[0], captured_ns):
            self._tracks[0].accept(strangers[0], captured_ns, self._options.smoothing)
            return
        for face in strangers:
            self._adopt(face, captured_ns)

    def _is_back(self, face: Landmarks, captured_ns: int) -> bool:
        """The only face in sight is the only one that was followed, having moved faster than it could be."""
        if len(self._tracks) != 1 or not self._tracks[0].is_missing:
            return False
        (track,) = self._tracks
        if captured_ns - track.seen_ns > RETURN_S * 1e9:
            return False
        return track.is_lost(self._options.hold_frames) or _distance(track, face) < FAST_WIDTHS

    def _strangers(self, image: np.ndarray) -> list[Landmarks]:
        taken = [track.box for track in self._tracks if not track.is_missing]
        found: list[Landmarks] = []
        for detection in self._detector.detect(image):
            if _is_among(detection.box, taken):
                continue
            rough = self._mesh.locate(image, roi_from_detection(detection))
            face = self._mesh.locate(image, roi_from_points(rough.points))  # the region that the model was trained on
            box = box_of(face.points)
            if face.score > SCORE_MIN and self._is_large(face) and not _is_among(box, taken):
                found.append(face)
                taken.append(box)
        return sorted(found, key=face_area, reverse=True)

    def _adopt(self, face: Landmarks, captured_ns: int) -> None:
        """Gives a face to the track that misses it, or to a new one where there is room."""
        track = self._missing_near(face)
        if track is not None:
            track.accept(face, captured_ns, self._options.smoothing)
        elif self._make_room():
            self._tracks.append(Track(self._next_id, face, captured_ns, self._options.smoothing))
            self._next_id += 1

    def _missing_near(self, face: Landmarks) -> Track | None:
        near = [track for track in self._tracks if track.is_missing and _distance(track, face) < NEAR_WIDTHS]
        return min(near, key=lambda track: _distance(track, face), default=None)

    def _make_room(self) -> bool:
        """When the house is full, a newcomer takes the place of the one lost longest; one that is merely held keeps its own."""
        if len(self._tracks) < self._options.max_faces:
            return True
        lost = [track for track in self._tracks if track.is_lost(self._options.hold_frames)]
        if not lost:
            return False
        longest = max(lost, key=lambda track: track.missing_frames)
        self._keep([track for track in self._tracks if track is not longest])
        return True

    # --- housekeeping ---

    def _is_over(self, track: Track, captured_ns: int) -> bool:
        if track.is_missing and track.best_score < SCORE_SURE:
            return True
        if track.is_lost(self._options.hold_frames) and track.seen_ns - track.first_ns < FLEETING_NS:
            return True
        return captured_ns - track.seen_ns > self._options.lost_seconds * 1e9

    def _is_hidden(self, track: Track) -> bool:
        """A missing face whose place another one fills is behind it: there is nothing of it to swap or to blur."""
        return track.is_missing and _is_among(track.box, [other.box for other in self._tracks if not other.is_missing])

    def _keep(self, tracks: list[Track]) -> None:
        self._removed += [track.id for track in self._tracks if track not in tracks]
        self._tracks = tracks


def _is_among(box: np.ndarray, others: list[np.ndarray]) -> bool:
    return any(overlap(box, other) > OVERLAP_SAME for other in others)


def _distance(track: Track, face: Landmarks) -> float:
    """Between the centres, in widths of the track's face."""
    return float(np.hypot(*(track.centre - face.points[:, :2].mean(0)))) / max(1.0, track.width_px)

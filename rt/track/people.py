"""Who is who: the people that were seen, and which of them each face of a frame is.

With a recogniser a face is compared, whenever it comes into sight, with everybody seen before. Without one a person is a face that was
followed: whoever comes while somebody is out of sight has a new number, and may be that one (``TrackedFace.perhaps``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import cv2
import numpy as np

from engines.align import five_of_mesh
from engines.identity.contract import Recogniser
from rt.frame import FaceState, TrackedFace
from rt.track.track import box_of

SAME, OTHER = 0.4, 0.2
"""Cosine of two ArcFace embeddings from which they are one person's, and below which surely not.

Published thresholds lie between 0.28 (0.1 % false accepts on LFW, AdvFaces) and 0.48 (InspireFace): what is near them is in doubt.
"""

LOOKS, LOOK_EVERY_NS = 5, 500_000_000
"""A face that came into sight is compared so many times: the first picture of somebody is often blurred or from the side."""

LEARNING = 0.2
"""Share of a further picture in what is kept of somebody."""

THUMBNAIL_PX = 96
"""Side of a thumbnail: 48 points on a screen of high density."""

THUMBNAIL_WIDTHS = 1.5
"""Its side in longer sides of the face's box: forehead, chin and some hair."""

THUMBNAIL_EVERY_NS = 2_000_000_000

ALL_MAX = 64
"""People who are kept; the one out of sight for longest gives way. A false hit of the detector is one, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """Somebody, as of some moment; replaced as a whole."""

    number: int
    """From 1, in the order of their coming; never given to anybody else."""
    thumbnail: np.ndarray
    """uint8 [THUMBNAIL_PX, THUMBNAIL_PX, 3] BGR, of the picture as it was filmed; not written to again."""
    in_sight: bool
    perhaps: frozenset[int] = frozenset()
    """See ``TrackedFace.perhaps``."""
    seen_ns: int = 0
    """Capture time of a frame in which the face was found: of the thumbnail, or the last."""


class Register:
    """Everybody who was seen, by one line after the other. Written to by one line at a time; ``people`` is any thread's."""

    def __init__(self) -> None:
        self.people: tuple[Person, ...] = ()
        """Those in sight and those before, by number; replaced as a whole."""
        self.embeddings: dict[int, np.ndarray] = {}
        """Number → float32 [512] of length 1, the mean of what was seen; the line's thread alone."""
        self.seats: dict[int, int] = {}
        """Number → ``TrackedFace.seat``; the line's thread alone."""
        self._last = 0

    def new_number(self) -> int:
        self._last += 1
        return self._last

    def find(self, number: int) -> Person | None:
        return next((person for person in self.people if person.number == number), None)

    def put(self, people: dict[int, Person]) -> None:
        """What is known now; whoever is too many is forgotten."""
        kept = sorted(people.values(), key=lambda person: (person.in_sight, person.seen_ns))[-ALL_MAX:]
        self.people = tuple(sorted(kept, key=lambda person: person.number))
        for memory in (self.embeddings, self.seats):
            for number in set(memory) - {person.number for person in kept}:
                del memory[number]


class FollowingTracker(Protocol):
    """What is needed of ``rt.track.tracker.Tracker``."""

    patience: int

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]: ...

    def take_removed(self) -> tuple[int, ...]: ...


@dataclass(slots=True)
class _Followed:
    """A face that is followed, and whose it is."""

    number: int
    seat: int
    perhaps: frozenset[int] = frozenset()
    missing: bool = False
    looks: int = 0
    next_look_ns: int = 0
    pictured_ns: int | None = None


class People:
    """A tracker that also says who it is: keeps ``rt.tracking.FaceTracker``. One thread, but where another is named."""

    def __init__(self, tracker: FollowingTracker, recogniser: Recogniser | None = None, register: Register | None = None) -> None:
        self.register = register or Register()
        self.patience = 1
        """See ``rt.tracking.FaceTracker``."""
        self._tracker = tracker
        self._recogniser = self._next_recogniser = recogniser
        self._followed: dict[int, _Followed] = {}  # id of the face → whose it is

    def recognise_with(self, recogniser: Recogniser | None) -> None:
        """Another from the next frame on; what the one before said of people is forgotten. Any thread, but it is this one's then."""
        self._next_recogniser = recogniser

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        """The faces of ``image`` (uint8 [H, W, 3] BGR), with ``person``, ``perhaps`` and ``seat``. Raises ``ModelError``."""
        self._take_recogniser()
        self._tracker.patience = self.patience
        faces = self._tracker.update(image, captured_ns)
        for gone in self._tracker.take_removed():
            self._followed.pop(gone, None)
        for face in faces:
            self._tell_who(face, faces, image, captured_ns)
        faces = self._without_doubles(faces)
        self._note(faces, image, captured_ns)
        return faces

    # --- who it is ---

    def _tell_who(self, face: TrackedFace, faces: Sequence[TrackedFace], image: np.ndarray, captured_ns: int) -> None:
        followed = self._followed.get(face.id)
        if followed is None:
            followed = self._followed[face.id] = self._greet(face, faces, image, captured_ns)
        elif face.state is FaceState.SEEN:
            if followed.missing:
                followed.looks, followed.next_look_ns = 0, captured_ns
            self._look_again(followed, face, faces, image, captured_ns)
        followed.missing = face.state is not FaceState.SEEN

    def _greet(self, face: TrackedFace, faces: Sequence[TrackedFace], image: np.ndarray, captured_ns: int) -> _Followed:
        """A face that was not followed before."""
        absent = self._absent(face, faces)
        if self._recogniser is None:
            return self._newcomer(absent)
        embedding = self._embed(image, face)
        found = self._nearest(embedding, absent, SAME)
        followed = self._newcomer(self._like(embedding, absent)) if found is None else _Followed(found, self._seat_of(found))
        self._learn(followed, embedding, captured_ns)
        return followed

    def _look_again(
        self, followed: _Followed, face: TrackedFace, faces: Sequence[TrackedFace], image: np.ndarray, captured_ns: int
    ) -> None:
        """The tracker says that it is the one it was; the recogniser may know better."""
        if self._recogniser is None or followed.looks >= LOOKS or captured_ns < followed.next_look_ns:
            return
        embedding, absent = self._embed(image, face), self._absent(face, faces)
        own = self._likeness(embedding, followed.number)
        found = self._nearest(embedding, absent, max(SAME, own))
        if found is not None:
            self._become(followed, found)
        elif followed.missing and own < OTHER and followed.number in self.register.embeddings:
            newcomer = self._newcomer(self._like(embedding, absent))
            followed.number, followed.seat, followed.perhaps = newcomer.number, newcomer.seat, newcomer.perhaps
        else:
            followed.perhaps &= self._like(embedding, absent)
        self._learn(followed, embedding, captured_ns)

    def _become(self, followed: _Followed, number: int) -> None:
        """Somebody known after all. A number that was given to a newcomer a moment ago, and in doubt, is nobody's then."""
        was_new = followed.perhaps and followed.number not in {other.number for other in self._followed.values() if other is not followed}
        if was_new:
            self.register.people = tuple(person for person in self.register.people if person.number != followed.number)
            self.register.embeddings.pop(followed.number, None)
        followed.number, followed.perhaps = number, frozenset()

    def _newcomer(self, perhaps: frozenset[int]) -> _Followed:
        number = self.register.new_number()
        return _Followed(number, self._seat_of(number), perhaps)

    def _absent(self, face: TrackedFace, faces: Sequence[TrackedFace]) -> frozenset[int]:
        """Everybody who is not seen elsewhere in this frame."""
        elsewhere = (self._followed.get(other.id) for other in faces if other is not face and other.state is FaceState.SEEN)
        seen = {other.number for other in elsewhere if other is not None}
        return frozenset(person.number for person in self.register.people if person.number not in seen)

    def _without_doubles(self, faces: tuple[TrackedFace, ...]) -> tuple[TrackedFace, ...]:
        """Somebody who is seen elsewhere is not where the tracker still misses the face."""
        seen = {self._followed[face.id].number for face in faces if face.state is FaceState.SEEN}
        return tuple(face for face in faces if face.state is FaceState.SEEN or self._followed[face.id].number not in seen)

    def _seat_of(self, number: int) -> int:
        """The one of before where it is free, else the lowest free one."""
        taken = {followed.seat for followed in self._followed.values() if followed.number != number}
        seat = self.register.seats.get(number)
        if seat is None or seat in taken:
            seat = next(seat for seat in range(len(taken) + 1) if seat not in taken)
        self.register.seats[number] = seat
        return seat

    # --- what the recogniser says ---

    def _take_recogniser(self) -> None:
        if self._recogniser is self._next_recogniser:
            return
        self._recogniser = self._next_recogniser
        self.register.embeddings.clear()
        for followed in self._followed.values():
            followed.looks = followed.next_look_ns = 0

    def _embed(self, image: np.ndarray, face: TrackedFace) -> np.ndarray:
        assert self._recogniser is not None
        return self._recogniser.embed(image, five_of_mesh(face.points)).normed

    def _likeness(self, embedding: np.ndarray, number: int) -> float:
        known = self.register.embeddings.get(number)
        return -1.0 if known is None else float(embedding @ known)

    def _nearest(self, embedding: np.ndarray, among: frozenset[int], least: float) -> int | None:
        """Whom it is most like, if more than ``least``."""
        best = max(among, key=lambda number: self._likeness(embedding, number), default=None)
        return best if best is not None and self._likeness(embedding, best) > least else None

    def _like(self, embedding: np.ndarray, among: frozenset[int]) -> frozenset[int]:
        """All that it may be; somebody of whom nothing is known may be anybody."""
        unknown = among - self.register.embeddings.keys()
        return unknown | frozenset(number for number in among - unknown if self._likeness(embedding, number) >= OTHER)

    def _learn(self, followed: _Followed, embedding: np.ndarray, captured_ns: int) -> None:
        followed.looks += 1
        followed.next_look_ns = captured_ns + LOOK_EVERY_NS
        known = self.register.embeddings.get(followed.number)
        if known is None or float(embedding @ known) >= SAME:
            mean = embedding if known is None else known + LEARNING * (embedding - known)
            self.register.embeddings[followed.number] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)

    # --- what is told ---

    def _note(self, faces: Sequence[TrackedFace], image: np.ndarray, captured_ns: int) -> None:
        seen = frozenset(self._followed[face.id].number for face in faces if face.state is FaceState.SEEN)
        people = {person.number: person for person in self.register.people}
        before = dict(people)
        for number, person in people.items():
            if person.in_sight and number not in seen:
                people[number] = replace(person, in_sight=False, seen_ns=captured_ns)
        for face in faces:
            followed = self._followed[face.id]
            followed.perhaps -= seen
            face.person, face.perhaps, face.seat = followed.number, followed.perhaps, followed.seat
            if face.state is FaceState.SEEN:
                people[followed.number] = self._pictured(people.get(followed.number), followed, face, image, captured_ns)
        if people != before:
            self.register.put(people)

    def _pictured(self, person: Person | None, followed: _Followed, face: TrackedFace, image: np.ndarray, captured_ns: int) -> Person:
        thumbnail = None if person is None else person.thumbnail
        if thumbnail is None or followed.pictured_ns is None or captured_ns - followed.pictured_ns >= THUMBNAIL_EVERY_NS:
            followed.pictured_ns = captured_ns
            thumbnail = thumbnail_of(image, face.points)
        elif person is not None and person.in_sight and person.perhaps == followed.perhaps:
            return person
        return Person(followed.number, thumbnail, True, followed.perhaps, captured_ns)


def thumbnail_of(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """uint8 [THUMBNAIL_PX, THUMBNAIL_PX, 3]: the face at ``points`` (float32 [468, 2+] pixels) of ``image`` (uint8 [H, W, 3] BGR).

    Moved inwards where the face is cut by the border, so that nothing is stretched.
    """
    height, width = image.shape[:2]
    box = box_of(points)
    side = int(np.clip(THUMBNAIL_WIDTHS * (box[2:] - box[:2]).max(), 2, min(height, width)))
    left, top = (int(np.clip((box[k] + box[k + 2]) / 2 - side / 2, 0, size - side)) for k, size in ((0, width), (1, height)))
    cut = image[top : top + side, left : left + side]
    way = cv2.INTER_AREA if side > THUMBNAIL_PX else cv2.INTER_LINEAR
    return cv2.resize(cut, (THUMBNAIL_PX, THUMBNAIL_PX), interpolation=way)

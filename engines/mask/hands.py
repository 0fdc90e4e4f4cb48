"""Hands in front of the face stay the target's own. Needs no file of the user's: MediaPipe's hand models are embedded.

A mask of this kind forgets nobody's face: what is not surely a hand stays swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cv2
import numpy as np

from engines.face import Roi
from engines.hands.hand import FINGERS, INDEX_KNUCKLE, LITTLE_KNUCKLE, WRIST, Hand, HandLandmarks, roi_from_hand
from engines.hands.palm import PalmDetector
from engines.mask import masks
from engines.mask.contract import Cover
from engines.mask.shapes import Ramp, Shapes, capsules, limit_all, polygon
from engines.session import Session

HANDS_MAX = 2
"""So many for each face."""

LOOK_EVERY = 5
"""Frames between two searches for palms around a face: a hand takes several to reach it, and a search costs as much as all else."""

REACH = 1.1
"""How far around the face's box palms are looked for, in its sizes: the hand's palm is below the face when its fingers touch it."""

SCORE_MIN = 0.8
"""A presence from which a region surely holds a hand. Hands over faces gave 0.9 and more on the clips looked at."""

FINGER_SHARE, FINGER_FROM_KNUCKLES = 1.15, 1 / 3
"""A finger's width: a third of the distance between the outer knuckles, and some, since a missing rim of finger is seen more than
a little of the real face beside it."""

EDGE_SHARE = 0.25
"""Width of the mask's soft edge over a finger's."""


class HandsMask:
    """Hands are followed from frame to frame, each once however many faces there are. Not thread-safe: one thread at a time."""

    name = "hands"

    def __init__(self) -> None:
        """Raises ``ModelError`` when an embedded model is missing or damaged."""
        self._palms = PalmDetector()
        self._landmarks = HandLandmarks()
        self._hands: list[Hand] = []
        self._frames = 0

    @property
    def networks(self) -> dict[str, Session]:
        """See ``engines.session.RunsNetworks``."""
        return {**self._palms.networks, **self._landmarks.networks}

    def covers(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Cover]:
        """See ``engines.mask.contract.Mask``."""
        return [partial(limit_all, drawn=hands) for hands in self.shapes(image, faces)]

    def shapes(self, image: np.ndarray, faces: Sequence[np.ndarray]) -> list[Sequence[Shapes]]:
        """See ``engines.mask.contract.ShapeMask``. Looks for hands, once a frame; what is a hand is one for every face."""
        known = [points for points in faces if np.isfinite(points).all()]
        self._hands = self._sure(image, [roi_from_hand(hand) for hand in self._hands])
        for number, points in enumerate(known):
            if (self._frames - number) % LOOK_EVERY == 0:  # not around all of them in one frame
                self._hands += self._found(image, points, HANDS_MAX * len(known) - len(self._hands))
        self._frames += 1
        return [[shape_of(hand.points) for hand in self._hands]] * len(faces)

    def _found(self, image: np.ndarray, points: np.ndarray, most: int) -> list[Hand]:
        """Hands near the face that are not known yet."""
        left, top, part = _around(image, points)
        if most <= 0 or not part.size:
            return []
        regions = [Roi(palm.roi.x + left, palm.roi.y + top, palm.roi.size, palm.roi.angle) for palm in self._palms.detect(part)]
        strangers = [region for region in regions if not any(_is_at(region, hand) for hand in self._hands)]
        return self._sure(image, strangers[: min(most, HANDS_MAX)])

    def _sure(self, image: np.ndarray, regions: Sequence[Roi]) -> list[Hand]:
        hands = self._landmarks.locate(image, regions)
        return [hand for hand in hands if hand.score >= SCORE_MIN and np.isfinite(hand.points).all()]


def shape_of(hand: np.ndarray) -> Shapes:
    """The hand at ``hand`` (float32 [21, 2] pixels): all as thick as fingers are; 0 on it, 255 outside, a soft edge between."""
    width = FINGER_SHARE * FINGER_FROM_KNUCKLES * float(np.hypot(*(hand[INDEX_KNUCKLE] - hand[LITTLE_KNUCKLE])))
    width = max(width, 0.12 * float(np.hypot(*(hand[INDEX_KNUCKLE] - hand[WRIST]))), 1.0)  # seen from its edge, the palm is narrow
    palm = cv2.convexHull(hand[[WRIST, *(finger[0] for finger in FINGERS), FINGERS[0][1]]].astype(np.float32))[:, 0]
    fingers = capsules([hand[list(finger)] for finger in FINGERS], width / 2)
    edge = max(1.0, EDGE_SHARE * width)
    return Shapes(np.concatenate([fingers, polygon(palm, width / 2)]), Ramp(127.5, 255 / edge))


def _around(image: np.ndarray, points: np.ndarray) -> tuple[int, int, np.ndarray]:
    """Left, top and pixels of the part of the picture where hands may reach the face."""
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    reach = REACH * float((high - low).max())
    height, width = image.shape[:2]
    left, top = np.clip(low - reach, 0, [width, height]).astype(int)
    right, bottom = np.clip(high + reach, 0, [width, height]).astype(int)
    return int(left), int(top), image[top:bottom, left:right]


def _is_at(region: Roi, hand: Hand) -> bool:
    """The middle of ``region`` lies on a hand that is known."""
    middle = hand.points.mean(0)
    return float(np.hypot(middle[0] - region.x, middle[1] - region.y)) < 0.35 * region.size


masks.register("hands")(HandsMask)

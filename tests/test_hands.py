"""Hands before a face: the regions they are looked for in, and the mask that leaves them to the target."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.detect import detectors
from engines.face import Patch
from engines.hands.hand import FINGERS, MIDDLE_KNUCKLE, WRIST, Hand, roi_from_hand
from engines.hands.palm import PalmDetector, hand_roi, upright_angle
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.mask import masks
from engines.mask.hands import shape_of
from engines.mask.shapes import limit

OPEN_HAND = np.array(
    [
        *[(0, 0), (-30, -20), (-50, -45), (-65, -65), (-80, -80)],
        *[(-25, -90), (-28, -125), (-30, -145), (-31, -165)],
        *[(0, -95), (0, -135), (0, -160), (0, -180)],
        *[(22, -90), (25, -125), (27, -150), (28, -168)],
        *[(42, -80), (50, -105), (55, -120), (58, -135)],
    ],
    np.float32,
)
"""MediaPipe's 21 points of a hand with its fingers up, wrist at the origin, pixels."""

angles = st.floats(-math.pi + 0.01, math.pi - 0.01)


def turned(points: np.ndarray, angle: float, x: float = 0, y: float = 0) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return (points @ np.array([[cos, sin], [-sin, cos]]) + [x, y]).astype(np.float32)


def whole(height: int = 480, width: int = 640, left: int = 0, top: int = 0) -> Patch:
    return Patch(np.zeros((height, width, 3), np.uint8), np.full((height, width), 255, np.uint8), left, top)


@given(angles)
def test_the_angle_is_the_turn_from_fingers_up(angle: float) -> None:
    hand = turned(OPEN_HAND, angle)
    assert upright_angle(hand[WRIST], hand[MIDDLE_KNUCKLE]) == pytest.approx(angle, abs=1e-3)


@given(angles, st.floats(-500, 500), st.floats(-500, 500))
def test_a_region_turns_and_moves_with_its_hand(angle: float, x: float, y: float) -> None:
    upright, roi = roi_from_hand(Hand(OPEN_HAND, 1.0)), roi_from_hand(Hand(turned(OPEN_HAND, angle, x, y), 1.0))
    wanted = turned(np.array([[upright.x, upright.y]]), angle, x, y)[0]
    assert (roi.x, roi.y) == (pytest.approx(wanted[0], abs=0.1), pytest.approx(wanted[1], abs=0.1))
    assert roi.size == pytest.approx(upright.size, rel=1e-3)
    assert math.cos(roi.angle - upright.angle - angle) == pytest.approx(1, abs=1e-4)


def test_a_region_holds_the_whole_hand() -> None:
    roi = roi_from_hand(Hand(OPEN_HAND, 1.0))
    assert (np.abs(turned(OPEN_HAND - [roi.x, roi.y], -roi.angle)) < roi.size / 2).all()


def test_a_palm_looks_for_its_hand_along_the_fingers() -> None:
    """Half a palm up, 2.6 palms wide."""
    roi = hand_roi(np.array([100.0, 100.0]), 40.0, np.array([[100.0, 120.0], [100.0, 80.0]]))
    assert (roi.x, roi.y, roi.size, roi.angle) == (100, 120 - 40, 104, 0)


@given(angles)
def test_a_hand_is_taken_out_of_the_patch(angle: float) -> None:
    hand = turned(OPEN_HAND, angle, 320, 240)
    patch = whole()
    limit(patch, shape_of(hand))
    for finger in FINGERS:
        for x, y in np.round(hand[list(finger)]).astype(int):
            assert patch.alpha[y, x] == 0
    far = np.ones(patch.alpha.shape, bool)
    left, top = np.floor(hand.min(0)).astype(int) - 60
    right, bottom = np.ceil(hand.max(0)).astype(int) + 60
    far[max(0, top) : bottom, max(0, left) : right] = False
    assert (patch.alpha[far] == 255).all()


def test_a_patch_that_does_not_start_at_the_corner() -> None:
    large, part = whole(), whole(200, 300, left=200, top=100)
    limit(large, shape_of(turned(OPEN_HAND, 0.4, 320, 240)))
    limit(part, shape_of(turned(OPEN_HAND, 0.4, 320, 240)))
    assert np.abs(part.alpha.astype(int) - large.alpha[100:300, 200:500]).max() <= 1


@pytest.mark.parametrize("place", [(-900.0, 0.0), (2000.0, 2000.0)])
def test_a_hand_elsewhere_changes_nothing(place: tuple[float, float]) -> None:
    patch = whole()
    limit(patch, shape_of(turned(OPEN_HAND, 0, *place)))
    assert (patch.alpha == 255).all()


def test_alpha_is_only_lowered() -> None:
    patch = whole()
    patch.alpha[:] = 40
    limit(patch, shape_of(turned(OPEN_HAND, 0, 320, 240)))
    assert patch.alpha.max() == 40
    assert patch.alpha.min() == 0


def test_no_hand_no_mask(astronaut: np.ndarray) -> None:
    """A portrait, whose palms are as bare of hands as its face."""
    (face,) = find_faces(astronaut, detectors["blazeface-full"](), FaceMesh())
    mask, patch = masks["hands"](), whole(*astronaut.shape[:2])
    for _ in range(7):  # a search for palms, and one again
        mask.covers(astronaut, [face.points])[0](patch)
    assert (patch.alpha == 255).all()


@pytest.mark.parametrize("level", [0, 128])
def test_an_empty_picture_holds_no_palm(level: int) -> None:
    assert PalmDetector().detect(np.full((240, 320, 3), level, np.uint8)) == []


@pytest.mark.parametrize("points", [np.full((468, 3), np.nan, np.float32), np.full((468, 3), -9000, np.float32)])
def test_points_that_are_no_face(points: np.ndarray) -> None:
    patch = whole()
    masks["hands"]().covers(np.zeros((480, 640, 3), np.uint8), [points])[0](patch)
    assert (patch.alpha == 255).all()


def test_a_hand_over_a_face_stays_the_targets(shared_data: Path) -> None:
    """The hand covers nose, mouth and one cheek."""
    image = cv2.imread(str(shared_data / "images" / "hand_over_face_woman.png"))
    assert image is not None
    face = find_faces(image, detectors["blazeface-full"](), FaceMesh())[0]
    patch = whole(*image.shape[:2])
    masks["hands"]().covers(image, [face.points])[0](patch)
    for x, y in ((425, 200), (400, 250), (360, 320)):  # fingers and the back of the hand, as one sees them in the picture
        assert patch.alpha[y, x] == 0, (x, y)
    for x, y in ((430, 120), (495, 215), (520, 260)):  # forehead, the other eye, its cheek
        assert patch.alpha[y, x] == 255, (x, y)

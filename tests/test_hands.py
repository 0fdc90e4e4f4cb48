"""Hands in front of the face: found, followed, and taken out of what is drawn over them."""

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
from engines.hands.hand import Hand, roi_from_hand
from engines.hands.palm import PalmDetector, upright_angle
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.mask.hands import HandsMask, cover

OPEN_HAND = np.array(
    [(0, 0)] + [(-10 - 9 * k, -10 - 8 * k) for k in range(4)] + [(x, -45 - 14 * k) for x in (-18, -6, 6, 18) for k in range(4)],
    np.float32,
)
"""21 points of a hand held up, its wrist at the origin, pixels."""


def turned(points: np.ndarray, angle: float, x: float, y: float, scale: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return (scale * points @ np.array([[cos, sin], [-sin, cos]]) + [x, y]).astype(np.float32)


def whole_patch(height: int = 200, width: int = 160) -> Patch:
    return Patch(np.zeros((height, width, 3), np.uint8), np.full((height, width), 255, np.uint8), 40, 30)


@given(st.floats(-math.pi, math.pi), st.floats(-500, 500), st.floats(-500, 500), st.floats(0.2, 5))
def test_the_region_goes_with_the_hand(angle: float, x: float, y: float, scale: float) -> None:
    """Its square holds all of the hand, wherever that is, however it is turned; its size grows with the hand."""
    upright = roi_from_hand(Hand(OPEN_HAND, 1.0))
    roi = roi_from_hand(Hand(turned(OPEN_HAND, angle, x, y, scale), 1.0))
    assert roi.size == pytest.approx(scale * upright.size, rel=1e-3)
    assert math.cos(roi.angle - upright.angle - angle) == pytest.approx(1, abs=1e-4)
    expected = turned(np.array([[upright.x, upright.y]], np.float32), angle, x, y, scale)[0]
    np.testing.assert_allclose([roi.x, roi.y], expected, atol=0.01 * scale + 0.01)
    assert np.abs(OPEN_HAND - [upright.x, upright.y]).max() < upright.size / 2


def test_fingers_up_is_no_turn() -> None:
    assert upright_angle(np.array([5.0, 9.0]), np.array([5.0, 2.0])) == 0
    assert upright_angle(np.array([0.0, 0.0]), np.array([3.0, 0.0])) == pytest.approx(math.pi / 2)


def test_what_is_covered_is_the_hand_alone() -> None:
    patch = whole_patch()
    hand = OPEN_HAND + [120, 200]  # in the picture; the patch begins at 40, 30
    cover(patch, hand)
    for x, y in np.round(hand - [patch.left, patch.top]).astype(int):
        assert patch.alpha[y, x] == 0
    assert patch.alpha[20, 150] == patch.alpha[190, 5] == 255
    assert (patch.alpha == 255).mean() > 0.5


@given(st.floats(-math.pi, math.pi), st.floats(-300, 500), st.floats(-300, 500), st.floats(0.05, 20))
def test_a_hand_may_be_anywhere(angle: float, x: float, y: float, scale: float) -> None:
    """Alpha falls or stays, never rises, and nothing breaks at the borders."""
    patch = whole_patch(40, 30)
    patch.alpha[:] = np.linspace(0, 255, 30).astype(np.uint8)
    before = patch.alpha.copy()
    cover(patch, turned(OPEN_HAND, angle, x, y, scale))
    assert (patch.alpha <= before).all()


def test_a_face_without_hands_stays_whole(astronaut: np.ndarray) -> None:
    points = find_faces(astronaut, detectors["blazeface-full"](), FaceMesh())[0].points
    mask = HandsMask()
    for _ in range(12):
        patch = whole_patch()
        mask.limit(astronaut, points, patch)
        assert (patch.alpha == 255).all()


def test_points_that_are_no_numbers_change_nothing() -> None:
    patch = whole_patch()
    HandsMask().limit(np.zeros((100, 100, 3), np.uint8), np.full((468, 3), np.nan, np.float32), patch)
    assert (patch.alpha == 255).all()


def test_an_empty_picture_has_no_hand() -> None:
    black = np.zeros((120, 90, 3), np.uint8)
    assert PalmDetector().detect(black) == []


def test_a_hand_that_is_filmed_stays_the_persons_own(shared_data: Path) -> None:
    """From the 4th to the 9th second of the clip the hand lies over the face: its fingertips are not painted over."""
    detector, mesh, mask = detectors["blazeface-full"](), FaceMesh(), HandsMask()
    clip = cv2.VideoCapture(str(shared_data / "videos" / "hand_over_face.mp4"))
    clip.set(cv2.CAP_PROP_POS_MSEC, 5000)
    shares = []
    for _ in range(30):
        picture = clip.read()[1]
        points = find_faces(picture, detector, mesh)[0].points
        patch = Patch(picture.copy(), np.full(picture.shape[:2], 255, np.uint8), 0, 0)
        mask.limit(picture, points, patch)
        shares.append(float((patch.alpha == 0).mean()))
    clip.release()
    assert sum(0.02 < share < 0.15 for share in shares) >= 25  # of 30; a hand is a few hundredths of this picture

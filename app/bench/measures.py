"""Numbers for what an eye sees in a swap; pure functions of pictures and points."""

from __future__ import annotations

import cv2
import numpy as np

EYES = ((33, 133), (362, 263))
"""Corners of the two eyes in FaceMesh's numbering."""

NOSE_TIP = 1

CHIP = 128
"""Side of the face-aligned picture in which flicker is measured."""


def eye_centres(points: np.ndarray) -> np.ndarray:
    """float [2, 2] of FaceMesh points [468, 2+]: viewer's left eye, then right."""
    return np.stack([points[list(corners), :2].mean(0) for corners in EYES])


def inter_ocular(points: np.ndarray) -> float:
    """Pixels between the centres of the eyes."""
    left, right = eye_centres(points)
    return float(np.hypot(*(right - left)))


def turned_aside(points: np.ndarray) -> float:
    """How far the tip of the nose is off the middle between the eyes, along their line, in inter-ocular distances.

    0 seen from the front; it grows with the angle.
    """
    left, right = eye_centres(points)
    line = (right - left) / max(1e-6, float(np.hypot(*(right - left))))
    off = float(np.dot(points[NOSE_TIP, :2] - (left + right) / 2, line))
    return abs(off) / max(1e-6, inter_ocular(points))


def landmark_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Mean distance of points [468, 2+] from where they should be, in inter-ocular distances."""
    apart = np.hypot(*(found[:, :2] - wanted[:, :2]).T)
    return float(apart.mean()) / inter_ocular(wanted)


def jitter(paths: np.ndarray) -> float:
    """RMS distance from their own mean of points that should stand still: [frames, 468, 2+] pixels → pixels."""
    away = paths[..., :2] - paths[..., :2].mean(0)
    return float(np.sqrt((away**2).sum(-1).mean()))


def chip(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float32 [CHIP, CHIP] grey: the face of ``image`` (uint8 BGR), held still by a similarity of its eyes."""
    left, right = eye_centres(points)
    axis = (right - left) / (CHIP * 0.4)  # the eyes lie 40 % of the side apart, 40 % from its top
    turn = np.array([[axis[0], -axis[1]], [axis[1], axis[0]]])
    matrix = np.c_[turn, (left + right) / 2 - turn @ [CHIP * 0.5, CHIP * 0.4]]
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    view = cv2.warpAffine(grey, matrix, (CHIP, CHIP), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE)
    return view.astype(np.float32)


def flicker(before: np.ndarray, now: np.ndarray, after: np.ndarray) -> float:
    """Mean of half the second difference of three chips in a row, grey levels: steady change cancels, trembling remains."""
    return float(np.abs(before - 2 * now + after).mean()) / 2


def seam(original: np.ndarray, swapped: np.ndarray, alpha: np.ndarray) -> float | None:
    """Gradient of the swapped picture over that of the original where the patch fades (``alpha`` uint8 [H, W], 16 to 240).

    1 where the seam adds no edge and takes none. None where there is no such zone.
    """
    zone = (alpha > 16) & (alpha < 240)
    if zone.sum() < 16:
        return None
    return float(_gradient(swapped)[zone].mean()) / max(1e-6, float(_gradient(original)[zone].mean()))


def _gradient(image: np.ndarray) -> np.ndarray:
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).astype(np.float32)
    return cv2.magnitude(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1))

"""What is drawn of one face in one frame, in the few numbers in which it goes to a device.

Whoever draws begins with these and reckons in float32, each step rounded, in the same order: so all draw the same to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LARGEST = 32767


@dataclass(frozen=True, slots=True)
class Steps:
    """Numbers as multiples of a step."""

    counts: np.ndarray
    """int16 [N, K]."""
    step: np.float32

    @property
    def values(self) -> np.ndarray:
        """float32 [N, K]."""
        return self.step * self.counts.astype(np.float32)


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """A place is kept to 1/65534 of the face's size, light to as much of the brightest."""

    offsets: Steps
    """[468 + R, 3] of the mesh, rings inside eyes and mouth included: pixels from ``middle``."""
    middle: np.ndarray
    """float32 [3] pixels of the picture."""
    box: tuple[int, int, int, int]
    """Left, top, right, bottom of what the mesh covers of the picture."""
    light: Steps
    """[468, 4]: factors of B, G, R, and the share of the texture's detail that is kept."""
    turn: np.ndarray
    """float32 [3, 3]: see ``Facing.turn``."""

    @property
    def place(self) -> np.ndarray:
        """float32 [468 + R, 3] pixels of the box."""
        place = self.middle + self.offsets.values
        place[:, :2] -= np.array(self.box[:2], np.float32)
        return place

    @property
    def width_px(self) -> float:
        """Of the face."""
        return float(np.ptp(self.offsets.counts[:, 0].astype(np.int32)) * self.offsets.step)


def planned(place: np.ndarray, box: tuple[int, int, int, int], gain: np.ndarray, kept: np.ndarray, turn: np.ndarray) -> MeshPlan:
    """Of the mesh at ``place`` (float32 [468 + R, 3] pixels of the picture) under the light ``gain`` (float32 [468, 3] factors of BGR), of
    whose detail ``kept`` (float32 [468, 1]) is kept."""
    middle = ((place.max(0) + place.min(0)) / 2).astype(np.float32)
    return MeshPlan(_in_steps(place - middle), middle, box, _in_steps(np.concatenate([gain, kept], 1)), turn)


def _in_steps(values: np.ndarray) -> Steps:
    step = np.float32(max(float(np.abs(values).max()), 1e-6) / LARGEST)
    return Steps(np.clip(np.round(values / step), -LARGEST, LARGEST).astype(np.int16), step)

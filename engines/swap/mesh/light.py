"""The target's light on the source's face: one factor for each vertex and colour, steady over time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engines.mesh.topology import topology
from engines.swap.mesh.colour import LUMA, log_colours, relief_of, smooth, weighted_mean
from engines.swap.mesh.identity import MeshIdentity

SIGMA, SIGMA_AT_OVAL = 0.28, 0.10
"""How widely the light is averaged, in inter-ocular distances: less at the oval, where the patch must meet the frame."""

GREY_SIGMA = 0.12
"""A black-and-white photo takes the target's own colours, averaged so widely that its lips leave no stain."""

OUTLIER = 0.7
"""Log luma from the typical difference at which a vertex counts a third: hair, background, a shadow's edge."""

LUMA_SPAN, CHROMA_SPAN = 1.0, 0.20
"""How far the light may differ over the face, in log units: luma softly limited, chroma cut."""

CONTRAST_FALL, CONTRAST_MIN = 0.55, 0.4
"""A dark face on a bright one: shine and wrinkles are light added to the skin, not skin multiplied, so the texture's contrast is
to grow less than its brightness: by the power 1 - 0.55 of it. Looked at on pairs of dark photos and light people."""

FLAT, FLAT_MIN = 0.5, 0.55
"""A hazy or softly lit picture: its face has less contrast than the photo's, and the texture's is brought down by the power 0.5 of that,
not below 0.55. Wholly matched, people lose what makes them look like themselves. Looked at on hazy and on plain clips."""

SETTLE_S = 0.077
"""Time constant of the light's changes: a share of 0.35 a frame at 30 fps."""

RELIEF_SETTLE_S = 1.0
"""The same of contrast: a face that smiles has more of it, and is not to change its skin."""

CUT_LOG = 0.25
"""A change of the face's log luma between two frames that is a cut and not a cloud."""

CUT_JUMP = 0.6
"""A move of the face's middle between two frames, or a change of its size, in face widths, that is a cut and no movement."""


@dataclass(frozen=True)
class Nearness:
    """How far a vertex looks around for its light: computed once, shared by all faces."""

    wide: np.ndarray
    """float32 [468, 468]."""
    narrow: np.ndarray
    """The same for the colours of a black-and-white photo."""

    @classmethod
    def of_mesh(cls) -> Nearness:
        mesh = topology()
        return cls(mesh.kernel(SIGMA, SIGMA_AT_OVAL), mesh.kernel(GREY_SIGMA))


class Light:
    """One face's light. One thread."""

    def __init__(self, near: Nearness) -> None:
        self._near = near
        self._skin = topology().skin
        self._gain: np.ndarray | None = None
        self._relief = 0.0
        self._level = 0.0
        self._place = np.zeros(3)
        self._at_ns = 0

    def gains(self, image: np.ndarray, points: np.ndarray, identity: MeshIdentity, captured_ns: int) -> np.ndarray:
        """float32 [468, 3] in log units: what the texture's colours are to be multiplied by at each vertex."""
        return self.gains_of(log_colours(image, points[:468]), points, identity, captured_ns)

    def gains_of(self, target: np.ndarray | None, points: np.ndarray, identity: MeshIdentity, captured_ns: int) -> np.ndarray:
        """The same from what ``log_colours`` says of the picture, wherever that was looked at."""
        if target is None:
            return self._gain if self._gain is not None else np.zeros((468, 3), np.float32)
        gain = self._limit(self._difference(target, identity), target, identity)
        level = float(weighted_mean(target @ LUMA, self._skin))
        place = np.append(points[:, :2].mean(0), np.ptp(points[:, 0]))
        relief = relief_of(target, self._near.wide)
        if self._is_cut(level, place, captured_ns):
            self._gain, self._relief = gain, relief
        self._settle(gain, relief, captured_ns)
        self._level, self._place = level, place
        assert self._gain is not None
        return self._gain

    def kept(self, identity: MeshIdentity) -> float:
        """In (0, 1]: the share of the texture's detail that is kept where the light does not brighten it. See ``contrast``."""
        flat = np.clip((self._relief / identity.relief) ** FLAT, FLAT_MIN, 1) if self._relief else 1.0
        return min(identity.contrast, float(flat))

    def _difference(self, target: np.ndarray, identity: MeshIdentity) -> np.ndarray:
        """Target minus source, smoothed over the face; vertices that are far from the typical difference count little."""
        difference = target - identity.logs
        typical = np.median(difference[self._skin > 0], 0)
        off = (difference - typical) @ LUMA
        return smooth(self._near.wide, difference, identity.weights * np.exp(-((off / OUTLIER) ** 2)))

    def _limit(self, gain: np.ndarray, target: np.ndarray, identity: MeshIdentity) -> np.ndarray:
        luma = gain @ LUMA
        chroma = gain - luma[:, None]
        mean_luma, mean_chroma = weighted_mean(luma, self._skin), weighted_mean(chroma, self._skin)
        if identity.grey:
            own = target - (target @ LUMA)[:, None] - (identity.logs - (identity.logs @ LUMA)[:, None])
            chroma = smooth(self._near.narrow, own, np.ones(468, np.float32))
        else:
            chroma = mean_chroma + np.clip(chroma - mean_chroma, -CHROMA_SPAN, CHROMA_SPAN)
        luma = mean_luma + LUMA_SPAN * np.tanh((luma - mean_luma) / LUMA_SPAN)
        return (luma[:, None] + chroma).astype(np.float32)

    def _is_cut(self, level: float, place: np.ndarray, captured_ns: int) -> bool:
        """Another scene, a long gap, or no past at all: the light starts anew. ``place``: x, y and width of the face."""
        jump = float(np.abs(place - self._place).max()) / max(1.0, float(place[2]))
        elapsed_s = (captured_ns - self._at_ns) / 1e9
        return self._gain is None or abs(level - self._level) > CUT_LOG or jump > CUT_JUMP or not 0 < elapsed_s < 1

    def _settle(self, gain: np.ndarray, relief: float, captured_ns: int) -> None:
        assert self._gain is not None
        passed_s = max(0, captured_ns - self._at_ns) / 1e9
        self._gain = self._gain + (gain - self._gain) * np.float32(1 - math.exp(-passed_s / SETTLE_S))
        self._relief += (relief - self._relief) * (1 - math.exp(-passed_s / RELIEF_SETTLE_S))
        self._at_ns = captured_ns


def contrast(gain: np.ndarray, kept: float) -> np.ndarray:
    """float32 [468, 1] in [0.2, 1]: the share of the texture's detail that is kept at each vertex under the light ``gain`` [468, 3]."""
    brighter = np.maximum(0, gain @ LUMA)
    return (kept * np.clip(np.exp(-CONTRAST_FALL * brighter), CONTRAST_MIN, 1))[:, None].astype(np.float32)

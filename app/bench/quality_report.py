"""What the quality bench found: immutable values, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from app.bench.recogniser import SAME_PERSON


@dataclass(frozen=True, slots=True)
class Sample:
    """One frame, looked at closely."""

    to_source: float
    """dlib distance of the swapped face from the source photo."""
    to_target: float
    """dlib distance of the swapped face from the same frame before the swap."""
    landmark_iod: float
    """Mean error of FaceMesh on the swapped face against the face filmed, in inter-ocular distances."""
    seam: float | None
    """Gradient in the fading zone over the original's."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """One source photo on one clip."""

    source: str
    clip: str
    frames: int
    """Frames in which a face was swapped."""
    samples: tuple[Sample, ...]
    flicker: float | None
    """Grey levels, median over the clip; ``flicker_original`` is the same of the person filmed."""
    flicker_original: float | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "clip": self.clip,
            "frames": self.frames,
            "samples": len(self.samples),
            **identity_of(self.samples),
            **landmarks_of(self.samples),
            "seam": _median(sample.seam for sample in self.samples),
            "flicker": _rounded(self.flicker),
            "flicker_original": _rounded(self.flicker_original),
        }


@dataclass(frozen=True, slots=True)
class QualityReport:
    """All pairs together. Every sample counts alike."""

    pairs: tuple[PairResult, ...]
    jitter_px: dict[str, float]
    """Clip → RMS movement of the smoothed landmarks on its first frame, held still in noise."""
    skipped: dict[str, str]
    """File → why it was not used."""
    versions: dict[str, str]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(sample for pair in self.pairs for sample in pair.samples)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; distances are dlib's, lengths in inter-ocular distances or pixels as named."""
        return {
            "identity": identity_of(self.samples),
            "landmarks": landmarks_of(self.samples),
            "jitter_px": _rounded(max(self.jitter_px.values(), default=None)),
            "jitter_clips_px": _all_rounded(self.jitter_px),
            "flicker": _median(pair.flicker for pair in self.pairs),
            "flicker_original": _median(pair.flicker_original for pair in self.pairs),
            "seam": _median(sample.seam for sample in self.samples),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "skipped": self.skipped,
            "versions": self.versions,
        }

    def to_json_dict(self) -> dict[str, Any]:
        """As ``to_dict``, with every sample of every pair."""
        whole = self.to_dict()
        for entry, pair in zip(whole["pairs"], self.pairs, strict=True):
            entry["all"] = [asdict(sample) for sample in pair.samples]
        return whole


def identity_of(samples: tuple[Sample, ...]) -> dict[str, float | None]:
    source, target = (np.array([getattr(sample, name) for sample in samples]) for name in ("to_source", "to_target"))
    return {
        "mean_to_source": _mean(source),
        "mean_to_target": _mean(target),
        "share_nearer_source": _mean(source < target),
        "share_under_0_6": _mean(source < SAME_PERSON),
    }


def landmarks_of(samples: tuple[Sample, ...]) -> dict[str, float | None]:
    errors = np.array([sample.landmark_iod for sample in samples])
    if not len(errors):
        return {"median_iod": None, "p95_iod": None}
    return {"median_iod": _rounded(float(np.median(errors))), "p95_iod": _rounded(float(np.percentile(errors, 95)))}


def _mean(values: np.ndarray) -> float | None:
    return _rounded(float(values.mean())) if len(values) else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _rounded(float(np.median(known))) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _all_rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}

"""What detectors with a grid of cells share: outputs sorted by shape, cells' places, and one detection for every face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from engines.detect.canvas import Canvas
from engines.face import Detection
from engines.family import Structure
from engines.session import TensorSpec
from engines.wording import counted

STRIDES = (8, 16, 32)
"""Canvas pixels from cell to cell, layer by layer."""

SCORE_MIN, OVERLAP_MAX = 0.5, 0.4
"""Probability from which a box counts, and intersection over union from which two are one face: InsightFace's and FaceFusion's."""

MOST = 3000
"""Boxes looked at, best first: comparing all pairs of a network's that fires everywhere would take a second."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Boxes on the canvas."""

    corners: np.ndarray
    """float32 [N, 4]: left, top, right, bottom, canvas pixels."""
    keypoints: np.ndarray
    """float32 [N, 5, 2] canvas pixels."""
    scores: np.ndarray
    """float32 [N]."""


def layer_differences(outputs: Sequence[TensorSpec], wanted: Mapping[int, int]) -> tuple[str, ...]:
    """How ``outputs`` differ from ``wanted``: numbers a cell → how many outputs have so many; each [cells, n] or [1, cells, n]."""
    total = sum(wanted.values())
    if len(outputs) != total:
        return (Structure(f"it has {counted(len(outputs), 'output')}, not {total}"),)
    odd = [spec for spec in outputs if len(spec.shape) not in (2, 3)]
    if odd:
        return (f"its output {odd[0].name} has {counted(len(odd[0].shape), 'dimension')}, not [cells, n] or [1, cells, n]",)
    widths = [spec.shape[-1] for spec in outputs]
    free = sum(not isinstance(width, int) for width in widths)
    missing = sum(max(0, many - widths.count(width)) for width, many in wanted.items())
    if missing > free or any(isinstance(width, int) and width not in wanted for width in widths):
        listed = ", ".join(f"{many} of {width}" for width, many in wanted.items())
        return (f"its outputs have {', '.join(map(str, widths))} numbers a cell, not {listed}",)
    return ()


def by_layer(
    results: Sequence[np.ndarray], size: tuple[int, int], anchors: int, wanted: Mapping[int, int]
) -> list[list[np.ndarray]] | None:
    """For every stride its outputs [cells · anchors, n], sorted by n as ``wanted`` has them, by place among equals.

    ``size``: height and width of the canvas. None where the results do not fit it.
    """
    layers = []
    for stride in STRIDES:
        count = anchors * (size[0] // stride) * (size[1] // stride)
        layer = [flat for width in wanted for flat in _of_shape(results, count, width)]
        if len(layer) * len(STRIDES) != sum(wanted.values()):
            return None
        layers.append(layer)
    return layers


def _of_shape(results: Sequence[np.ndarray], count: int, width: int) -> Iterator[np.ndarray]:
    for result in results:
        if result.shape[-2:] == (count, width) and result.size == count * width:
            yield result.reshape(count, width)


def cells(chosen: np.ndarray, columns: int, stride: int, anchors: int = 1) -> np.ndarray:
    """float32 [N, 2]: where on the canvas the cells of the numbers ``chosen`` stand, row by row, their corner at the top left."""
    cell = chosen // anchors
    return np.stack([cell % columns, cell // columns], 1).astype(np.float32) * stride


def joined(parts: Sequence[Candidates]) -> Candidates:
    """The layers' candidates in one."""
    return Candidates(
        np.concatenate([part.corners for part in parts]),
        np.concatenate([part.keypoints for part in parts]),
        np.concatenate([part.scores for part in parts]),
    )


def faces(canvas: Canvas, found: Candidates) -> list[Detection]:
    """The best box of every face, in pixels of the picture, by falling score. Values that are no numbers are left out."""
    finite = np.isfinite(found.corners).all(1) & np.isfinite(found.keypoints).all((1, 2))
    best = np.flatnonzero(finite)
    best = best[np.argsort(-found.scores[best], kind="stable")][:MOST]
    corners, scores = found.corners[best], np.minimum(found.scores[best], 1)
    sizes = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
    kept = np.asarray(cv2.dnn.NMSBoxes(sizes.tolist(), scores.tolist(), SCORE_MIN, OVERLAP_MAX), int).ravel()
    return [
        Detection(
            canvas.to_picture(corners[k].reshape(2, 2)).reshape(4),
            canvas.to_picture(found.keypoints[best[k]]),
            float(scores[k]),
        )
        for k in kept
    ]

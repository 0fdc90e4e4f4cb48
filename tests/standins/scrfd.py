"""Stand-in of SCRFD and RetinaFace 10g."""

from __future__ import annotations

from pathlib import Path

from standins.marker import Seen
from standins.sketch import Sketch

RAW_NAMES = ("448", "471", "494", "451", "474", "497", "454", "477", "500")
"""Of InsightFace's det_10g: scores, boxes, keypoints, three strides each."""


def scrfd(path: Path, *, insightface: bool = True, side: int | None = None, layer: int | None = None) -> Path:
    """``insightface``: its names, and outputs [n, k]; else FaceFusion's, and outputs [1, n, k]. ``side``: a fixed size.
    ``layer``: only that stride fires."""
    s = Sketch()
    name = "input.1" if insightface else "input"
    seen = Seen(s, name, span=255 / 128, zero=-127.5 / 128)
    scores, boxes, points = [], [], []
    for stride in (8, 16, 32):
        cells = seen.at_cells(stride)
        x, y = cells["place"]
        left, top, right, bottom = cells["box"]
        score = cells["score"][0] if layer in (None, stride) else s.mul(cells["score"][0], 0.0)
        scores.append(seen.rows([score], 2))
        away = [s.sub(x, left), s.sub(y, top), s.sub(right, x), s.sub(bottom, y)]
        boxes.append(seen.rows([s.div(value, float(stride)) for value in away], 2))
        from_anchor = [s.sub(value, (x, y)[number % 2]) for number, value in enumerate(cells["points"])]
        points.append(seen.rows([s.div(value, float(stride)) for value in from_anchor], 2))
    names = RAW_NAMES if insightface else [f"{what}_{stride}" for what in ("score", "bbox", "kps") for stride in (8, 16, 32)]
    outputs = []
    for number, (step, output) in enumerate(zip(scores + boxes + points, names, strict=True)):
        width = (1, 4, 10)[number // 3]
        many = f"n{number}" if side is None else 2 * (side // (8, 16, 32)[number % 3]) ** 2
        outputs.append((s.shape(step, -1, width), output, (many, width)) if insightface else (step, output, (1, many, width)))
    sides = ("height", "width") if side is None else (side, side)
    return s.save(path, [(name, (1, 3, *sides))], outputs)

"""Stand-in of YuNet."""

from __future__ import annotations

from pathlib import Path

from standins.marker import SCORES, Seen
from standins.sketch import Sketch


def yunet(path: Path, *, layer: int | None = None) -> Path:
    """[1, 3, 640, 640] BGR of 0…255 → cls, obj, bbox, kps of three strides. ``layer``: only that stride fires."""
    s = Sketch()
    seen = Seen(s, "input", span=255, zero=0, bgr=True)
    found: dict[str, list[tuple[str, int]]] = {"cls": [], "obj": [], "bbox": [], "kps": []}
    for stride in (8, 16, 32):
        cells = seen.at_cells(stride)
        x, y = cells["place"]
        left, top, right, bottom = cells["box"]
        cls = cells["score"][0] if layer in (None, stride) else s.mul(cells["score"][0], 0.0)
        obj = s.mul(cls, cls)
        middles = [s.sub(s.mul(s.add(left, right), 0.5), x), s.sub(s.mul(s.add(top, bottom), 0.5), y)]
        sizes = [s.op("Log", s.add(s.div(value, float(stride)), 1e-6)) for value in (s.sub(right, left), s.sub(bottom, top))]
        from_cell = [s.sub(value, (x, y)[number % 2]) for number, value in enumerate(cells["points"])]
        found["cls"].append((seen.rows([cls]), 1))
        found["obj"].append((seen.rows([obj]), 1))
        found["bbox"].append((seen.rows([*(s.div(value, float(stride)) for value in middles), *sizes]), 4))
        found["kps"].append((seen.rows([s.div(value, float(stride)) for value in from_cell]), 10))
    outputs = [
        (step, f"{what}_{stride}", (1, (640 // stride) ** 2, width))
        for what, layers in found.items()
        for stride, (step, width) in zip((8, 16, 32), layers, strict=True)
    ]
    return s.save(path, [("input", (1, 3, 640, 640))], outputs)


SCORES_BY_HAND = tuple(score**1.5 for score in SCORES)
"""The geometric mean of a score and its square."""

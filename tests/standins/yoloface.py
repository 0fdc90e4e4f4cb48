"""Stand-in of YOLO-face 8."""

from __future__ import annotations

from pathlib import Path

from standins.marker import Seen
from standins.sketch import Sketch


def yoloface(path: Path, *, name: str = "input", layer: int | None = None) -> Path:
    """[1, 3, 640, 640] RGB in [0, 1] → [1, 20, 8400]. ``layer``: only that stride fires."""
    s = Sketch()
    seen = Seen(s, name, span=1, zero=0)
    columns = []
    for stride in (8, 16, 32):
        cells = seen.at_cells(stride, stride // 2)
        left, top, right, bottom = cells["box"]
        score = cells["score"][0] if layer in (None, stride) else s.mul(cells["score"][0], 0.0)
        box = [s.mul(s.add(left, right), 0.5), s.mul(s.add(top, bottom), 0.5), s.sub(right, left), s.sub(bottom, top)]
        points = []
        for x, y in zip(cells["points"][::2], cells["points"][1::2], strict=True):
            points += [x, y, s.mul(score, 0.5)]
        planes = [s.op("Expand", plane, s.ints(1, 1, 640 // stride, 640 // stride)) for plane in (*box, score, *points)]
        columns.append(s.op("Transpose", seen.rows(planes), perm=[0, 2, 1]))
    return s.save(path, [(name, (1, 3, 640, 640))], [(s.op("Concat", *columns, axis=2), "output0", (1, 20, 8400))])

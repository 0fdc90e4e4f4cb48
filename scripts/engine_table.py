"""Writes docs/engine-builds.md: engines of every model, built for every chip by TensorRT for RTX without a GPU.

PYTHONPATH=tests python scripts/engine_table.py FILE
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from engine_kit import BATCHES, CHIPS, DETECTOR_SHAPE, built, family_of, profiles_of, stand_ins

from engines.build.builder import BuildRequest, converted
from engines.build.crops import Framing
from engines.build.graph import load_checked
from engines.build.parity import Verdict
from engines.build.trial import Trial
from engines.errors import BuildError
from engines.store import embedded_model, embedded_models
from engines.tensorrt import import_runtime

TOP = """# Engines

Written by `make engine-table`: engines of every embedded model and of a stand-in of every family, built by TensorRT for RTX {version} on
{machine}, without a GPU. A cell is seconds and kilobytes of an engine for that chip alone. *dynamic* takes one to eight pictures at
a time; a file that takes one alone has no such row. *gate* is what the parity gate says of the fp16 graph on the processor: the worst of
32 crops. **Whether they run on a card was not tried.**

{built} engines were built; {refused}.
"""

HEAD = ("model", "batch", "precision", *CHIPS, "gate")

FRAMINGS = {
    "face_detection_full_range_sparse": Framing.SCENE,
    "face_detection_short_range": Framing.SCENE,
    "iris_landmark": Framing.EYE,
}
"""As `ffrt engines build` has them."""

Shape = tuple[int, ...]
"""Of inputs whose sizes a file leaves open."""


@dataclass
class Tally:
    built: int = 0
    refusals: dict[str, str] = field(default_factory=dict)
    """Number of a note → its text."""

    def note(self, why: str) -> str:
        for number, text in self.refusals.items():
            if text == why:
                return number
        number = str(len(self.refusals) + 1)
        self.refusals[number] = why
        return number


def main(path: str) -> None:
    """Overwrites the file."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FFRT_MODELS"] = os.environ["FFRT_CACHE"] = folder  # a person's own are not looked at
        rows = [row for model in _models(Path(folder)) for row in _rows(*model, tally)]
    missing = len(tally.refusals)
    refused = "none was refused" if not missing else "what was refused says so in its cell"
    version = import_runtime("rtx").__version__
    text = TOP.format(version=version, machine=_machine(), built=tally.built, refused=refused)
    lines = ["| " + " | ".join(cells) + " |" for cells in [HEAD, ["---"] * len(HEAD), *rows]]
    notes = [f"{number}. {why}" for number, why in tally.refusals.items()]
    Path(path).write_text("\n".join([text, *lines, "", *notes]).rstrip() + "\n", encoding="utf-8")


def _models(folder: Path) -> Iterator[tuple[str, Path, Trial, Shape]]:
    for name, model in sorted(embedded_models().items()):
        yield name, embedded_model(name), Trial(framing=FRAMINGS.get(name, Framing.FACE)), model.usual_shape or DETECTOR_SHAPE
    for name, make in sorted(stand_ins().items()):
        yield f"{name} (stand-in)", make(folder), Trial(family_of(name)), DETECTOR_SHAPE


def _rows(name: str, path: Path, trial: Trial, shape: Shape, tally: Tally) -> Iterator[tuple[str, ...]]:
    full, graph = load_checked(path)
    static = profiles_of(graph, "static", shape)
    assert static is not None
    shapes = {profile.name: profile.low for profile in static}
    half, verdict = converted(lambda progress: None, full, BuildRequest(path, Path(), "rtx", "fp16", (), static, trial=trial), shapes)
    for batch in BATCHES:
        taken = profiles_of(graph, batch, shape)
        if taken is None:
            continue
        for precision, model in (("fp32", full), ("fp16", half)):
            cells = [_cell(model, path, precision, taken, chip, tally) for chip in CHIPS]
            yield (name, batch, precision, *cells, _gate(verdict) if precision == "fp16" else "")
    print(name, flush=True)


def _cell(model: onnx.ModelProto, path: Path, precision: str, taken: tuple, chip: str, tally: Tally) -> str:
    started_s = time.perf_counter()
    try:
        engine = built(model, path, precision, taken, (chip,))
    except BuildError as error:
        return f"refused ({tally.note(str(error))})"
    tally.built += 1
    return f"{time.perf_counter() - started_s:.1f} s, {len(engine) / 1000:.0f}"


def _gate(verdict: Verdict) -> str:
    worst = min(verdict.outputs, key=lambda output: (output.passed, output.finite))
    number = f"{worst.worst:.4g}" if worst.finite else "no number"
    return f"{'passes' if verdict.passed else 'refuses'}: {worst.measure} {number}"


def _machine() -> str:
    return f"{os.cpu_count()} cores"


if __name__ == "__main__":
    main(sys.argv[1])

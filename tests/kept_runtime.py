"""A real runtime that lacks something at first: ONNX Runtime on a graph that was optimised beforehand, in a child, and compared.

It stands for engines on a GPU wherever there is none. Registered as ``kept``; ``kept-crashes`` dies while it prepares, ``kept-differs``
makes a graph that the gate refuses, ``kept-waits`` never comes to an end, ``kept-some`` dies over files whose name begins with ``bad``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from engines.build.child import Progress, run_in_child
from engines.build.service import BuildOptions, verify_file
from engines.family import ModelFile
from engines.ort import OrtSession
from engines.session import Runtime, Shapes, Sizes, register_runtime

Report = Callable[[Progress], None]

RUNS: list[str] = []
"""Names of the threads that ran a kept graph, in order."""

FAULTS = {"kept": "", "kept-crashes": "crash", "kept-differs": "differ", "kept-waits": "wait", "kept-some": "some"}


class KeptSession(OrtSession):
    """Says which thread ran it, and how much memory it takes: as much as its file."""

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        super().__init__(path, threads=threads)
        self._memory_bytes = path.stat().st_size

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        RUNS.append(threading.current_thread().name)
        return super().run(feeds)


def kept(path: Path) -> Path:
    return path.with_suffix(".kept")


def keep_task(report: Report, path: Path, shapes: Shapes, fault: str) -> None:
    """Writes the optimised graph once it has passed the gate."""
    report(Progress(0, 2, "optimising"))
    if fault == "crash" or (fault == "some" and path.name.startswith("bad")):
        os.kill(os.getpid(), signal.SIGKILL)
    while fault == "wait":
        time.sleep(1)  # until it is ended from outside
    made = path.with_suffix(".part.onnx")
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(made)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    if fault == "differ":
        _spoil(made)
    report(Progress(1, 2, "comparing"))
    verify_file(path, made, BuildOptions(shapes=shapes), "ort", report).require(path.name, "fp32")
    made.replace(kept(path))


def _spoil(path: Path) -> None:
    """Negates every weight that is a float matrix."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) >= 2:
            tensor.CopyFrom(onnx.numpy_helper.from_array(-onnx.numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, path)


def _open(path: Path, *, threads: int = 1, sizes: Sizes | None = None) -> KeptSession:
    return KeptSession(kept(path), threads=threads)


def _unfit(path: Path) -> str:
    return "" if kept(path).is_file() else f"no graph of {path.name} is kept"


def _prepare(fault: str, model: ModelFile, shapes: Shapes, report: Report, cancelled: Callable[[], bool]) -> None:
    run_in_child(keep_task, model.path, dict(shapes), fault, report=report, cancelled=cancelled)


for _name, _fault in FAULTS.items():
    register_runtime(_name, Runtime(_open, lambda: "", _unfit, partial(_prepare, _fault)))

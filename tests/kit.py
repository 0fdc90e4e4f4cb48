"""The smallest kit that opens models: files by name, in one folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from engines.align import Aligner, MeshAligner
from engines.errors import ModelError
from engines.family import Graph, Kind, ModelFile, families
from engines.session import Session, Shapes, TensorSpec, open_session


def graph_of(path: Path) -> Graph:
    session = open_session(path)
    last = onnx.load(path).graph.initializer[-1]
    spec = TensorSpec(last.name, tuple(last.dims), onnx.helper.tensor_dtype_to_np_dtype(last.data_type))
    return Graph(session.inputs, session.outputs, spec, 17)


def model_file(path: Path, family: str) -> ModelFile:
    return ModelFile(path.stem, path, hashlib.sha256(path.read_bytes()).hexdigest(), family, graph_of(path))


class FolderKit:
    """Keeps ``engines.family.Kit``."""

    def __init__(self, options: Mapping[str, Any] | None = None, **models: ModelFile) -> None:
        self.options = options or {}
        self.aligner: Aligner = MeshAligner()
        self._models = models

    def session(self, model: ModelFile, shapes: Shapes | None = None) -> Session:
        return open_session(model.path)

    def part(self, kind: Kind, names: Sequence[str]) -> Any:
        for name in names:
            if name in self._models:
                model = self._models[name]
                assert families[model.family].kind is kind
                return families[model.family].open(model, self)
        raise ModelError(f"none of {', '.join(names)} is here")

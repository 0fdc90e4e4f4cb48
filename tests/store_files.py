"""Model files, families and entries for the tests of the store."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engines.family import Family, Graph, Kind, shape_differences
from engines.registry import Registry
from engines.store.catalog import Commercial, Entry, Licence

OPSET = 17
FREE = Licence("mit", Commercial.YES, "MIT: commercial use is permitted")
NOT_FREE = Licence("research", Commercial.NO, "for research only; no commercial use")


def model_proto(size: int = 8, channels: int = 3, weights: int = 4, seed: int = 1) -> onnx.ModelProto:
    """``target [batch, channels, size, size]`` and ``source [1, weights]`` in, ``output`` like ``target`` out; last weights: ``emap``."""
    rng = np.random.default_rng(seed)
    shape = ["batch", channels, size, size]
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["emap"], ["mean"], keepdims=0),
            helper.make_node("ReduceMean", ["source"], ["one"], keepdims=0),
            helper.make_node("Add", ["target", "mean"], ["sum"]),
            helper.make_node("Add", ["sum", "one"], ["output"]),
        ],
        "tiny",
        [
            helper.make_tensor_value_info("target", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("source", TensorProto.FLOAT, [1, weights]),
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(np.ones(1, np.float32), "first"),
            numpy_helper.from_array(rng.standard_normal((weights, weights), np.float32), "emap"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def model_bytes(**options: Any) -> bytes:
    return model_proto(**options).SerializeToString()


def write(path: Path, model: onnx.ModelProto) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def crc32(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


@dataclass(frozen=True)
class SquareFamily:
    """Takes ``[any, 3, size, size]`` first."""

    size: int | None
    kind: Kind = Kind.SWAPPER
    dtypes: tuple[str, ...] = ("float32",)

    def differences(self, graph: Graph) -> tuple[str, ...]:
        first = graph.inputs[0] if graph.inputs else None
        return shape_differences("first input", first, (None, 3, self.size, self.size), self.dtypes)

    def open(self, model: Any, kit: Any) -> Any:
        raise NotImplementedError


def families(**entries: Family) -> Registry[Family]:
    registry: Registry[Family] = Registry("model family")
    for name, family in entries.items():
        registry.register(name)(family)
    return registry


EIGHT = {"eight": SquareFamily(8), "sixteen": SquareFamily(16, Kind.ENHANCER)}


@dataclass
class Published:
    """A file as a publisher has it."""

    data: bytes
    file: str = "tiny.onnx"
    name: str = "tiny"
    family: str = "eight"
    licence: Licence = FREE
    extra: dict[str, Any] = field(default_factory=dict)

    def entry(self, *bases: str, by: str = "sha256") -> Entry:
        """``by``: sha256, crc32 or nothing. ``bases``: folders that hold the file."""
        known: dict[str, Any] = {"sha256": sha256(self.data)} if by == "sha256" else {"crc32_beside": by == "crc32"}
        return Entry(
            name=self.name,
            family=self.family,
            kind=Kind.SWAPPER,
            file=self.file,
            publisher="the tests",
            licence=self.licence,
            addresses=tuple(f"{base}/{self.file}" for base in bases),
            mirror_path=f"tag-1/{self.file}",
            **{**known, **self.extra},
        )

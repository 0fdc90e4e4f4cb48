"""A graph written down as one writes NumPy: every step gives the name of its result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from standins import graphs

Shape = Sequence[int | str]


class Sketch:
    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, np.ndarray] = {}

    def const(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = np.array(value, dtype)
        return name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def add(self, a: str, b: str | float) -> str:
        return self.op("Add", a, self._name(b))

    def sub(self, a: str, b: str | float) -> str:
        return self.op("Sub", a, self._name(b))

    def mul(self, a: str, b: str | float) -> str:
        return self.op("Mul", a, self._name(b))

    def div(self, a: str, b: str | float) -> str:
        return self.op("Div", a, self._name(b))

    def _name(self, value: str | float) -> str:
        return value if isinstance(value, str) else self.const(value)

    def total(self, value: str) -> str:
        """Sum over height and width: [N, C, H, W] → [N, C, 1, 1]."""
        return self.op("ReduceSum", value, self.ints(2, 3), keepdims=1)

    def channel(self, value: str, number: int, axis: int = 1) -> str:
        return self.op("Slice", value, self.ints(number), self.ints(number + 1), self.ints(axis))

    def every(self, value: str, step: int, start: int = 0) -> str:
        """Each ``step``-th pixel down and across."""
        end = 2**31
        return self.op("Slice", value, self.ints(start, start), self.ints(end, end), self.ints(2, 3), self.ints(step, step))

    def grid(self, like: str) -> tuple[str, str]:
        """Column and row of every pixel of ``like`` [1, 1, H, W]."""
        ones = self.add(self.mul(like, 0.0), 1.0)
        x, y = (self.sub(self.op("CumSum", ones, self.const(axis, np.int64)), 1.0) for axis in (3, 2))
        return x, y

    def shape(self, value: str, *sides: int) -> str:
        return self.op("Reshape", value, self.ints(*sides))

    def save(
        self, path: Path, inputs: Sequence[tuple[str, Shape]], outputs: Sequence[tuple[str, str, Shape]], doubles: Sequence[str] = ()
    ) -> Path:
        """``outputs``: (step, name in the file, shape). ``doubles``: inputs of float64."""
        nodes = [*self._nodes, *(helper.make_node("Identity", [step], [name]) for step, name, _ in outputs)]
        given = [graphs.value(name, shape, TensorProto.DOUBLE if name in doubles else TensorProto.FLOAT) for name, shape in inputs]
        return graphs.save(path, nodes, given, [graphs.value(name, shape) for _, name, shape in outputs], self._constants)

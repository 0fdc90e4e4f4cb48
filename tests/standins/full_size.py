"""inswapper_128's network at its real size, with random weights: for speed work where nobody may ship the real one.

    PYTHONPATH=tests python -m standins.full_size inswapper_full.onnx

138 million parameters, 174.5 billion multiply-adds a face (its publisher says 138.3 M and 174.7 GFLOPs), 553 MB. The layers follow from
these two numbers and the sizes of the crop and the identity: an encoder of four convolutions, six blocks of two styled ones at 32 × 32
with 1024 channels, and a decoder of four.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from standins.graphs import node, save, value
from standins.swappers import emap

SIDE, BLOCKS = 128, 6


@dataclass
class _Builder:
    """Grows a graph layer by layer."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def conv(self, given: str, made: str, shape: tuple[int, int, int, int], stride: int = 1) -> None:
        fan_in = shape[1] * shape[2] * shape[3]
        self.constants[f"{made}.w"] = self.random.standard_normal(shape, np.float32) * np.float32(fan_in**-0.5)
        self.constants[f"{made}.b"] = np.zeros(shape[0], np.float32)
        pad = [shape[2] // 2] * 4
        self.nodes.append(node("Conv", [given, f"{made}.w", f"{made}.b"], made, pads=pad, strides=[stride, stride]))

    def relu(self, given: str, made: str) -> None:
        self.nodes.append(node("LeakyRelu", [given], made, alpha=0.2))

    def style(self, given: str, made: str, width: int) -> None:
        """Instance norm, then scale and shift from the identity."""
        self.constants[f"{made}.m"] = self.random.standard_normal((512, 2 * width), np.float32) * np.float32(512**-0.5)
        self.constants.setdefault("ones", np.ones(width, np.float32))
        self.constants.setdefault("zeros", np.zeros(width, np.float32))
        self.constants.setdefault("shape", np.array([-1, 2 * width, 1, 1], np.int64))
        self.nodes += [
            node("InstanceNormalization", [given, "ones", "zeros"], f"{made}.n"),
            node("MatMul", ["source", f"{made}.m"], f"{made}.f"),
            node("Reshape", [f"{made}.f", "shape"], f"{made}.s"),
            onnx.helper.make_node("Split", [f"{made}.s"], [f"{made}.scale", f"{made}.shift"], axis=1),
            node("Mul", [f"{made}.n", f"{made}.scale"], f"{made}.x"),
            node("Add", [f"{made}.x", f"{made}.shift"], made),
        ]

    def up(self, given: str, made: str) -> None:
        self.constants.setdefault("twice", np.array([1, 1, 2, 2], np.float32))
        self.nodes.append(node("Resize", [given, "", "twice"], made, mode="linear"))


def inswapper(path: Path, width: int = 1024, batch: int | str = 1) -> Path:
    """``width``: channels in the middle; 1024 is the real network, 64 one for tests. ``batch``: faces at once, a name for any number."""
    graph = _Builder()
    quarter = width // 8
    at = "target"
    for number, (out, given, kernel, stride) in enumerate(_encoder(quarter)):
        graph.conv(at, f"e{number}", (out, given, kernel, kernel), stride)
        graph.relu(f"e{number}", f"e{number}.r")
        at = f"e{number}.r"
    for block in range(BLOCKS):
        start = at
        for half in ("a", "b"):
            name = f"s{block}{half}"
            graph.conv(at, f"{name}.c", (width, width, 3, 3))
            graph.style(f"{name}.c", name, width)
            at = name
            if half == "a":
                graph.relu(name, f"{name}.r")
                at = f"{name}.r"
        graph.nodes.append(node("Add", [start, at], f"s{block}"))
        at = f"s{block}"
    for number, (out, given) in enumerate(((width // 2, width), (width // 4, width // 2), (quarter, width // 4))):
        if number < 2:
            graph.up(at, f"u{number}")
            at = f"u{number}"
        graph.conv(at, f"d{number}", (out, given, 3, 3))
        graph.relu(f"d{number}", f"d{number}.r")
        at = f"d{number}.r"
    graph.conv(at, "raw", (3, quarter, 7, 7))
    graph.nodes.append(node("Sigmoid", ["raw"], "output"))
    inputs = [value("target", (batch, 3, SIDE, SIDE)), value("source", (batch, 512))]
    constants = {**graph.constants, "emap": emap()}
    return save(path, graph.nodes, inputs, [value("output", (batch, 3, SIDE, SIDE))], constants)


def _encoder(quarter: int) -> Iterator[tuple[int, int, int, int]]:
    """(channels out, in, kernel, stride): 128 × 128 twice, then 64 and 32."""
    yield quarter, 3, 7, 1
    yield 2 * quarter, quarter, 3, 1
    yield 4 * quarter, 2 * quarter, 3, 2
    yield 8 * quarter, 4 * quarter, 3, 2


def parameters(path: Path) -> int:
    """Numbers that were learnt: all but emap and what shapes and doubles."""
    skipped = ("emap", "ones", "zeros", "shape", "twice")
    return sum(int(np.prod(tensor.dims)) for tensor in onnx.load(path).graph.initializer if tensor.name not in skipped)


def multiply_adds(path: Path) -> int:
    """Of all convolutions and products, for one face."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    sizes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*model.graph.value_info, *model.graph.output]}
    weights = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    total = 0
    for step in model.graph.node:
        if step.op_type == "Conv":
            total += int(np.prod(weights[step.input[1]])) * int(np.prod(sizes[step.output[0]][2:]))
        if step.op_type == "MatMul":
            total += int(np.prod(weights[step.input[1]]))
    return total


if __name__ == "__main__":
    written = inswapper(Path(sys.argv[1]))
    print(f"{written}: {parameters(written) / 1e6:.1f} M parameters, {multiply_adds(written) / 1e9:.1f} G multiply-adds")

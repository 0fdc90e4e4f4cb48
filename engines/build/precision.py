"""From an fp32 graph to the same network in fp16, int8 or fp8. Precision is in the graph, since runtimes take it from there.

Inputs and outputs keep their types, so that whoever runs the model need not know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.build.key import capability
from engines.errors import ModelError

if TYPE_CHECKING:
    import onnx

Ranges = Mapping[str, float]
"""Tensor → the largest absolute value it was seen with."""

HALF_MAX = 65504.0
"""The largest number of fp16 (IEEE 754 binary16)."""

HEADROOM = 8.0
"""A tensor seen above HALF_MAX / HEADROOM stays in fp32: crops of other people may reach further than those it was measured on."""

KEEP_FULL = frozenset(
    {
        # sums over many values, and powers: the first to leave fp16's range
        "ReduceMean",
        "ReduceSum",
        "ReduceSumSquare",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "CumSum",
        "Pow",
        "Exp",
        "Log",
        "Reciprocal",
        "Sqrt",
        "Softplus",
        # norms: a variance is a square, and its epsilon (1e-5 and less) is lost beside it
        "InstanceNormalization",
        "LayerNormalization",
        "GroupNormalization",
        "LpNormalization",
        "MeanVarianceNormalization",
        "LRN",
        "Softmax",
        "LogSoftmax",
        # positions in a picture: 11 bits do not tell 1/10 of a pixel at 512
        "GridSample",
        "AffineGrid",
        "Range",
        "NonMaxSuppression",
        "TopK",
        "RoiAlign",
        "Einsum",
        # what makes or changes types itself
        "Cast",
        "CastLike",
        "ConstantOfShape",
        "RandomNormal",
        "RandomUniform",
        "RandomNormalLike",
        "RandomUniformLike",
        "EyeLike",
        "OneHot",
        "QuantizeLinear",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "Shape",
        "Size",
    }
)
"""Operators that stay in fp32."""

FULL_INPUTS = {"Resize": {1, 2, 3}, "Upsample": {1}}
"""Operator → inputs that are fp32 whatever the first one is: scales and regions."""

FP8_FROM = 89
"""Compute capability from which NVIDIA's GPUs multiply fp8: Ada Lovelace (CUDA C++ programming guide, "Compute capabilities")."""


@dataclass(frozen=True, slots=True)
class Quantizer:
    """A small type that weights and activations are rounded to."""

    onnx_type: str
    largest: float
    """What the largest value seen is mapped to."""
    opset: int
    """From which ONNX's QuantizeLinear has the type (and an axis)."""


QUANTIZERS = {"int8": Quantizer("INT8", 127.0, 13), "fp8": Quantizer("FLOAT8E4M3FN", 448.0, 19)}

QUANTIZED_OPS = {"Conv": 0, "Gemm": 0, "MatMul": 1}
"""Operator → its weights' axis of output channels (Gemm: with transB, as exporters write it)."""


def check_targets(precision: str, targets: Sequence[str]) -> None:
    """Raises ``ModelError`` when a target's chip cannot do ``precision``."""
    short = [target for target in targets if capability(target) < FP8_FROM]
    if precision == "fp8" and (short or not targets):
        named = ", ".join(short) or "no target by name"
        raise ModelError(f"fp8 was asked for {named}; chips have it from sm_89 on; choose --precision int8 or fp16, or other targets")


def convert(model: onnx.ModelProto, precision: str, ranges: Ranges) -> onnx.ModelProto:
    """A model of its own at ``precision``; ``model`` is left as it is. ``ranges``: of every tensor, from ``ranges.measure``."""
    if precision == "fp32":
        return model
    if precision == "fp16":
        return to_half(model, ranges)
    return quantize(model, ranges, precision)


# --- fp16


def to_half(model: onnx.ModelProto, ranges: Ranges) -> onnx.ModelProto:
    """fp16 but for what overflows or loses too much: operators by name, and tensors that were seen too large for it."""
    half = _plain_copy(model)
    types = _types(half)
    kept = _captured(half.graph)
    weights = {tensor.name: tensor for tensor in half.graph.initializer}
    nodes = list(half.graph.node)
    narrow = [_fits_half(node, types, weights, ranges, kept) for node in nodes]
    rewriter = _Rewriter(types, weights)
    for node, is_narrow in zip(nodes, narrow, strict=True):
        rewriter.add(node, is_narrow)
    rewriter.finish(half.graph.output)
    used = {name for node in rewriter.nodes for name in node.input} | kept | {value.name for value in half.graph.output}
    del half.graph.node[:]
    half.graph.node.extend(rewriter.nodes)
    tensors = [tensor for tensor in [*half.graph.initializer, *rewriter.halves] if tensor.name in used]
    del half.graph.initializer[:]
    half.graph.initializer.extend(tensors)
    del half.graph.value_info[:]
    return half


def rounded(half: onnx.ModelProto) -> onnx.ModelProto:
    """``half`` for the processor: fp32 arithmetic, each tensor that is fp16 rounded to it, so that it overflows where a GPU's would.

    ONNX Runtime's processor provider has no fp16 kernels and leaves out the casts around fp32 ones: the fp16 graph itself would be
    computed in fp32 there and prove nothing. Casts that stand in an fp32 graph are kept. A GPU adds up in fp32 within a product, as this.
    """
    from onnx import helper, numpy_helper

    narrow = {name for name, kind in _types(half).items() if kind == _HALF}
    if narrow.intersection(value.name for value in (*half.graph.input, *half.graph.output)):
        return half  # its very inputs are fp16: not one of ours
    wide = _plain_copy(half)
    nodes: list[onnx.NodeProto] = []
    for node in wide.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            if name in narrow:
                node.output[place] = f"{name}:exact"
                nodes.append(helper.make_node("Cast", [f"{name}:exact"], [f"{name}:bits"], to=_HALF))
                nodes.append(helper.make_node("Cast", [f"{name}:bits"], [name], to=_FLOAT))
    weights = [
        numpy_helper.from_array(_array(tensor).astype(np.float32), tensor.name) if tensor.data_type == _HALF else tensor
        for tensor in wide.graph.initializer
    ]
    del wide.graph.node[:]
    wide.graph.node.extend(nodes)
    del wide.graph.initializer[:]
    wide.graph.initializer.extend(weights)
    return wide


class _Rewriter:
    """Nodes one after the other, with casts where the precision changes. A tensor ``x`` in the other type is ``x:half`` or ``x:full``."""

    def __init__(self, types: Mapping[str, int], weights: Mapping[str, onnx.TensorProto]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.halves: list[onnx.TensorProto] = []
        self._types = types
        self._weights = weights
        self._made: set[str] = set()
        self._narrow: set[str] = set()  # tensors that exist as fp16

    def add(self, node: onnx.NodeProto, is_narrow: bool) -> None:
        fixed = FULL_INPUTS.get(node.op_type, set())
        for place, name in enumerate(node.input):
            if self._is_float(name):
                node.input[place] = self._as_half(name) if is_narrow and place not in fixed else self._as_full(name)
        if is_narrow:
            self._narrow.update(name + ":half" for name in node.output if self._is_float(name))
            for place, name in enumerate(node.output):
                if self._is_float(name):
                    node.output[place] = name + ":half"
        self.nodes.append(node)

    def finish(self, outputs: Iterable[onnx.ValueInfoProto]) -> None:
        """The graph's outputs under their own names and types."""
        for value in outputs:
            if value.name + ":half" in self._narrow:
                self._as_full(value.name)

    def _is_float(self, name: str) -> bool:
        return bool(name) and self._types.get(name) == _FLOAT

    def _as_full(self, name: str) -> str:
        """A tensor that was made in fp16 is cast back under the name it had."""
        if name + ":half" in self._narrow and name not in self._made:
            self._cast(name + ":half", name, _FLOAT)
        return name

    def _as_half(self, name: str) -> str:
        wanted = name + ":half"
        if wanted in self._narrow or wanted in self._made:
            return wanted
        if name in self._weights:
            self.halves.append(_half_tensor(self._weights[name], wanted))
            self._made.add(wanted)
        else:
            self._cast(name, wanted, _HALF)
        return wanted

    def _cast(self, name: str, wanted: str, to: int) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node("Cast", [name], [wanted], name=f"cast {wanted}", to=to))
        self._made.add(wanted)


_FLOAT, _HALF = 1, 10
"""ONNX's numbers of its element types: TensorProto.FLOAT and FLOAT16."""


def _fits_half(
    node: onnx.NodeProto, types: Mapping[str, int], weights: Mapping[str, onnx.TensorProto], ranges: Ranges, kept: set[str]
) -> bool:
    names = [name for name in (*node.input, *node.output) if name]
    if node.domain not in ("", "ai.onnx") or node.op_type in KEEP_FULL or any(attribute.HasField("g") for attribute in node.attribute):
        return False
    if any(name not in types for name in names) or not any(types[name] == _FLOAT for name in node.output if name):
        return False
    if kept.intersection(names):  # used inside of a branch or loop under this name, and in fp32
        return False
    floats = [name for name in names if types[name] == _FLOAT]
    return all(_range(name, weights, ranges) * HEADROOM <= HALF_MAX for name in floats)


def _range(name: str, weights: Mapping[str, onnx.TensorProto], ranges: Ranges) -> float:
    if name not in weights:
        return ranges.get(name, 0.0)
    values = _array(weights[name])
    return float(np.abs(values).max()) if values.size else 0.0


def _half_tensor(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    from onnx import numpy_helper

    return numpy_helper.from_array(_array(tensor).astype(np.float16), name)


# --- int8 and fp8


def quantize(model: onnx.ModelProto, ranges: Ranges, precision: str) -> onnx.ModelProto:
    """Weights as small numbers with a scale for each output channel, activations rounded before each product; the rest stays fp32.

    Symmetric (zero point 0), as TensorRT wants it. Raises ``ModelError`` for a model in which nothing can be quantized.
    """
    quantizer = QUANTIZERS[precision]
    small = _at_opset(_plain_copy(model), quantizer.opset)
    weights = {tensor.name: tensor for tensor in small.graph.initializer}
    writer = _QuantizeWriter(quantizer, ranges)
    nodes: list[onnx.NodeProto] = []
    for node in small.graph.node:
        if _quantizable(node, weights, ranges):
            node.input[0] = writer.activation(node.input[0])
            node.input[1] = writer.weight(weights[node.input[1]], QUANTIZED_OPS[node.op_type])
        nodes += [*writer.take(), node]
    if not writer.tensors:
        raise ModelError(f"nothing in this model can be quantized to {precision} (no convolution or product with fixed weights); use fp16")
    used = {name for node in nodes for name in node.input} | _captured(small.graph)
    del small.graph.node[:]
    small.graph.node.extend(nodes)
    tensors = [tensor for tensor in [*small.graph.initializer, *writer.tensors] if tensor.name in used]
    del small.graph.initializer[:]
    small.graph.initializer.extend(tensors)
    del small.graph.value_info[:]
    return small


class _QuantizeWriter:
    """Makes the quantize and dequantize nodes and their constants, each once."""

    def __init__(self, quantizer: Quantizer, ranges: Ranges) -> None:
        self.tensors: list[onnx.TensorProto] = []
        self._quantizer = quantizer
        self._ranges = ranges
        self._nodes: list[onnx.NodeProto] = []
        self._made: set[str] = set()

    def take(self) -> list[onnx.NodeProto]:
        """The nodes made since the last call, which belong before the node that they were made for."""
        nodes, self._nodes = self._nodes, []
        return nodes

    def activation(self, name: str) -> str:
        rounded = f"{name}:rounded"
        if rounded not in self._made:
            scale = np.array(max(self._ranges[name], 1e-6) / self._quantizer.largest, np.float32)
            parts = self._scale(name, scale)
            self._node("QuantizeLinear", [name, *parts], f"{name}:small")
            self._node("DequantizeLinear", [f"{name}:small", *parts], rounded)
            self._made.add(rounded)
        return rounded

    def weight(self, tensor: onnx.TensorProto, axis: int) -> str:
        rounded = f"{tensor.name}:rounded"
        if rounded not in self._made:
            values = _array(tensor)
            others = tuple(k for k in range(values.ndim) if k != axis)
            largest = np.maximum(np.abs(values).max(others, keepdims=True), 1e-12)
            scale = (largest / self._quantizer.largest).astype(np.float32)
            self.tensors.append(self._small(f"{tensor.name}:small", values / scale))
            self._node("DequantizeLinear", [f"{tensor.name}:small", *self._scale(tensor.name, scale.ravel())], rounded, axis=axis)
            self._made.add(rounded)
        return rounded

    def _scale(self, name: str, scale: np.ndarray) -> list[str]:
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(scale, f"{name}:scale"))
        self.tensors.append(self._small(f"{name}:zero", np.zeros(scale.shape, np.float32)))
        return [f"{name}:scale", f"{name}:zero"]

    def _small(self, name: str, values: np.ndarray) -> onnx.TensorProto:
        from onnx import TensorProto, helper, numpy_helper

        if self._quantizer.onnx_type == "INT8":
            return numpy_helper.from_array(np.clip(np.rint(values), -127, 127).astype(np.int8), name)
        kind = getattr(TensorProto, self._quantizer.onnx_type)
        small = np.clip(values, -self._quantizer.largest, self._quantizer.largest).astype(helper.tensor_dtype_to_np_dtype(kind))
        return helper.make_tensor(name, kind, values.shape, small.tobytes(), raw=True)

    def _node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(op, inputs, [output], name=f"{op} {output}", **attributes))


def _quantizable(node: onnx.NodeProto, weights: Mapping[str, onnx.TensorProto], ranges: Ranges) -> bool:
    if node.op_type not in QUANTIZED_OPS or len(node.input) < 2 or node.input[1] not in weights or node.input[0] not in ranges:
        return False
    if node.op_type == "Gemm" and not any(attribute.name == "transB" and attribute.i for attribute in node.attribute):
        return False
    shape = weights[node.input[1]].dims
    # One channel in and one out each (depthwise): next to no work, and the first to be ruined by rounding.
    return weights[node.input[1]].data_type == _FLOAT and len(shape) >= 2 and not (node.op_type == "Conv" and shape[1] == 1)


# --- both


def _plain_copy(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without Constant nodes and without casts of weights: both become weights."""
    import onnx
    from onnx import numpy_helper

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    weights = {tensor.name: tensor for tensor in copy.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in copy.graph.node:
        value = _folded(node, weights)
        if value is None:
            nodes.append(node)
            continue
        weights[node.output[0]] = numpy_helper.from_array(value, node.output[0])
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input} | _captured(copy.graph) | {value.name for value in copy.graph.output}
    kept = [tensor for name, tensor in weights.items() if name in used]
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(kept)
    names = {tensor.name for tensor in kept}
    real = [value for value in copy.graph.input if value.name not in names]  # old files list weights among the inputs
    del copy.graph.input[:]
    copy.graph.input.extend(real)
    return copy


def _folded(node: onnx.NodeProto, weights: Mapping[str, onnx.TensorProto]) -> np.ndarray | None:
    """The value of a node that always gives the same; None for all others."""
    from onnx import helper, numpy_helper

    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "Constant" and "value" in attributes:
        return numpy_helper.to_array(attributes["value"].t)
    if node.op_type == "Cast" and node.input[0] in weights:
        kind = attributes["to"].i
        if kind in (_FLOAT, _HALF) and weights[node.input[0]].data_type in (_FLOAT, _HALF):
            return _array(weights[node.input[0]]).astype(helper.tensor_dtype_to_np_dtype(kind))
    return None


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """Tensor → ONNX's number of its element type, as far as it can be told."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model, data_prop=False)
    values = [*inferred.graph.input, *inferred.graph.output, *inferred.graph.value_info]
    types = {value.name: value.type.tensor_type.elem_type for value in values if value.type.HasField("tensor_type")}
    types.update({tensor.name: tensor.data_type for tensor in inferred.graph.initializer})
    return {name: kind for name, kind in types.items() if kind}


def _captured(graph: onnx.GraphProto) -> set[str]:
    """Names that branches and loops inside of the graph use; whatever they are, those must stay as they were."""
    names: set[str] = set()
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    for part in inner:
        names |= {name for node in part.node for name in node.input} | {value.name for value in part.output} | _captured(part)
    return names


def _at_opset(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    import onnx

    have = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if have >= opset:
        return model
    try:
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises whatever its C++ threw
        raise ModelError(
            f"the model is written in ONNX opset {have}, this precision needs {opset}, and it cannot be raised ({error}); use fp16"
        ) from error


def _array(tensor: onnx.TensorProto) -> np.ndarray:
    from onnx import numpy_helper

    return np.asarray(numpy_helper.to_array(tensor))


def tensor_names(model: onnx.ModelProto) -> list[str]:
    """All float tensors that are computed, in order: those whose ranges matter."""
    types = _types(model)
    by_node: dict[str, None] = defaultdict()
    for node in model.graph.node:
        by_node.update({name: None for name in node.output if types.get(name) == _FLOAT})
    return list(by_node)

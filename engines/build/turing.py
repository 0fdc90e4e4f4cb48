"""What TensorRT for RTX 1.7 cannot do on Turing (sm_75): products of fp32 matrices. 1x1 convolutions it can, and they compute the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

TARGET = "sm_75"

HINT = "on sm_75 it multiplies matrices in fp16 alone: use --precision fp16, or leave sm_75 out of --for"


def without_full_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of ``model`` whose fp32 products with fixed weights are convolutions; products of two computed matrices stay as they are."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    inferred = onnx.shape_inference.infer_shapes(copy).graph
    shapes = {value.name: _shape(value) for value in (*inferred.input, *inferred.value_info, *inferred.output)}
    writer = _Writer({tensor.name: tensor for tensor in copy.graph.initializer}, shapes)
    for node in copy.graph.node:
        if not writer.rewrite(node):
            writer.nodes.append(node)
    del copy.graph.node[:]
    copy.graph.node.extend(writer.nodes)
    copy.graph.initializer.extend(writer.tensors)
    return copy


class _Writer:
    def __init__(self, weights: Mapping[str, onnx.TensorProto], shapes: Mapping[str, tuple[int | None, ...] | None]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._weights = weights
        self._shapes = shapes

    def rewrite(self, node: onnx.NodeProto) -> bool:
        """[…, K] · [K, M] (+ C) as [-1, K, 1, 1] ∗ [M, K, 1, 1] → […, M] (+ C). False, and nothing written, for what it does not fit."""
        matrix = self._matrix(node)
        shape = self._shapes.get(node.input[0]) if node.input else None
        if matrix is None or not shape or len(shape) < 2 or any(size is None for size in shape[1:]):
            return False
        name, (channels, features) = node.output[0], matrix.shape
        kernel = self._constant(f"{name}:kernel", np.ascontiguousarray(matrix.T).reshape(features, channels, 1, 1))
        columns = self._constant(f"{name}:columns", np.array([-1, channels, 1, 1], np.int64))
        rows = self._constant(f"{name}:rows", np.array([-1, *shape[1:-1], features], np.int64))
        added = node.input[2] if len(node.input) > 2 and node.input[2] else ""
        product = f"{name}:product" if added else name
        self._node("Reshape", [node.input[0], columns], f"{name}:in")
        self._node("Conv", [f"{name}:in", kernel], f"{name}:out")
        self._node("Reshape", [f"{name}:out", rows], product)
        if added:
            self._node("Add", [product, added], name)
        return True

    def _matrix(self, node: onnx.NodeProto) -> np.ndarray | None:
        """float32 [K, M], where the node is such a product."""
        from onnx import TensorProto, numpy_helper

        if node.op_type not in ("MatMul", "Gemm") or len(node.input) < 2 or node.input[1] not in self._weights:
            return None
        tensor = self._weights[node.input[1]]
        if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2:
            return None
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if any(name in attributes and attributes[name].f != 1 for name in ("alpha", "beta")):
            return None
        if "transA" in attributes and attributes["transA"].i:
            return None
        matrix = np.asarray(numpy_helper.to_array(tensor))
        return matrix.T if "transB" in attributes and attributes["transB"].i else matrix

    def _constant(self, name: str, value: np.ndarray) -> str:
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(value, name))
        return name

    def _node(self, op: str, inputs: list[str], output: str) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{op} {output}"))


def _shape(value: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    """None for a size that may vary, and for a shape that is not known."""
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None for dim in kind.shape.dim)

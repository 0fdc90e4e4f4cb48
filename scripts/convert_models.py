#!/usr/bin/env python3
"""Converts the face and hand models of the wheel mediapipe 0.10.21 from TFLite to ONNX.

    python scripts/convert_models.py WHEEL [--out assets/models]

Needs numpy, onnx and tflite (a FlatBuffer reader): the extra `dev`. The same wheel gives the same bytes.
Kernels are stored as float16, as they are in the wheel, and cast when a session loads; the mathematics is float32.
PRelu is written as two depthwise 1x1 convolutions, which ONNX Runtime keeps in its blocked layout: three times faster
than its PRelu, the same result to 2e-4. Input "image" is uint8 RGB [N, H, W, 3]; normalisation is in the graph.
The full-range detector, which has convolutions alone, takes pictures of every size whose sides are multiples of 32.
"""

from __future__ import annotations

import argparse
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tflite
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as onh


@dataclass(frozen=True)
class Recipe:
    """What the converter must be told of one model of the wheel."""

    folder: str
    scale: float
    offset: float
    """Pixel × scale + offset is what the model takes."""
    outputs: Mapping[str, tuple[int, ...]]
    """Name → shape after the batch, in the order of the TFLite file."""
    usual_size: tuple[int, int] | None = None
    """Height and width in the TFLite file where ONNX leaves them open, and with them the number of anchors, the first of ``outputs``."""

    def path(self, name: str) -> str:
        return f"mediapipe/modules/{self.folder}/{name}.tflite"


UNIT, SIGNED = (1 / 255, 0.0), (1 / 127.5, -1.0)
RECIPES = {
    "face_detection_short_range": Recipe("face_detection", *SIGNED, {"boxes": (896, 16), "logits": (896,)}),
    "face_detection_full_range_sparse": Recipe("face_detection", *SIGNED, {"boxes": (2304, 16), "logits": (2304,)}, usual_size=(192, 192)),
    "face_landmark": Recipe("face_landmark", *UNIT, {"points": (468, 3), "logit": (1,)}),
    "iris_landmark": Recipe("iris_landmark", *UNIT, {"eye": (71, 3), "iris": (5, 3)}),
    "palm_detection_lite": Recipe("palm_detection", *UNIT, {"boxes": (2016, 18), "logits": (2016,)}),
    "hand_landmark_lite": Recipe("hand_landmark", *UNIT, {"points": (21, 3), "presence": (1,), "right": (1,), "world": (21, 3)}),
}

ARRAY_TYPES = (np.float32, np.float16, np.int32)
"""TFLite's first three element types, by their numbers."""

INDEX_TYPES = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}
"""How a sparse tensor may keep its indices."""

RELU, RELU6 = 1, 3
"""TFLite's numbers of fused activations."""


@dataclass
class Step:
    """One TFLite operator, read."""

    inputs: list[int]
    """Tensor numbers."""
    output: int
    constants: list[Any]
    """The inputs' arrays; None for what is computed."""
    options: Any
    """The operator's option table, where it has one."""


def read_union(kind: type, member: Any) -> Any:
    """A member of a FlatBuffers union as an object of class ``kind``."""
    reader = kind()
    reader.Init(member.Bytes, member.Pos)
    return reader


class Converter:
    """Turns one TFLite model into an NCHW ONNX graph, operator by operator: a method for each kind."""

    def __init__(self, data: bytes, recipe: Recipe) -> None:
        self._model = tflite.Model.GetRootAsModel(data, 0)
        self._graph = self._model.Subgraphs(0)
        self._recipe = recipe
        self._nodes: list[onnx.NodeProto] = []
        self._initialisers: list[onnx.TensorProto] = []
        self._values: dict[int, Any] = {}  # TFLite tensor → ONNX name, or the array of a constant that was computed
        self._pads: dict[int, Sequence[int]] = {}  # TFLite tensor → padding that its reader is to apply

    def convert(self) -> onnx.GraphProto:
        source = self._graph.Inputs(0)
        height, width = self._shape(source)[1:3]
        self._values[source] = self._normalised("image")
        for k in range(self._graph.OperatorsLength()):
            self._convert(self._graph.Operators(k))
        size = ["height", "width"] if self._recipe.usual_size else [height, width]
        for k, (name, dims) in enumerate(self._recipe.outputs.items()):
            self._emit("Reshape", self._nhwc(self._graph.Outputs(k)), self._reshaped(dims), out=name)
        return oh.make_graph(
            self._nodes,
            "mediapipe",
            [oh.make_tensor_value_info("image", T.UINT8, ["N", *size, 3])],
            [oh.make_tensor_value_info(name, T.FLOAT, self._output_shape(dims)) for name, dims in self._recipe.outputs.items()],
            self._initialisers,
        )

    # --- what all operators need ---

    def _normalised(self, image: str) -> str:
        y = self._emit("Mul", self._emit("Cast", image, to=T.FLOAT), self._constant(self._recipe.scale))
        if self._recipe.offset:
            y = self._emit("Add", y, self._constant(self._recipe.offset))
        return self._emit("Transpose", y, perm=[0, 3, 1, 2])

    def _emit(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Adds a node and returns the name of its output."""
        name = out or f"v{len(self._nodes)}"
        self._nodes.append(oh.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, value: Any, dtype: type = np.float32) -> str:
        """Adds an initialiser. Only kernels are stored as float16; biases and slopes stay exact."""
        array: np.ndarray = np.array(value, dtype, order="C")
        name = f"c{len(self._initialisers)}"
        is_kernel = array.ndim == 4 and array[0].size > 1
        self._initialisers.append(onh.from_array(array.astype(np.float16) if is_kernel else array, name))
        return self._emit("Cast", name, to=T.FLOAT) if is_kernel else name

    def _shape(self, tensor: int) -> list[int]:
        return self._graph.Tensors(tensor).ShapeAsNumpy().tolist()

    def _nhwc(self, tensor: int) -> str:
        name = self._values[tensor]
        return self._emit("Transpose", name, perm=[0, 2, 3, 1]) if len(self._shape(tensor)) == 4 else name

    def _array(self, number: int) -> np.ndarray | None:
        """A constant tensor, sparse rows expanded and float16 widened; None for one that is computed."""
        tensor = self._graph.Tensors(number)
        buffer = self._model.Buffers(tensor.Buffer())
        if number in self._values or not buffer.DataLength():
            known = self._values.get(number)
            return known if isinstance(known, np.ndarray) else None
        array = buffer.DataAsNumpy().view(ARRAY_TYPES[tensor.Type()])
        if tensor.Sparsity():
            array = self._expanded(array, tensor.Sparsity(), self._shape(number)[-1])
        return array.reshape(self._shape(number)).astype(np.int32 if array.dtype == np.int32 else np.float32)

    @staticmethod
    def _expanded(packed: np.ndarray, sparsity: Any, width: int) -> np.ndarray:
        """Outer dimensions are dense; of the last one only some columns are stored."""
        last = sparsity.DimMetadata(sparsity.DimMetadataLength() - 1)
        ends = read_union(INDEX_TYPES[last.ArraySegmentsType()], last.ArraySegments()).ValuesAsNumpy().astype(int)
        columns = read_union(INDEX_TYPES[last.ArrayIndicesType()], last.ArrayIndices()).ValuesAsNumpy()
        dense = np.zeros((len(ends) - 1, width), packed.dtype)
        dense[np.repeat(np.arange(len(dense)), np.diff(ends)), columns] = packed[: len(columns)]
        return dense

    def _window(self, step: Step, kernel: Sequence[int]) -> dict[str, Any]:
        """Attributes of a convolution or pooling, with a Pad operator before it folded in."""
        stride = (step.options.StrideH(), step.options.StrideW())
        pads = self._pads.get(step.inputs[0], (0, 0, 0, 0))
        if step.options.Padding() == tflite.Padding.SAME:
            sizes = zip(self._shape(step.inputs[0])[1:3], self._shape(step.output)[1:3], stride, kernel, strict=True)
            need = [max((after - 1) * by + length - before, 0) for before, after, by, length in sizes]
            same = (need[0] // 2, need[1] // 2, -(-need[0] // 2), -(-need[1] // 2))
            pads = [a + b for a, b in zip(pads, same, strict=True)]
        return {"kernel_shape": kernel, "strides": stride, "pads": pads}

    # --- the operators ---

    def _convert(self, operator: Any) -> None:
        code = self._model.OperatorCodes(operator.OpcodeIndex())
        name = tflite.opcode2name(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))
        if name not in OPERATORS:
            raise NotImplementedError(f"the model has the operator {name}; known are {', '.join(OPERATORS)}")
        method, options = OPERATORS[name]
        inputs = operator.InputsAsNumpy().tolist()
        if inputs[0] in self._pads and "CONV_2D" not in name:
            raise NotImplementedError(f"{name} reads a padded tensor; only convolutions may")
        constants = [self._array(tensor) for tensor in inputs]
        read = read_union(options, operator.BuiltinOptions()) if options else None
        step = Step(inputs, int(operator.Outputs(0)), constants, read)
        self._values[step.output] = self._activated(method(self, step), read)

    def _activated(self, y: Any, options: Any) -> Any:
        fused = options.FusedActivationFunction() if hasattr(options, "FusedActivationFunction") else 0
        if fused == RELU:
            return self._emit("Relu", y)
        return self._emit("Clip", y, self._constant(0), self._constant(6)) if fused == RELU6 else y

    def _x(self, step: Step) -> str:
        return self._values[step.inputs[0]]

    def _unpacked(self, step: Step) -> np.ndarray | None:
        return step.constants[0]

    def _relu(self, step: Step) -> str:
        return self._emit("Relu", self._x(step))

    def _sigmoid(self, step: Step) -> str:
        return self._emit("Sigmoid", self._x(step))

    def _mean(self, step: Step) -> str:
        return self._emit("GlobalAveragePool", self._x(step))

    def _add(self, step: Step) -> str:
        return self._emit("Add", *(self._values[tensor] for tensor in step.inputs))

    def _concatenation(self, step: Step) -> str:
        """Of [N, anchors, values]."""
        return self._emit("Concat", *(self._values[tensor] for tensor in step.inputs), axis=1)

    def _convolution(self, step: Step) -> str:
        return self._convolved(step, step.constants[1].transpose(0, 3, 1, 2), 1)

    def _depthwise(self, step: Step) -> str:
        return self._convolved(step, step.constants[1].transpose(3, 0, 1, 2), self._shape(step.inputs[0])[3])

    def _convolved(self, step: Step, kernel: np.ndarray, groups: int) -> str:
        weights, bias = self._constant(kernel), self._constant(step.constants[2])
        return self._emit("Conv", self._x(step), weights, bias, **self._window(step, kernel.shape[2:]), group=groups)

    def _fully_connected(self, step: Step) -> str:
        """After a mean. TensorRT-RTX has no float32 GEMM on SM75, but convolutions."""
        weights = self._constant(step.constants[1][:, :, None, None])
        return self._emit("Conv", self._x(step), weights, self._constant(step.constants[2]))

    def _prelu(self, step: Step) -> str:
        """slope·x + (1 - slope)·relu(x)."""
        slope = step.constants[1].reshape(-1, 1, 1, 1)
        positive = self._emit("Conv", self._emit("Relu", self._x(step)), self._constant(1 - slope), group=slope.size)
        both = self._emit("Conv", self._x(step), self._constant(slope), group=slope.size)
        return self._emit("Add", both, positive)

    def _max_pool(self, step: Step) -> str:
        kernel = (step.options.FilterHeight(), step.options.FilterWidth())
        return self._emit("MaxPool", self._x(step), **self._window(step, kernel))

    def _pad(self, step: Step) -> str:
        amounts = step.constants[1]
        if amounts[1:3].any():  # spatial: handed on to the convolution that reads it
            self._pads[step.output] = (*amounts[1:3, 0], *amounts[1:3, 1])
            return self._x(step)
        # More channels: an identity convolution, which fuses with the addition that follows.
        identity = np.eye(self._shape(step.output)[3], self._shape(step.inputs[0])[3])
        return self._emit("Conv", self._x(step), self._constant(identity[..., None, None]))

    def _reshape(self, step: Step) -> str:
        return self._emit("Reshape", self._nhwc(step.inputs[0]), self._reshaped(self._shape(step.output)[1:]))

    def _output_shape(self, dims: Sequence[int]) -> list[int | str]:
        return ["N", "anchors", *dims[1:]] if self._recipe.usual_size else ["N", *dims]

    def _reshaped(self, dims: Sequence[int]) -> str:
        """The constant of a Reshape to ``dims`` after the batch; where the size is free, as many anchors as there are."""
        return self._constant([0, -1, *dims[1:]] if self._recipe.usual_size else [0, *dims], np.int64)

    def _depth_to_space(self, step: Step) -> str:
        factor = self._shape(step.output)[1] // self._shape(step.inputs[0])[1]
        return self._emit("DepthToSpace", self._x(step), blocksize=factor)

    def _resize(self, step: Step) -> str:
        align, half = step.options.AlignCorners(), step.options.HalfPixelCenters()
        mode = "align_corners" if align else "half_pixel" if half else "asymmetric"
        factors = np.divide(self._shape(step.output)[1:3], self._shape(step.inputs[0])[1:3])
        scale = self._constant([1, 1, *factors])
        return self._emit("Resize", self._x(step), "", scale, mode="linear", coordinate_transformation_mode=mode)


OPERATORS = {  # TFLite's name: (method, the class of its options where they are needed)
    "DEQUANTIZE": (Converter._unpacked, None),
    "DENSIFY": (Converter._unpacked, None),
    "RELU": (Converter._relu, None),
    "LOGISTIC": (Converter._sigmoid, None),
    "MEAN": (Converter._mean, None),
    "ADD": (Converter._add, tflite.AddOptions),
    "CONCATENATION": (Converter._concatenation, None),
    "CONV_2D": (Converter._convolution, tflite.Conv2DOptions),
    "DEPTHWISE_CONV_2D": (Converter._depthwise, tflite.DepthwiseConv2DOptions),
    "FULLY_CONNECTED": (Converter._fully_connected, None),
    "PRELU": (Converter._prelu, None),
    "MAX_POOL_2D": (Converter._max_pool, tflite.Pool2DOptions),
    "PAD": (Converter._pad, None),
    "RESHAPE": (Converter._reshape, None),
    "DEPTH_TO_SPACE": (Converter._depth_to_space, None),
    "RESIZE_BILINEAR": (Converter._resize, tflite.ResizeBilinearOptions),
}


TABLE = """# Written by scripts/convert_models.py. The weights are copyright The MediaPipe Authors, Apache License 2.0 (LICENSE-Apache-2.0).
source_wheel = "{wheel}"
licence = "Apache-2.0"
copyright = "The MediaPipe Authors"
changes = "TFLite to ONNX, normalisation in the graph, kernels stored as float16"
"""

ENTRY = """
[models.{name}]
file = "{name}.onnx"
sha256 = "{sha256}"
source_file = "{path}"
source_sha256 = "{source_sha256}"
"""


def convert(wheel: Path, name: str) -> tuple[bytes, str]:
    """The ONNX file of one model, and the SHA-256 of the TFLite file it comes from."""
    recipe = RECIPES[name]
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(recipe.path(name))
    source_sha256 = hashlib.sha256(data).hexdigest()
    graph = Converter(data, recipe).convert()
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)
    properties = {
        "source_wheel": wheel.name,
        "source_file": recipe.path(name),
        "source_sha256": source_sha256,
        "licence": "Apache-2.0",
        "copyright": "The MediaPipe Authors",
        "changes": "TFLite to ONNX, kernels stored as float16",
    }
    oh.set_model_props(model, properties)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(), source_sha256


def main() -> None:
    parser = argparse.ArgumentParser(description="Converts the face and hand models of a mediapipe 0.10.21 wheel to ONNX.")
    parser.add_argument("wheel", type=Path, help="pip download --no-deps mediapipe==0.10.21")
    parser.add_argument("--out", type=Path, default=Path("assets/models"), help="folder to write to (%(default)s)")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    table = TABLE.format(wheel=chosen.wheel.name)
    for name, recipe in RECIPES.items():
        data, source_sha256 = convert(chosen.wheel, name)
        (chosen.out / f"{name}.onnx").write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        table += ENTRY.format(name=name, path=recipe.path(name), sha256=sha256, source_sha256=source_sha256)
        if recipe.usual_size:
            table += f"usual_shape = {[1, *recipe.usual_size, 3]}\n"
    (chosen.out / "models.toml").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()

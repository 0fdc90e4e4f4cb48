#!/usr/bin/env python3
"""Converts the face models of the wheel mediapipe 0.10.21 from TFLite to ONNX: python scripts/convert_models.py WHEEL [OUT]

Needs numpy, onnx and tflite (a FlatBuffer reader): the extra `dev`. Get the wheel with `pip download --no-deps mediapipe==0.10.21`.
The same wheel gives the same bytes. Kernels are stored as float16, as they are in the wheel, and cast when a session loads;
the mathematics is float32. PRelu is written as two depthwise 1x1 convolutions, which ONNX Runtime keeps in its blocked layout
(three times faster than its PRelu, the same result to 2e-4). Input "image" is uint8 RGB [N, H, W, 3]; normalisation is in the graph.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import tflite
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as onh

UNIT, SIGNED = (1 / 255, 0.0), (1 / 127.5, -1.0)  # pixel to model input: scale, offset
MODELS = {  # name: (folder in the wheel, normalisation, {output name: shape after the batch} in TFLite order)
    "face_detection_short_range": ("face_detection", SIGNED, {"boxes": (896, 16), "logits": (896,)}),
    "face_detection_full_range_sparse": ("face_detection", SIGNED, {"boxes": (2304, 16), "logits": (2304,)}),
    "face_landmark": ("face_landmark", UNIT, {"points": (468, 3), "logit": (1,)}),
    "iris_landmark": ("iris_landmark", UNIT, {"eye": (71, 3), "iris": (5, 3)}),
}
OPTIONS = {
    "CONV_2D": tflite.Conv2DOptions,
    "DEPTHWISE_CONV_2D": tflite.DepthwiseConv2DOptions,
    "ADD": tflite.AddOptions,
    "MAX_POOL_2D": tflite.Pool2DOptions,
    "RESIZE_BILINEAR": tflite.ResizeBilinearOptions,
}
SIMPLE = {"RELU": "Relu", "LOGISTIC": "Sigmoid", "ADD": "Add", "MEAN": "GlobalAveragePool"}
INDEX = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}  # indices of a sparse tensor


def table(cls, t):
    """The FlatBuffers union member t as an object of class cls."""
    o = cls()
    o.Init(t.Bytes, t.Pos)
    return o


class Converter:
    """One TFLite model turned, operator by operator, into an NCHW ONNX graph (self.graph)."""

    def __init__(self, data: bytes, norm: tuple[float, float], outputs: dict[str, tuple[int, ...]]) -> None:
        self.model = tflite.Model.GetRootAsModel(data, 0)
        self.sub = self.model.Subgraphs(0)
        self.nodes, self.inits, self.val, self.pads = [], [], {}, {}  # val, pads: by TFLite tensor number
        h, w = self.shape(self.sub.Inputs(0))[1:3]
        y = self.emit("Mul", self.emit("Cast", "image", to=T.FLOAT), self.const(norm[0], np.float32))
        y = self.emit("Add", y, self.const(norm[1], np.float32)) if norm[1] else y
        self.val[self.sub.Inputs(0)] = self.emit("Transpose", y, perm=[0, 3, 1, 2])
        for k in range(self.sub.OperatorsLength()):
            self.convert(self.sub.Operators(k))
        for k, (name, dims) in enumerate(outputs.items()):
            y = self.nhwc(self.sub.Outputs(k))
            self.emit("Reshape", y, self.const([0, *dims], np.int64), out=name)
        self.graph = oh.make_graph(
            self.nodes,
            "mediapipe",
            [oh.make_tensor_value_info("image", T.UINT8, ["N", h, w, 3])],
            [oh.make_tensor_value_info(name, T.FLOAT, ["N", *dims]) for name, dims in outputs.items()],
            self.inits,
        )

    def shape(self, t):
        return self.sub.Tensors(t).ShapeAsNumpy().tolist()

    def emit(self, op, *inputs, out=None, **attrs):
        """Add a node and return the name of its output."""
        self.nodes.append(oh.make_node(op, list(inputs), [out or f"v{len(self.nodes)}"], **attrs))
        return self.nodes[-1].output[0]

    def const(self, value, dtype=None):
        """Add an initialiser.  Only kernels are stored as float16; biases and slopes stay exact."""
        a, name = np.array(value, dtype or np.float32, order="C"), f"c{len(self.inits)}"
        pack = a.ndim == 4 and a[0].size > 1
        self.inits.append(onh.from_array(a.astype(np.float16) if pack else a, name))
        return self.emit("Cast", name, to=T.FLOAT) if pack else name

    def array(self, t):
        """Constant tensor t, sparse rows expanded and float16 widened; None for an activation."""
        tensor, buf = self.sub.Tensors(t), self.model.Buffers(self.sub.Tensors(t).Buffer())
        if t in self.val or not buf.DataLength():
            return self.val[t] if isinstance(self.val.get(t), np.ndarray) else None
        a = buf.DataAsNumpy().view((np.float32, np.float16, np.int32)[tensor.Type()])
        shape, sparsity = self.shape(t), tensor.Sparsity()
        if sparsity:  # dense outer dimensions, compressed rows in the last one
            dim = sparsity.DimMetadata(sparsity.DimMetadataLength() - 1)
            ends = table(INDEX[dim.ArraySegmentsType()], dim.ArraySegments()).ValuesAsNumpy().astype(int)
            cols = table(INDEX[dim.ArrayIndicesType()], dim.ArrayIndices()).ValuesAsNumpy()
            packed, a = a, np.zeros((len(ends) - 1, shape[-1]), a.dtype)
            a[np.repeat(np.arange(len(a)), np.diff(ends)), cols] = packed[: len(cols)]
        return a.reshape(shape).astype(np.int32 if a.dtype == np.int32 else np.float32)

    def nhwc(self, t):
        return self.emit("Transpose", self.val[t], perm=[0, 2, 3, 1]) if len(self.shape(t)) == 4 else self.val[t]

    def window(self, t, out, opt, kernel):
        """Attributes of a convolution or pooling from t to out, with a Pad operator before it folded in."""
        size, stride, pad = self.shape(t)[1:3], (opt.StrideH(), opt.StrideW()), self.pads.get(t, (0, 0, 0, 0))
        if opt.Padding() == tflite.Padding.SAME:
            need = [max((o - 1) * s + k - n, 0) for o, s, k, n in zip(self.shape(out)[1:3], stride, kernel, size)]
            pad = [a + b for a, b in zip(pad, (need[0] // 2, need[1] // 2, -(-need[0] // 2), -(-need[1] // 2)))]
        return {"kernel_shape": kernel, "strides": stride, "pads": pad}

    def convert(self, op):
        code = self.model.OperatorCodes(op.OpcodeIndex())
        name = tflite.opcode2name(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()))
        ins, out = op.InputsAsNumpy().tolist(), int(op.Outputs(0))
        a, x = [self.array(t) for t in ins], self.val.get(ins[0])
        opt = table(OPTIONS[name], op.BuiltinOptions()) if name in OPTIONS else None
        assert "CONV_2D" in name or ins[0] not in self.pads, f"{name} reads a padded tensor"
        if name in ("DEQUANTIZE", "DENSIFY"):
            y = a[0]
        elif name in SIMPLE:
            y = self.emit(SIMPLE[name], *(self.val[t] for t, c in zip(ins, a) if c is None))
        elif name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            w = a[1].transpose((0, 3, 1, 2) if name == "CONV_2D" else (3, 0, 1, 2))
            y = self.emit(
                "Conv",
                x,
                self.const(w),
                self.const(a[2]),
                **self.window(ins[0], out, opt, w.shape[2:]),
                group=1 if name == "CONV_2D" else self.shape(ins[0])[3],
            )
        elif name == "PRELU":  # slope*x + (1-slope)*relu(x): stays in ONNX Runtime's blocked NCHWc layout
            s = a[1].reshape(-1, 1, 1, 1)
            y = self.emit("Conv", self.emit("Relu", x), self.const(1 - s), group=s.size)
            y = self.emit("Add", self.emit("Conv", x, self.const(s), group=s.size), y)
        elif name == "MAX_POOL_2D":
            y = self.emit("MaxPool", x, **self.window(ins[0], out, opt, (opt.FilterHeight(), opt.FilterWidth())))
        elif name == "PAD" and a[1][1:3].any():  # spatial: handed on to the convolution that reads it
            self.pads[out], y = (*a[1][1:3, 0], *a[1][1:3, 1]), x
        elif name == "PAD":  # more channels: an identity convolution, which fuses with the Add that follows
            y = self.emit("Conv", x, self.const(np.eye(self.shape(out)[3], self.shape(ins[0])[3])[..., None, None]))
        elif name == "FULLY_CONNECTED":  # after MEAN; TensorRT-RTX has no float32 GEMM on SM75, but convolutions
            y = self.emit("Conv", x, self.const(a[1][:, :, None, None]), self.const(a[2]))
        elif name == "CONCATENATION":  # of [N, anchors, values]
            y = self.emit("Concat", *(self.val[t] for t in ins), axis=1)
        elif name == "RESHAPE":
            y = self.emit("Reshape", self.nhwc(ins[0]), self.const([0, *self.shape(out)[1:]], np.int64))
        elif name == "DEPTH_TO_SPACE":
            y = self.emit("DepthToSpace", x, blocksize=self.shape(out)[1] // self.shape(ins[0])[1])
        elif name == "RESIZE_BILINEAR":
            mode = "align_corners" if opt.AlignCorners() else "half_pixel" if opt.HalfPixelCenters() else "asymmetric"
            scale = self.const([1, 1, *np.divide(self.shape(out)[1:3], self.shape(ins[0])[1:3])], np.float32)
            y = self.emit("Resize", x, "", scale, mode="linear", coordinate_transformation_mode=mode)
        else:
            raise NotImplementedError(name)
        act = opt.FusedActivationFunction() if hasattr(opt, "FusedActivationFunction") else 0  # 1 is Relu, 3 Relu6
        y = self.emit("Relu", y) if act == 1 else self.emit("Clip", y, self.const(0), self.const(6)) if act == 3 else y
        self.val[out] = y


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


def convert(wheel: Path, name: str) -> tuple[bytes, str, str]:
    """The ONNX file of one model, its path in the wheel, and the SHA-256 of what was there."""
    folder, norm, outputs = MODELS[name]
    path = f"mediapipe/modules/{folder}/{name}.tflite"
    data = zipfile.ZipFile(wheel).read(path)
    model = oh.make_model(Converter(data, norm, outputs).graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)
    source_sha256 = hashlib.sha256(data).hexdigest()
    oh.set_model_props(
        model,
        {
            "source_wheel": wheel.name,
            "source_file": path,
            "source_sha256": source_sha256,
            "licence": "Apache-2.0",
            "copyright": "The MediaPipe Authors",
            "changes": "TFLite to ONNX, kernels stored as float16",
        },
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(), path, source_sha256


def main(wheel: str, out: str = "assets/models") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    table = TABLE.format(wheel=Path(wheel).name)
    for name in MODELS:
        data, path, source_sha256 = convert(Path(wheel), name)
        (folder / f"{name}.onnx").write_bytes(data)
        table += ENTRY.format(
            name=name, path=path, sha256=hashlib.sha256(data).hexdigest(), source_sha256=source_sha256
        )
    (folder / "models.toml").write_text(table)


if __name__ == "__main__":
    main(*sys.argv[1:])

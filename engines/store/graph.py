"""What an ONNX or DFM file says of itself, read without running it and without trusting it.

Such files come from strangers. Nothing in them is executed or unpickled, no other file is opened, and sizes are compared with the
file's own length before anything believes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.errors import ModelError
from engines.family import Graph
from engines.session import TensorSpec
from engines.wording import counted

if TYPE_CHECKING:
    import onnx

MAX_BYTES = 2**31 - 1
"""Protocol buffers, and with them ONNX, end at 2 GiB."""

MAX_TENSOR_BYTES = 2**31
"""The largest input or output: 2 GiB would be a batch of 170 pictures of 2048 × 2048 in float32."""

STARTS = {
    b"PK\x03\x04": "a zip archive or a PyTorch checkpoint; export it to ONNX, or unpack it",
    b"\x80\x02": "a pickled PyTorch checkpoint; export it to ONNX",
    b"\x89HDF": "a Keras file; export it to ONNX",
    b"<!DO": "a web page; the download went wrong",
    b"<htm": "a web page; the download went wrong",
    b"version https://git-lfs": "a Git LFS pointer; fetch the file that it points to (`git lfs pull`)",
}
"""How files begin that people take for ONNX models."""


STANDARD = ("", "ai.onnx")
"""Domains of operators that ONNX itself lists."""

RUNTIMES = ("ai.onnx.", "com.microsoft", "com.ms.")
"""How domains begin of operators that ONNX Runtime adds."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A graph, and the files beside it that hold its weights."""

    graph: Graph
    external: tuple[str, ...]
    """Names of files in the model's folder; empty for nearly all models."""


def read_graph(path: Path) -> Graph:
    """The graph of a model file.

    Takes about a second and, for a moment, twice the file's size in memory for one of 550 MB. Any thread. Raises ``ModelError`` for a
    file that is missing, cut short, too large, no ONNX model, of an opset from the future, that declares tensors it does not hold, or
    that points outside its folder.
    """
    return inspect(path).graph


def inspect(path: Path) -> Inspection:
    """As ``read_graph``, with the names of the files that hold weights outside the model."""
    with _doubting(path):
        model, external = _checked(path)
        return Inspection(_graph(path, model), external)


def read_last_initializer(path: Path) -> np.ndarray:
    """The last of the weights. Takes as long, and raises as ``read_graph``; also for a file that has no weights, or has them elsewhere."""
    with _doubting(path):
        model, _ = _checked(path)
        if not model.graph.initializer:
            raise ModelError(f"{path} holds no weights; it is not the model that it was taken for: fetch it again")
        tensor = model.graph.initializer[-1]
        if tensor.data_location == tensor.EXTERNAL:
            raise ModelError(f"{path} keeps {tensor.name!r} in a file beside it; save the model as one file")
        import onnx

        values: np.ndarray = onnx.numpy_helper.to_array(tensor)
        return values


@contextmanager
def _doubting(path: Path) -> Iterator[None]:
    """Whatever else goes wrong with a stranger's file is damage to it."""
    try:
        yield
    except ModelError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError, OSError) as error:  # UnicodeError is a ValueError
        raise _damaged(path, str(error) or type(error).__name__) from error


def _checked(path: Path) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """The parsed file, and the names of others that hold its weights."""
    data = _read(path)
    model = _parse(path, data)
    size = len(data)
    del data
    _check_version(path, model)
    external = tuple(sorted(_check_tensors(path, model, size)))
    _check_nodes(path, model)
    return model, external


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise ModelError(f"{path} is not a file; give the path of an ONNX or DFM file")
        if size > MAX_BYTES:
            raise ModelError(
                f"{path} is {size / 1e9:.1f} GB large; an ONNX model is at most 2.1 GB: this is none, or not one that can be used"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"the model {path} does not exist; give the path of an ONNX or DFM file") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}; give the path of an ONNX or DFM file") from error


def _parse(path: Path, data: bytes) -> onnx.ModelProto:
    if not data:
        raise ModelError(f"{path} is empty; fetch it again")
    for start, what in STARTS.items():
        if data.startswith(start):
            raise ModelError(f"{path} is not an ONNX model but {what}")
    missing = _missing_bytes(data)
    if missing:
        raise ModelError(f"{path} is cut short, by {counted(missing, 'byte')} or more, or is no ONNX model; fetch it again")
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelError(f"{path} is not an ONNX model, or is damaged ({error}); fetch it again, or give an ONNX or DFM file") from error
    if not model.HasField("graph") or not model.graph.output:
        raise ModelError(f"{path} is not an ONNX model: it holds no graph with outputs; give an ONNX or DFM file")
    return model


def _missing_bytes(data: bytes) -> int:
    """How many bytes the last field of the message lacks; 0 also where the bytes make no sense, which the parser says better.

    The parser itself cannot tell a file cut short from one that was never a model.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            _, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            at += length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            return 0
    return at - len(data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return value, at + 1
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at


def _check_version(path: Path, model: onnx.ModelProto) -> None:
    import onnx

    opset, known = _opset(model), onnx.defs.onnx_opset_version()
    if opset < 1:
        raise _damaged(path, "it names no opset")
    if opset > known:
        raise ModelError(
            f"{path} uses opset {opset}; this version of ffrt knows opsets up to {known}: update ffrt, or export the model again"
        )
    if model.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"{path} is written in ONNX format {model.ir_version}; this version of ffrt knows formats up to {onnx.IR_VERSION}: "
            f"update ffrt, or export the model again"
        )


def _check_nodes(path: Path, model: onnx.ModelProto) -> None:
    """That a runtime could know each operator, and that nothing takes what nothing gives."""
    import onnx

    own = {(function.domain, function.name) for function in model.functions}
    given = {value.name for value in (*model.graph.input, *model.graph.initializer)} | {""}
    given |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    given |= {name for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        standard = node.domain in STANDARD
        if (standard and not onnx.defs.has(node.op_type)) or not (standard or node.domain.startswith(RUNTIMES)):
            if (node.domain, node.op_type) in own:
                continue
            of = "" if standard else f" of {node.domain}"
            raise ModelError(f"{path} uses the operator {node.op_type!r}{of}, which no runtime has; export the model without it")
        missing = [name for name in node.input if name not in given]
        if missing:
            raise _damaged(path, f"an operator takes {missing[0]!r}, which nothing gives")
    missing = [value.name for value in model.graph.output if value.name not in given]
    if missing:
        raise _damaged(path, f"nothing gives its output {missing[0]!r}")


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)


def _check_tensors(path: Path, model: onnx.ModelProto, file_bytes: int) -> set[str]:
    """Names of external files. Raises ``ModelError`` for a tensor larger than what holds it."""
    external: set[str] = set()
    nodes = [function.node for function in model.functions]
    for tensor in _tensors(model.graph, nodes):
        if tensor.data_location == tensor.EXTERNAL or tensor.external_data:
            external.add(_external(path, tensor))
        else:
            _check_inside(path, tensor, file_bytes)
    for value in (*model.graph.input, *model.graph.output):
        spec = _spec(value)
        nbytes = _count([size for size in spec.shape if isinstance(size, int)]) * max(spec.dtype.itemsize, 1)
        if nbytes > MAX_TENSOR_BYTES:
            raise ModelError(f"{path} declares {spec.name!r} as [{_shape(spec)}], {nbytes / 1e9:.0f} GB; no model for faces needs that")
    return external


def _tensors(graph: onnx.GraphProto, functions: Iterable[Iterable[onnx.NodeProto]]) -> Iterator[onnx.TensorProto]:
    """All tensors that hold data: weights, constants, and those of graphs within nodes."""
    waiting: list[Any] = [graph]
    batches = [graph.node, *functions]
    while waiting or batches:
        if waiting:
            inner = waiting.pop()
            yield from inner.initializer
            for sparse in inner.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            if inner is not graph:
                batches.append(inner.node)
            continue
        for node in batches.pop():
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                sparse_tensors = [*attribute.sparse_tensors, *([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else [])]
                for sparse in sparse_tensors:
                    yield from (sparse.values, sparse.indices)
                waiting.extend(attribute.graphs)
                if attribute.HasField("g"):
                    waiting.append(attribute.g)


def _check_inside(path: Path, tensor: onnx.TensorProto, file_bytes: int) -> None:
    count, held = _count(tensor.dims), tensor.ByteSize()
    # The least that any encoding takes: the narrowest numbers are packed four to a byte.
    least = count // 4 if not tensor.HasField("raw_data") else (count * _bits(tensor.data_type)) // 8
    if least > held:
        dims = ", ".join(map(str, tensor.dims))
        raise ModelError(
            f"{path} declares the tensor {tensor.name!r} as [{dims}], at least {counted(least, 'byte')}, and holds "
            f"{counted(held, 'byte')} of it ({file_bytes} in all); it is damaged or made to do harm: fetch it again from its publisher"
        )


def _bits(data_type: int) -> int:
    """Bits an element takes in raw data, or fewer: 1 where NumPy itself has no such type."""
    dtype = _dtype(data_type)
    return 1 if dtype.kind in "OV" else dtype.itemsize * 8


def _count(dims: Iterable[int]) -> int:
    count = 1
    for size in dims:
        if size < 0:
            raise ValueError(f"a tensor has a dimension of {size}")
        count *= size
    return count


def _external(path: Path, tensor: onnx.TensorProto) -> str:
    """The file in the model's folder that holds ``tensor``. Raises ``ModelError`` for one outside, missing, or too short."""
    facts = {entry.key: entry.value for entry in tensor.external_data}
    name = facts.get("location", "")
    inside = "it may only name files beside it: fetch it again from its publisher"
    if not name or "\0" in name or PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root:
        raise ModelError(f"{path} keeps the tensor {tensor.name!r} in {name!r}; {inside}")
    folder = path.parent.resolve()
    target = (folder / name).resolve()
    if not target.is_relative_to(folder):
        raise ModelError(f"{path} keeps the tensor {tensor.name!r} in {name!r}, outside its folder; {inside}")
    if not target.is_file():
        raise ModelError(f"{path} keeps weights in {name!r}, which is not beside it; put that file there, or save the model as one file")
    end = int(facts.get("offset") or 0) + int(facts.get("length") or 0)
    if end > target.stat().st_size or _count(tensor.dims) * _bits(tensor.data_type) // 8 > target.stat().st_size:
        raise ModelError(f"{path} declares more of {tensor.name!r} than {name!r} holds; fetch both again")
    return name


def _graph(path: Path, model: onnx.ModelProto) -> Graph:
    weights = {tensor.name for tensor in model.graph.initializer}
    last = model.graph.initializer[-1] if model.graph.initializer else None
    return Graph(
        inputs=tuple(_spec(value) for value in model.graph.input if value.name not in weights),
        outputs=tuple(map(_spec, model.graph.output)),
        last_initializer=None if last is None else TensorSpec(last.name, tuple(last.dims), _dtype(last.data_type)),
        opset=_opset(model),
    )


def _spec(value: onnx.ValueInfoProto) -> TensorSpec:
    tensor = value.type.tensor_type
    return TensorSpec(value.name, tuple(map(_dimension, tensor.shape.dim)), _dtype(tensor.elem_type))


def _dimension(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """Some exporters write 0 or -1 where they mean any size."""
    return dim.dim_value if dim.dim_value > 0 else dim.dim_param or "?"


def _dtype(data_type: int) -> np.dtype:
    """void for what NumPy has no type for, and for values that are no tensors."""
    import onnx

    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(data_type))
    except (KeyError, TypeError, ValueError):
        return np.dtype(np.void)


def _shape(spec: TensorSpec) -> str:
    return ", ".join(map(str, spec.shape))


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"{path} is damaged or no ONNX model ({why}); fetch it again")

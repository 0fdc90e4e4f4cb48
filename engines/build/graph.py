"""An ONNX file as a graph that can be worked on, and the shapes that an engine of it is to take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.build.key import InputProfile
from engines.errors import ModelError
from engines.session import TensorSpec

if TYPE_CHECKING:
    import onnx

BYTES_MAX = 2**31 - 1
"""ONNX's own format, protobuf, ends here."""


def load_model(path: Path) -> onnx.ModelProto:
    """The model with all its weights in memory. Raises ``ModelError``: missing, no model, or weights outside its folder."""
    onnx = _onnx()
    if not path.is_file():
        raise ModelError(f"the model {path} does not exist; give the path of an ONNX file")
    if path.stat().st_size > BYTES_MAX:
        raise ModelError(f"{path.name} is {path.stat().st_size / 1e9:.1f} GB; an ONNX file has at most 2.1 GB")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf has classes of its own
        raise ModelError(f"{path.name} cannot be read as an ONNX model ({error}); fetch or convert it again") from error
    if not model.graph.output:
        raise ModelError(f"{path.name} is no ONNX model or was cut off: it has no outputs; fetch or convert it again")
    _load_external(model, path)
    return model


def input_specs(model: onnx.ModelProto) -> tuple[TensorSpec, ...]:
    """The model's inputs in its order, constants left out. Raises ``ModelError`` for one that is no tensor."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return tuple(_spec(value) for value in model.graph.input if value.name not in constants)


def output_specs(model: onnx.ModelProto) -> tuple[TensorSpec, ...]:
    """The model's outputs in its order."""
    return tuple(_spec(value) for value in model.graph.output)


def parse_batch(text: str) -> tuple[int, int, int]:
    """``4``, ``1..8`` or ``1..4..8`` → (least, best, most). Without a best, the least is: a live picture mostly holds one face."""
    found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?(?:\.\.(\d+))?", text.strip())
    numbers = [int(number) for number in found.groups() if number] if found else []
    low, *rest = numbers or [0]
    high = rest[-1] if rest else low
    best = rest[0] if len(rest) == 2 else low
    if not 1 <= low <= best <= high:
        raise ModelError(f"the batch {text!r} was given; write 4, 1..8 or 1..4..8 (least, best, most)")
    return low, best, high


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """``input.1=1x3x640x640`` → its name and dimensions."""
    name, equals, dims = text.rpartition("=")
    if not equals or not re.fullmatch(r"\d+(x\d+)*", dims) or 0 in map(int, dims.split("x")):
        raise ModelError(f"the shape {text!r} was given; write NAME=1x3x640x640")
    return name, tuple(map(int, dims.split("x")))


def profiles(
    inputs: tuple[TensorSpec, ...], batch: tuple[int, int, int], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[InputProfile, ...]:
    """What the engine takes at each input.

    ``batch``: least, best and most, for inputs whose first dimension may vary. ``shapes``: for inputs whose other dimensions may.
    Raises ``ModelError`` for a shape that is missing or does not fit, and for a batch that the model does not take.
    """
    unknown = sorted(set(shapes) - {spec.name for spec in inputs})
    if unknown:
        raise ModelError(f"a shape was given for {', '.join(unknown)}; the model's inputs are {', '.join(spec.name for spec in inputs)}")
    varying = [spec for spec in inputs if spec.shape and not isinstance(spec.shape[0], int)]
    if batch[2] > 1 and not varying:
        taken = ", ".join(f"{spec.name}[{', '.join(map(str, spec.shape))}]" for spec in inputs)
        raise ModelError(f"a batch up to {batch[2]} was asked for; this model takes {taken} and no other; leave the batch out")
    return tuple(_profile(spec, batch, shapes.get(spec.name)) for spec in inputs)


def _profile(spec: TensorSpec, batch: tuple[int, int, int], given: tuple[int, ...] | None) -> InputProfile:
    wanted = given if given is not None else spec.shape
    text = ", ".join(map(str, spec.shape))
    if len(wanted) != len(spec.shape) or any(isinstance(a, int) and a != b for a, b in zip(spec.shape, wanted, strict=True)):
        raise ModelError(f"the shape {'x'.join(map(str, wanted))} was given for {spec.name}; it takes [{text}]")
    rest = [size for size in wanted[1:] if isinstance(size, int)]
    if len(rest) != len(wanted[1:]):
        raise ModelError(f"the input {spec.name}[{text}] has sizes that may vary; say which, as in --shape {spec.name}=1x3x640x640")
    if not spec.shape:
        return InputProfile(spec.name, (), (), ())
    if isinstance(spec.shape[0], int):
        counts = (spec.shape[0],) * 3
    else:
        counts = batch
    low, best, high = ((count, *rest) for count in counts)
    return InputProfile(spec.name, low, best, high)


def _spec(value: onnx.ValueInfoProto) -> TensorSpec:
    onnx = _onnx()
    if not value.type.HasField("tensor_type"):
        raise ModelError(f"{value.name} of this model is no tensor; ffrt runs models whose inputs and outputs are")
    kind = value.type.tensor_type
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?") for dim in kind.shape.dim)
    return TensorSpec(value.name, dims, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)))


def _load_external(model: onnx.ModelProto, path: Path) -> None:
    """Weights in files beside the model. A path that leads out of its folder is refused: the file comes from strangers."""
    onnx = _onnx()
    folder = path.parent.resolve()
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        place = (folder / location).resolve()
        if not location or not place.is_relative_to(folder):
            raise ModelError(f"{path.name} keeps weights in {location!r}, outside its own folder; that is not read")
        if not place.is_file():
            raise ModelError(f"{path.name} keeps weights in {location}, which is not beside it; fetch that file too")
    try:
        onnx.external_data_helper.load_external_data_for_model(model, str(folder))
    except Exception as error:  # the checker of onnx has classes of its own
        raise ModelError(f"the weights beside {path.name} cannot be read ({error}); fetch them again") from error


def _onnx() -> Any:
    """Imported when it is needed: only builds do, and it takes a quarter of a second."""
    try:
        import onnx
    except ImportError as error:
        raise ModelError(f"building engines needs the package onnx ({error}); run `pip install 'ffrt[engines]'`") from error
    return onnx

"""An ONNX file as a graph that can be worked on, and the shapes that an engine of it is to take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engines.build.key import InputProfile
from engines.errors import ModelError
from engines.family import Graph
from engines.session import TensorSpec
from engines.store.graph import read_graph

if TYPE_CHECKING:
    import onnx


def load_model(path: Path) -> onnx.ModelProto:
    """The model with all its weights in memory. Raises ``ModelError``: missing, no model, cut off, or with weights outside its folder."""
    return load_checked(path)[0]


def load_checked(path: Path) -> tuple[onnx.ModelProto, Graph]:
    """The same, with what the file says of itself. The file comes from strangers: the store looks at it first."""
    import onnx

    graph = read_graph(path)
    try:
        return onnx.load(str(path)), graph
    except Exception as error:  # protobuf and onnx have classes of their own
        raise ModelError(f"{path.name} or the weights beside it cannot be read ({error}); fetch them again") from error


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


def shape_text(shape: Sequence[int | str]) -> str:
    """As ``parse_shape`` reads it: ``1x3x640x640``."""
    return "x".join(map(str, shape))


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
        raise ModelError(f"the shape {shape_text(wanted)} was given for {spec.name}; it takes [{text}]")
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

"""Stand-ins of swappers: they mix the target's colours, each by a share of its own, with a colour made of the identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from standins.graphs import node, save, value

KEPT = np.array([0.2, 0.5, 0.8], np.float32)
"""Share of the target's red, green and blue that stays: three numbers, so that colours in the wrong order show."""

Triple = Sequence[float]


@dataclass(frozen=True)
class Contract:
    """What one family's file looks like, as its users give it (not as ffrt reads it)."""

    side: int = 256
    given: tuple[Triple, Triple] = ((0, 0, 0), (1, 1, 1))
    """Mean and standard deviation of what the target's colours in [0, 1] are normed by."""
    made: tuple[Triple, Triple] = ((0, 0, 0), (1, 1, 1))
    emap: bool = False
    mask: bool = False
    """There is a second output, 1 in the left half of the crop and 0 in the right one."""
    source_side: int | None = None
    """The source is a picture of this side instead of an embedding."""
    batch: int | str = 1
    outputs: tuple[str, ...] = ("output",)
    inputs: tuple[str, str] = ("target", "source")
    dtype: type[np.floating] = np.float32


def weights(seed: int = 11) -> np.ndarray:
    """float32 [512, 3]: identity → colour, before the sigmoid."""
    return np.random.default_rng(seed).normal(0, 1, (512, 3)).astype(np.float32)


def emap(seed: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 512**-0.5, (512, 512)).astype(np.float32)


def colour_by_hand(latent: np.ndarray) -> np.ndarray:
    """float64 [3] RGB in [0, 1]."""
    return 1 / (1 + np.exp(-(latent.astype(np.float64) @ weights().astype(np.float64))))


def swapper(path: Path, contract: Contract) -> Path:
    """Output = KEPT · target + (1 - KEPT) · colour, in [0, 1], then normed as the family norms it."""
    target, source = contract.inputs
    (mean, std), (made_mean, made_std) = contract.given, contract.made
    constants = {
        "std": _channels(std),
        "mean": _channels(mean),
        "kept": _channels(KEPT),
        "rest": _channels(1 - KEPT),
        "made_mean": _channels(made_mean),
        "made_std": _channels(made_std),
        "weights": weights(),
        "shape": np.array([-1, 3, 1, 1], np.int64),
    }
    nodes = [
        node("Mul", [target, "std"], "wide"),
        node("Add", ["wide", "mean"], "plain"),
        *_colour(contract, source),
        node("Mul", ["plain", "kept"], "left"),
        node("Mul", ["colour", "rest"], "right"),
        node("Add", ["left", "right"], "mixed"),
        node("Sub", ["mixed", "made_mean"], "centred"),
        node("Div", ["centred", "made_std"], contract.outputs[0]),
    ]
    side, batch = contract.side, contract.batch
    outputs = [value(contract.outputs[0], (batch, 3, side, side))]
    if contract.mask:
        constants["half"] = np.repeat(np.arange(side) < side // 2, side).reshape(1, 1, side, side).transpose(0, 1, 3, 2).astype(np.float32)
        nodes += [
            node("ReduceMean", [target], "grey", axes=[1], keepdims=1),
            node("Mul", ["grey", "nought"], "none"),
            node("Add", ["none", "half"], contract.outputs[1]),
        ]
        constants["nought"] = np.zeros((1, 1, 1, 1), np.float32)
        outputs.append(value(contract.outputs[1], (batch, 1, side, side)))
    if contract.emap:
        constants["emap"] = emap().astype(contract.dtype)
    source_shape = (batch, 512) if contract.source_side is None else (batch, 3, contract.source_side, contract.source_side)
    inputs = [value(target, (batch, 3, side, side)), value(source, source_shape)]
    return save(path, nodes, inputs, outputs, constants)


def _colour(contract: Contract, source: str) -> list[onnx.NodeProto]:
    if contract.source_side is not None:
        return [node("GlobalAveragePool", [source], "colour")]
    return [
        node("MatMul", [source, "weights"], "logits"),
        node("Sigmoid", ["logits"], "flat"),
        node("Reshape", ["flat", "shape"], "colour"),
    ]


def _channels(values: Sequence[float] | np.ndarray) -> np.ndarray:
    return np.array(values, np.float32).reshape(1, 3, 1, 1)


def centring(path: Path, side: int, batch: int | str) -> Path:
    """The contract of inswapper; makes the whole crop half of its own mean: shows which pixels the network saw together."""
    constants = {"half": np.array(0.5, np.float32), "nought": np.zeros((512, 1), np.float32), "emap": emap()}
    constants = {"shape": np.array([-1, 1, 1, 1], np.int64), **constants}
    nodes = [
        node("GlobalAveragePool", ["target"], "mean"),
        node("Add", ["target", "mean"], "sum"),
        node("Mul", ["sum", "half"], "centred"),
        node("MatMul", ["source", "nought"], "zero"),
        node("Reshape", ["zero", "shape"], "zeros"),
        node("Add", ["centred", "zeros"], "output"),
    ]
    inputs = [value("target", (batch, 3, side, side)), value("source", (batch, 512))]
    return save(path, nodes, inputs, [value("output", (batch, 3, side, side))], constants)


DFM_COLOUR = np.array([0.9, 0.3, 0.1], np.float32)
"""BGR."""


def dfm(path: Path, side: int = 224, morph: bool = False) -> Path:
    """NHWC, BGR: face = KEPT · in + (1 - KEPT) · colour (· morph); masks: 1, and 1 but for the crop's left third."""
    third = np.ones((1, side, side, 1), np.float32)
    third[:, :, : side // 3] = 0
    bgr = {"kept": KEPT[::-1].reshape(1, 1, 1, 3).copy(), "colour": ((1 - KEPT[::-1]) * DFM_COLOUR).reshape(1, 1, 1, 3)}
    constants = {**bgr, "nought": np.zeros(1, np.float32), "one": np.ones(1, np.float32), "third": third}
    nodes = [
        node("Mul", ["in_face:0", "kept"], "left"),
        node("Mul", ["colour", "morph_value:0" if morph else "one"], "right"),
        node("Add", ["left", "right"], "out_celeb_face:0"),
        node("ReduceMean", ["in_face:0"], "grey", axes=[3], keepdims=1),
        node("Mul", ["grey", "nought"], "zero"),
        node("Add", ["zero", "one"], "out_face_mask:0"),
        node("Add", ["zero", "third"], "out_celeb_face_mask:0"),
    ]
    inputs = [value("in_face:0", ("batch", side, side, 3))] + ([value("morph_value:0", (1,))] if morph else [])
    outputs = [value(name, ("batch", side, side, 3 if name == "out_celeb_face:0" else 1)) for name in DFM_OUTPUTS]
    return save(path, nodes, inputs, outputs, constants)


DFM_OUTPUTS = ("out_face_mask:0", "out_celeb_face:0", "out_celeb_face_mask:0")

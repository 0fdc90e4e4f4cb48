"""What a swapper or an enhancer offers beside its contract where all it does is crop → network → paste.

A device then takes the crops and lays them back itself, and pictures do not leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engines.align import Aligner
from engines.paste import EDGE_SHARE
from engines.session import TensorSpec
from engines.tensor import Norm


@dataclass(frozen=True, slots=True)
class CropRecipe:
    """How its crops are taken and laid back."""

    wanted: np.ndarray
    """float32 [5, 2]: where the five points lie in the crop, pixels."""
    side: int
    """Pixels of the network's picture."""
    boost: int
    """The crop is so many times as large a side, cut by stride into boost² pictures; picture (i, j) begins at row i and column j."""
    given: Norm
    """Of what the network takes."""
    made: Norm
    """Of what it gives."""
    says_mask: bool
    """Whether it also says what is face."""
    edge: float = EDGE_SHARE
    """Width of the crop's soft border, as a share of its side."""


@runtime_checkable
class CropModel(Protocol):
    """One thread at a time."""

    aligner: Aligner

    @property
    def crops(self) -> CropRecipe | None:
        """None where the file does not say what its outputs are."""
        ...

    def infer(self, planes: Any, identity: Any, pictures: Any, shown: Any) -> None:
        """Runs the network for ``planes`` (float32 [N, 3, S, S] RGB). Called on the stream that the arrays belong to.

        Into ``pictures`` (the same shape) and ``shown`` (float32 [N, S, S]; None where it says no mask). ``identity``: what ``prepare``
        made; None for an enhancer.

        Raises ``ModelError`` where the network gives something else than its file says.
        """
        ...


def says_mask(outputs: Sequence[TensorSpec]) -> bool | None:
    """Whether one output beside the first is a picture of one channel; None where the file leaves that open."""
    channels = [spec.shape[1] for spec in outputs[1:] if len(spec.shape) == 4]
    if any(not isinstance(count, int) for count in channels):
        return None
    return 1 in channels


def fetched(array: Any) -> np.ndarray:
    """``array`` where a network of the processor can read it: itself, or a copy of a device's, which is waited for."""
    return array.get() if hasattr(array, "get") else array


def deliver(values: np.ndarray, array: Any) -> None:
    """``values`` into ``array``, wherever that lies."""
    if isinstance(array, np.ndarray):
        np.copyto(array, values)
    else:
        array.set(values)

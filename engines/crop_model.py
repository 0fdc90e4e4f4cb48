"""What a swapper or an enhancer offers beside its contract where all it does is crop → network → paste.

A device then takes the crops and lays them back itself, and pictures do not leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engines.align import Aligner
from engines.batch import Batches
from engines.paste import EDGE_SHARE
from engines.session import Session, TensorSpec
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


@dataclass(frozen=True, slots=True)
class CropNetwork:
    """What runs for the crops: which of its inputs takes them, and which of its outputs are looked at."""

    session: Session
    picture: TensorSpec
    """[N, 3, S, S]."""
    made: TensorSpec
    """The same, or what else the model says of it."""
    shown: TensorSpec | None
    """[N, 1, S, S], what is face; None where there is none."""
    batches: Batches


@runtime_checkable
class CropModel(Protocol):
    """One thread at a time."""

    aligner: Aligner

    @property
    def crops(self) -> CropRecipe | None:
        """None where the file does not say what its outputs are."""
        ...

    @property
    def network(self) -> CropNetwork:
        """Asked where ``crops`` says something."""
        ...

    def feeds(self, identity: Any, count: int) -> Mapping[str, np.ndarray]:
        """What the network takes beside ``count`` crops: contiguous, of the file's types; always the same for one ``identity``, which is
        what ``prepare`` made, and None for an enhancer."""
        ...

    def check_made(self, pictures: np.ndarray) -> None:
        """Looks at what the network gave for the first crops, float32 [N, 3, S, S]. Raises ``ModelError`` for what cannot be shown."""
        ...


def works_on_crops(model: Any) -> bool:
    """Whether all that ``model`` does is crop → network → paste."""
    return isinstance(model, CropModel) and model.crops is not None


def mask_spec(outputs: Sequence[TensorSpec], side: int) -> TensorSpec | None:
    """The output beside the first that is one channel of a picture of ``side``."""
    for spec in outputs[1:]:
        if len(spec.shape) == 4 and spec.shape[1] == 1 and all(not isinstance(size, int) or size == side for size in spec.shape[2:]):
            return spec
    return None


def says_mask(outputs: Sequence[TensorSpec]) -> bool | None:
    """Whether one output beside the first is a picture of one channel; None where the file leaves that open."""
    channels = [spec.shape[1] for spec in outputs[1:] if len(spec.shape) == 4]
    if any(not isinstance(count, int) for count in channels):
        return None
    return 1 in channels

"""The contract that every runtime keeps: named tensors in, named tensors out.

A runtime is one file that calls ``register_runtime`` where it stands; whoever needs a model asks ``open_session``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and element type of a model's input or output."""

    name: str
    shape: tuple[int | str, ...]
    """A string is a dimension that may vary."""
    dtype: np.dtype


class Session(Protocol):
    """A model ready to run. Not thread-safe: one thread at a time."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    runtime: str
    """What runs it, for people: ``ort:CPUExecutionProvider``."""

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs the model once and returns all outputs by name. Raises ``ModelError`` for feeds that do not fit."""
        ...

    def close(self) -> None:
        """Frees what the runtime holds. May be called twice."""
        ...

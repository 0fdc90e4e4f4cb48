"""The contract that every runtime keeps: named tensors in, named tensors out.

A runtime is one file that registers itself where it stands; whoever needs a model asks ``open_session``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from engines.errors import ModelError
from engines.registry import Registry


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


OpenSession = Callable[..., Session]
"""``open(path, *, threads) -> Session``; raises ``ModelError``."""

runtimes: Registry[OpenSession] = Registry("runtime")


def open_session(path: Path, *, runtime: str = "ort", threads: int = 1) -> Session:
    """Opens a model file. ``threads``: how many the model may use; one leaves the other cores to the rest of the line.

    Raises ``ModelError`` for a file that is missing or no model, and for a runtime nobody knows.
    """
    try:
        opener = runtimes[runtime]
    except KeyError as error:
        raise ModelError(error.args[0]) from None
    return opener(path, threads=threads)

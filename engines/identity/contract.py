"""The contracts of recognisers and of the converters between their embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Embedding:
    """Who a face is, as one recogniser puts it."""

    raw: np.ndarray
    """float32 [512]: as it comes from the network."""

    @property
    def normed(self) -> np.ndarray:
        """float32 [512] of length 1."""
        length = float(np.linalg.norm(self.raw))
        return (self.raw / max(length, 1e-12)).astype(np.float32)


class Recogniser(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def embed(self, image: np.ndarray, five: np.ndarray) -> Embedding:
        """``image``: uint8 [H, W, 3] BGR. ``five``: float32 [5, 2] pixels (see ``engines.align``)."""
        ...


class Converter(Protocol):
    """Not thread-safe: one thread at a time."""

    name: str

    def convert(self, embedding: Embedding) -> np.ndarray:
        """float32 [512], not normed."""
        ...

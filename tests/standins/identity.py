"""Stand-ins of ArcFace and of the crossface converters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from standins.graphs import node, save, value

CELLS = 8
"""The stand-in of ArcFace looks at the means of so many cells a side."""


def arcface(path: Path, name: str = "input", seed: int = 5) -> Path:
    """[N, 3, 112, 112] → [N, 512]: the means of 8 × 8 cells of each colour, times a fixed matrix."""
    nodes = [
        node("AveragePool", [name], "cells", kernel_shape=[112 // CELLS] * 2, strides=[112 // CELLS] * 2),
        node("Flatten", ["cells"], "flat"),
        node("MatMul", ["flat", "matrix"], "output"),
    ]
    return save(path, nodes, [value(name, ("batch", 3, 112, 112))], [value("output", ("batch", 512))], {"matrix": arcface_matrix(seed)})


def arcface_matrix(seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, (3 * CELLS * CELLS, 512)).astype(np.float32)


def arcface_by_hand(crop: np.ndarray, seed: int = 5) -> np.ndarray:
    """float64 [512] of a crop uint8 [112, 112, 3] BGR: what w600k is fed, and then the stand-in's own formula."""
    rgb = crop[..., ::-1].astype(np.float64) / 127.5 - 1
    cells = rgb.reshape(CELLS, 112 // CELLS, CELLS, 112 // CELLS, 3).mean((1, 3))
    return cells.transpose(2, 0, 1).ravel() @ arcface_matrix(seed).astype(np.float64)


def crossface(path: Path, seed: int) -> Path:
    """[1, 512] → [1, 512]: a matrix and a shift."""
    matrix, shift = crossface_parts(seed)
    nodes = [node("MatMul", ["input", "matrix"], "turned"), node("Add", ["turned", "shift"], "output")]
    constants = {"matrix": matrix, "shift": shift}
    return save(path, nodes, [value("input", (1, 512))], [value("output", (1, 512))], constants)


def crossface_parts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return (random.normal(0, 512**-0.5, (512, 512)).astype(np.float32), random.normal(0, 0.1, 512).astype(np.float32))

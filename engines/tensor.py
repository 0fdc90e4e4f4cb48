"""Between pictures and the tensors of networks: one pass each way, compiled by numba."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engines.jit import compiled

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Statistics of ImageNet's RGB in [0, 1], which networks of torchvision's line are trained with."""


@dataclass(frozen=True)
class Norm:
    """What a network makes of colours: (value in [0, 1] - mean) / std, a number for R, G and B."""

    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    table: np.ndarray = field(init=False, repr=False, compare=False)
    """float32 [3, 256]: RGB level → the network's value."""

    def __post_init__(self) -> None:
        levels = np.arange(256) / 255
        rows = [(levels - mean) / std for mean, std in zip(self.mean, self.std, strict=True)]
        object.__setattr__(self, "table", np.array(rows, np.float32))

    def to_tensor(self, picture: np.ndarray, out: np.ndarray) -> None:
        """uint8 [H, W, 3] BGR → ``out`` float32 [3, H, W] RGB."""
        _to_planes(picture, self.table, out)

    def to_picture(self, tensor: np.ndarray, out: np.ndarray) -> None:
        """float32 [3, H, W] RGB → ``out`` uint8 [H, W, 3] BGR, rounded and cut to 0…255; what is no number becomes 0."""
        scale, shift = 255 * np.array(self.std, np.float32), 255 * np.array(self.mean, np.float32)
        _to_levels(tensor, scale, shift, out)


UNIT = Norm()
"""Values in [0, 1]."""

SIGNED = Norm((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
"""Values in [-1, 1]."""

IMAGENET = Norm(IMAGENET_MEAN, IMAGENET_STD)


@compiled()
def _to_planes(picture: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    for y in range(picture.shape[0]):
        for x in range(picture.shape[1]):
            for c in range(3):
                out[c, y, x] = table[c, picture[y, x, 2 - c]]


@compiled()
def _to_levels(tensor: np.ndarray, scale: np.ndarray, shift: np.ndarray, out: np.ndarray) -> None:
    line = np.empty(out.shape[1], np.uint8)  # a colour of a row: in a row of its own many are done at once
    for y in range(out.shape[0]):
        row = out[y]
        for c in range(3):
            values = tensor[c, y]
            for x in range(line.shape[0]):
                value = values[x] * scale[c] + shift[c] + 0.5
                line[x] = np.uint8(min(255.0, max(0.0, value)))  # NaN compares false: 0
            for x in range(line.shape[0]):
                row[x, 2 - c] = line[x]

"""A time code painted into the picture: black and white cells along the bottom edge that survive encoders and scaling.

Layout, left to right over the whole width: four cells of synchronisation (white, black, white, black), ``VALUE_BITS`` of value
with the highest first, eight of CRC-8 (polynomial x^8+x^2+x+1, initial value 0) over the value's bytes.
"""

from __future__ import annotations

import numpy as np

VALUE_BITS = 40
"""Microseconds of the monotonic clock fit for 12 days; ``age_us`` knows about the wrap."""

_SYNC = np.array([1, 0, 1, 0], np.uint8)
_CELLS = len(_SYNC) + VALUE_BITS + 8
_CONTRAST_MIN = 60
"""Grey levels between the black and the white cells of the synchronisation: less is a picture, not a time code."""


def strip_height(height: int) -> int:
    """Rows that the time code takes of a picture of ``height`` rows: a fortieth, at least eight."""
    return max(8, height // 40)


def cells(value: int) -> np.ndarray:
    """uint8 [52] of 0 (black) and 1 (white): what is painted for ``value`` modulo 2**40, from left to right."""
    return np.concatenate([_SYNC, _bits(value % (1 << VALUE_BITS))])


def burn(pixels: np.ndarray, value: int) -> None:
    """Paints ``value`` modulo 2**40 into ``pixels``, uint8 [H, W, 3], in place. Raises ValueError for fewer than 3 columns a cell."""
    height, width = pixels.shape[:2]
    if width < 3 * _CELLS:
        raise ValueError(f"a time code needs {3 * _CELLS} columns, and the picture has {width}; use a wider picture")
    strip = pixels[height - strip_height(height) :]
    strip[0] = (cells(value) * np.uint8(255))[np.arange(width) * _CELLS // width, None]
    strip[1:] = strip[0]  # whole rows at a time: six times as fast as one broadcast over rows and channels


def read(pixels: np.ndarray) -> int | None:
    """The value painted into ``pixels``, uint8 [H, W, 3] or [H, W] (grey), or None where none can be read without error."""
    height, width = pixels.shape[:2]
    if width < 3 * _CELLS or height < 8:
        return None
    levels = _cell_levels(pixels, height, width)
    white, black = levels[:4:2].mean(), levels[1:4:2].mean()
    if white - black < _CONTRAST_MIN:
        return None
    bits = (levels[4:] > (white + black) / 2).astype(np.uint8)
    value = int("".join(map(str, bits[:VALUE_BITS])), 2)
    return value if np.array_equal(_bits(value), bits) else None


def age_us(now_us: int, value: int) -> int:
    """Microseconds from ``value`` (a clock's microseconds, wrapped) to ``now_us`` of the same clock."""
    return (now_us - value) % (1 << VALUE_BITS)


def _cell_levels(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Mean level of the middle of every cell: its edges are where scaling and compression blur."""
    rows = strip_height(height)
    middle = pixels[height - rows + rows // 4 : height - rows // 4]
    grey = middle if middle.ndim == 2 else middle[..., 1]  # the cells are grey, and green is what chroma subsampling harms least
    columns = grey.mean(0)
    edges = np.arange(_CELLS + 1) * width / _CELLS
    # of pixels their middles count: in a narrow picture the one before would belong to the next cell
    starts = np.ceil(edges[:-1] + (edges[1:] - edges[:-1]) * 0.3 - 0.5).astype(int)
    stops = np.maximum(starts + 1, np.ceil(edges[:-1] + (edges[1:] - edges[:-1]) * 0.7 - 0.5).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(columns)])
    return (sums[stops] - sums[starts]) / (stops - starts)


def _bits(value: int) -> np.ndarray:
    """uint8 [48] of 0 and 1: the value's bits and its CRC's, highest first."""
    data = value.to_bytes(VALUE_BITS // 8, "big")
    return np.unpackbits(np.frombuffer(data + bytes([_crc8(data)]), np.uint8))


def _crc8(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc

"""What landmark models that start from a detector's box share: the square they look at, and their points laid back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.errors import ModelError
from engines.face import Roi
from engines.landmarks.crop import crop_rgb, roi_matrix
from engines.landmarks.facemesh import line_angle
from engines.network import Network


class View:
    """Not thread-safe: one thread at a time."""

    def __init__(self, network: Network, side: int, share: float, white: float) -> None:
        """``side``: of the crop, pixels. ``share``: of it that the box's longer side takes. ``white``: the value of level 255."""
        self._network = network
        self._side = side
        self._share = share
        self._unit = np.float32(white / 255)

    def look(self, image: np.ndarray, box: np.ndarray, five: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The network's outputs for the face in ``box``, and float32 [2, 3]: pixels of the crop → pixels of the picture.

        The crop stands in the box's middle and is turned by the line of the eyes: these models are trained on faces that are
        nearly upright. Raises ``ModelError``.
        """
        roi = self._roi(box, five)
        tensor = self._network.tensor((1, 3, self._side, self._side))
        np.multiply(crop_rgb(image, roi, self._side).transpose(2, 0, 1), self._unit, out=tensor[0])
        return self._network.run(tensor), roi_matrix(roi, self._side)

    def _roi(self, box: np.ndarray, five: np.ndarray) -> Roi:
        if not (np.isfinite(box).all() and np.isfinite(five).all()):
            raise ModelError(f"{self._network.name} was given a face whose box or points are no numbers; give finite ones, in pixels")
        left, top, right, bottom = map(float, box)
        longer = max(right - left, bottom - top, 1.0)
        return Roi((left + right) / 2, (top + bottom) / 2, longer / self._share, line_angle(*five[:2]))

    def values(self, results: Sequence[np.ndarray], place: int, shape: tuple[int, ...]) -> np.ndarray:
        """Output number ``place`` as float32 of ``shape``. Raises ``ModelError`` where it is not, or holds values that are no numbers."""
        size = int(np.prod(shape))
        if len(results) <= place or results[place].size != size:
            raise self._network.wrong(list(results), f"an output {place + 1} of {size} numbers")
        if not np.isfinite(results[place]).all():
            raise ModelError(f"{self._network.name} gave values that are no numbers; check the file with `ffrt models verify`")
        return results[place].reshape(shape)

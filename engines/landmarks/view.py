"""What landmark models that start from a detector's box share: the square they look at, and their points laid back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.errors import ModelError
from engines.face import Roi
from engines.landmarks.contract import Sought, sought_by_mesh
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

    def look(self, image: np.ndarray, faces: Sequence[Sought]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The network's outputs, a row for each of ``faces``; and for each float32 [2, 3]: pixels of the crop → pixels of the picture.

        The crop stands in the box's middle and is turned by the line of the eyes: these models are trained on faces that are
        nearly upright. Raises ``ModelError``.
        """
        rois = [self._roi(face) for face in faces]
        tensor = self._network.tensor((len(rois), 3, self._side, self._side))
        for roi, planes in zip(rois, tensor, strict=True):
            np.multiply(crop_rgb(image, roi, self._side).transpose(2, 0, 1), self._unit, out=planes)
        return self._network.run_each(tensor), [roi_matrix(roi, self._side) for roi in rois]

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [S, S, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        return np.ascontiguousarray(crop_rgb(image, self._roi(sought_by_mesh(points)), self._side)[..., ::-1])

    def _roi(self, face: Sought) -> Roi:
        if not (np.isfinite(face.box).all() and np.isfinite(face.five).all()):
            raise ModelError(f"{self._network.name} was given a face whose box or points are no numbers; give finite ones, in pixels")
        left, top, right, bottom = map(float, face.box)
        longer = max(right - left, bottom - top, 1.0)
        return Roi((left + right) / 2, (top + bottom) / 2, longer / self._share, line_angle(*face.five[:2]))

    def values(self, results: Sequence[np.ndarray], place: int, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Output number ``place`` as float32 [count, *shape], a row for each face.

        Raises ``ModelError`` where it is not, or holds values that are no numbers.
        """
        size = int(np.prod(shape))
        if len(results) <= place or results[place].size != count * size:
            raise self._network.wrong(list(results), f"an output {place + 1} of {size} numbers for each of {count}")
        if not np.isfinite(results[place]).all():
            raise ModelError(f"{self._network.name} gave values that are no numbers; check the file with `ffrt models verify`")
        return results[place].reshape(count, *shape)

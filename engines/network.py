"""A network that looks at one picture: its tensor is kept from call to call, its outputs come as float32 in the file's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engines.batch import Batches
from engines.crop_model import CropNetwork
from engines.errors import ModelError
from engines.parking import Parks
from engines.session import Session, TensorSpec
from engines.tensor import Norm

FLOATS = ("float32", "float16")
"""Element types that networks for pictures have."""


class Network:
    """Not thread-safe: one thread at a time. Inputs and outputs are known by shape and place, never by name."""

    def __init__(self, name: str, session: Session) -> None:
        """``name``: what a person calls the model. Its picture is the input with the most dimensions."""
        self.name = name
        self._session = session
        self.picture: TensorSpec = max(session.inputs, key=lambda spec: len(spec.shape))
        self.others = tuple(spec for spec in session.inputs if spec is not self.picture)
        self._tensor = np.empty(0, np.float32)
        self._batches = Batches(name, self.picture, session.outputs)

    def look(self, picture: np.ndarray, norm: Norm, others: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """``picture``: uint8 [H, W, 3] BGR, given as [1, 3, H, W] RGB. ``others``: further inputs by name. Raises ``ModelError``."""
        return self.look_each([picture], norm, others)

    def look_each(self, pictures: Sequence[np.ndarray], norm: Norm, others: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """As ``look`` for one or more pictures of one size, in one run where the graph allows it. Outputs have a row for every picture."""
        tensor = self.tensor((len(pictures), 3, *pictures[0].shape[:2]))
        for picture, planes in zip(pictures, tensor, strict=True):
            norm.to_tensor(picture, planes)
        return self.run_each(tensor, others)

    def tensor(self, shape: tuple[int, ...]) -> np.ndarray:
        """float32 of ``shape``: the same memory as last time where the shape is the same."""
        if self._tensor.shape != shape:
            self._tensor = np.empty(shape, np.float32)
        return self._tensor

    def run(self, tensor: np.ndarray, others: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """All outputs, float32. Raises ``ModelError`` for a tensor that does not fit."""
        feeds = {self.picture.name: tensor.astype(self.picture.dtype, copy=False), **(others or {})}
        return [result.astype(np.float32, copy=False) for result in self._session.run(feeds).values()]

    def run_each(self, tensor: np.ndarray, others: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """As ``run`` for several pictures (see ``engines.batch``). Outputs have a row for every picture."""
        return self._batches.run(len(tensor), lambda rows: self.run(tensor[rows], others))

    def park(self) -> None:
        """See ``engines.parking.Parks``; does nothing for a session that cannot."""
        if isinstance(self._session, Parks):
            self._session.park()

    def unpark(self) -> None:
        """See ``engines.parking.Parks``."""
        if isinstance(self._session, Parks):
            self._session.unpark()

    def on_crops(self) -> CropNetwork:
        """For a device that cuts the crops itself; the first output is the one that is looked at."""
        return CropNetwork(self._session, self.picture, self._session.outputs[0], None, self._batches)

    def wrong(self, results: list[np.ndarray], wanted: str) -> ModelError:
        """The error for outputs that are not what the file says."""
        given = ", ".join(str(list(result.shape)) for result in results) or "nothing"
        return ModelError(f"{self.name} gave {given} where {wanted} was expected; check the file with `ffrt models verify`")

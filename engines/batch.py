"""Several pictures through one network: in one run where it takes them, one by one where it does not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from engines.errors import DeviceMemoryError, ModelError
from engines.session import TensorSpec

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

Ask = Callable[[slice], Sequence[np.ndarray]]
"""Runs the network for some of the pictures; every result has a row for each. Raises ``ModelError``."""


class Batches:
    """Not thread-safe: one thread at a time."""

    def __init__(self, name: str, picture: TensorSpec, outputs: Sequence[TensorSpec]) -> None:
        """``name``: of the model, for messages.

        Several pictures are given at once if the file leaves their number open, of what goes in and of all that comes out: some
        leave the input alone open and then work on one picture.
        """
        self._name = name
        self._at_once = not any(spec.shape and isinstance(spec.shape[0], int) for spec in (picture, *outputs))

    def run(self, count: int, ask: Ask) -> list[np.ndarray]:
        """The results of ``count`` pictures. A file that promises more than it can is found out at the first try, and said once; so is
        a device without memory for so many."""
        runs = self._each(count, lambda rows: self._checked(rows.stop - rows.start, ask(rows)))
        if len(runs) == 1:
            return runs[0]
        return [np.concatenate([np.atleast_1d(value) for value in column]) for column in zip(*runs, strict=True)]

    def run_in_place(self, count: int, ask: Callable[[slice], None]) -> None:
        """The same where ``ask`` has the results of some of the pictures written to where they are wanted. Raises what it raises."""
        self._each(count, ask)

    def _each(self, count: int, ask: Callable[[slice], Answer]) -> list[Answer]:
        """What ``ask`` says of all at once, or of one after the other."""
        if self._at_once or count == 1:
            try:
                return [ask(slice(0, count))]
            except (ModelError, DeviceMemoryError) as error:
                if count == 1:
                    raise
                self._at_once = False
                log.warning("%s takes one picture at a time, whatever its file says (%s)", self._name, error)
        return [ask(slice(number, number + 1)) for number in range(count)]

    def _checked(self, count: int, results: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One picture's results are its caller's to judge."""
        if count > 1 and any(result.shape[:1] != (count,) for result in results):
            raise ModelError(f"{self._name} gave {', '.join(str(list(result.shape)) for result in results)} for {count} pictures")
        return list(results)

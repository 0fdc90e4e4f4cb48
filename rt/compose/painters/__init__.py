"""Painters: how what a swapper or an enhancer makes gets onto a picture that lies on a device. One file a kind, which registers itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engines.registry import Registry
from rt.compose.canvas import Canvas
from rt.compose.memory import Memory
from rt.frame import TrackedFace


class Painter(Protocol):
    """Keeps on the device what its kind of model needs there. One thread."""

    def paint(self, canvas: Canvas, model: Any, identity: Any, faces: Sequence[TrackedFace]) -> list[bool]:
        """Asks ``canvas`` for what draws ``faces``, which lie apart; for each, whether anything of it is drawn.

        ``model``: the swapper, or the enhancer, whose ``identity`` is None.
        """
        ...

    def forget(self) -> None:
        """Frees what is kept for models and identities."""
        ...


@dataclass(frozen=True, slots=True)
class PainterKind:
    """What a painter registers."""

    order: int
    """Painters are asked from the least to the greatest: the most particular first."""
    takes_swapper: Callable[[Any], bool]
    takes_enhancer: Callable[[Any], bool]
    make: Callable[[Memory], Painter]


painters: Registry[PainterKind] = Registry("painter", "rt.compose.painters")

"""Who sees each picture as it was filmed and as it is shown: for comparing the two, and for proving that no face leaks."""

from __future__ import annotations

from typing import Protocol

from rt.frame import Frame


class Witness(Protocol):
    """Must copy what it keeps. The two are called on two threads, and frames overlap: pair by ``Frame.seq``."""

    def before(self, frame: Frame) -> None:
        """As it was captured; of every frame that is taken in, in order, also of those that are lost on the way."""
        ...

    def after(self, frame: Frame) -> None:
        """As the sinks get it, in order: behind the freeze policy, whichever lane worked on it."""
        ...

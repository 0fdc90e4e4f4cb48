"""Parts by the names that settings give them. A name that is built in costs nothing; the shelf is looked at for the others alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from app.settings import LookSettings
from engines.detect import detectors
from engines.face_regions import parsed
from engines.family import DrawsOnePerson, Kind, families
from engines.mask import masks
from engines.registry import Registry
from engines.session import ModelUse, RunsNetworks, choose_runtime, runtime_order
from engines.swap import swappers

if TYPE_CHECKING:
    from engines.kit import ModelKit, OpenModel

BUILT_IN: Mapping[Kind, Registry[Callable[..., Any]]] = {Kind.DETECTOR: detectors, Kind.MASK: masks, Kind.SWAPPER: swappers}

EMBEDDED = "embedded models always run on the processor: each takes it less than a way to a GPU and back"
"""Why no other runtime."""

ALWAYS_THERE = "ort"
"""The runtime of the processor: an order that names it can be kept on every machine."""


class Parts:
    """Opens what one thread uses. Raises ``ModelError`` as ``engines.kit.ModelKit`` does."""

    def __init__(self, look: LookSettings) -> None:
        """Raises ``ModelError`` for a runtime nobody knows, ``DeviceError`` where none that was asked for can run here.

        That is said at once, even where no part will ask: who names a GPU must not find out later that nothing ran on it.
        """
        order = runtime_order(look.runtime)
        if ALWAYS_THERE not in order:
            choose_runtime(order)
        self._look = look
        self._kit: ModelKit | None = None
        self._embedded: tuple[ModelUse, ...] = ()
        self._built_in: list[object] = []

    def named(self, kind: Kind, asked: str) -> Any:
        """The part of ``kind`` that is called ``asked``."""
        known = BUILT_IN.get(kind)
        if known is not None and asked in list(known):
            made = known[asked]()
            self._embedded += embedded_uses(made)
            self._built_in.append(made)
            return made
        return self._whole_kit().named(kind, asked)

    def draws_one_person(self, swapper: str) -> bool:
        """Whether that is made for one person, so that no photo is to be chosen. Raises ``ModelError`` as ``named`` does."""
        if swapper in list(BUILT_IN[Kind.SWAPPER]):
            return False
        return isinstance(self._whole_kit().family(Kind.SWAPPER, swapper), DrawsOnePerson)

    def open_helpers(self) -> None:
        """Opens what the user named for other parts to use, before them: a wrong name is said also where none of them needs it."""
        if self._look.landmarks is not None:
            from engines.landmarks.aligner import ModelAligner

            kit = self._whole_kit()
            kit.aligner = ModelAligner(kit.named(Kind.LANDMARKS, self._look.landmarks))
        if self._look.identity is not None:
            self._whole_kit().named(Kind.IDENTITY, self._look.identity)

    @property
    def open_models(self) -> tuple[OpenModel, ...]:
        """The user's own that are open."""
        return self._kit.open_models if self._kit is not None else ()

    def uses(self) -> tuple[ModelUse, ...]:
        """All models that are open, those that come with the program first."""
        return (*self._embedded, *(model.use() for model in self.open_models))

    def close(self) -> None:
        """Closes what was opened here. May be called twice."""
        for part in self._built_in:
            close_embedded(part)
        if self._kit is not None:
            self._kit.close()

    def _whole_kit(self) -> ModelKit:
        """Imported and made when first needed: the embedded default starts without it."""
        if self._kit is None:
            from engines.kit import ModelKit
            from engines.store.catalog import load_catalog
            from engines.store.shelf import Shelf

            look = self._look
            options = {"pixel_boost": look.pixel_boost, "enhancer_weight": look.enhancer_weight, "mask_regions": parsed(look.regions)}
            preferred = {} if look.identity is None else {Kind.IDENTITY: look.identity}
            self._kit = ModelKit(Shelf(), load_catalog(), families, BUILT_IN, options=options, preferred=preferred, runtime=look.runtime)
        return self._kit


def embedded_uses(part: object) -> tuple[ModelUse, ...]:
    """Of the models that come with the program and that ``part`` runs, if any."""
    if not isinstance(part, RunsNetworks):
        return ()
    return tuple(ModelUse(name, session.runtime, EMBEDDED, session.memory_bytes) for name, session in part.networks.items())


def close_embedded(part: object) -> None:
    """The models that come with the program and that ``part`` runs, if any: 30 MB that would wait for the garbage collector."""
    if isinstance(part, RunsNetworks):
        for session in part.networks.values():
            session.close()

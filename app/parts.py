"""Parts by the names that settings give them. A name that is built in costs nothing; the shelf is looked at for the others alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.settings import LookSettings
from engines.detect import detectors
from engines.family import Kind
from engines.mask import masks
from engines.registry import Registry
from engines.swap import swappers

BUILT_IN: Mapping[Kind, Registry[Callable[..., Any]]] = {Kind.DETECTOR: detectors, Kind.MASK: masks, Kind.SWAPPER: swappers}


class Parts:
    """Opens what one thread uses. Raises ``ModelError`` as ``engines.kit.ModelKit`` does."""

    def __init__(self, look: LookSettings) -> None:
        self._look = look
        self._kit: Any = None

    def named(self, kind: Kind, asked: str) -> Any:
        """The part of ``kind`` that is called ``asked``."""
        known = BUILT_IN.get(kind)
        if known is not None and asked in list(known):
            return known[asked]()
        return self._whole_kit().named(kind, asked)

    def open_helpers(self) -> None:
        """Opens what the user named for other parts to use: a wrong name is said also where none of them needs it."""
        if self._look.landmarks is not None:
            self._whole_kit()
        if self._look.identity is not None:
            self._whole_kit().named(Kind.IDENTITY, self._look.identity)

    def _whole_kit(self) -> Any:
        """Imported and made when first needed: the embedded default starts without it."""
        if self._kit is None:
            from app.models import known_families
            from engines.kit import ModelKit
            from engines.landmarks.aligner import ModelAligner
            from engines.store.catalog import load_catalog
            from engines.store.shelf import Shelf

            look = self._look
            options = {"pixel_boost": look.pixel_boost, "enhancer_weight": look.enhancer_weight}
            preferred = {} if look.identity is None else {Kind.IDENTITY: look.identity}
            self._kit = ModelKit(
                Shelf(), load_catalog(), known_families(), BUILT_IN, options=options, preferred=preferred, runtime=look.runtime
            )
            if look.landmarks is not None:
                self._kit.aligner = ModelAligner(self._kit.named(Kind.LANDMARKS, look.landmarks))
        return self._kit

"""What can be chosen for a part of the look: what is built in, what is on the person's shelf, and what could be fetched."""

from __future__ import annotations

from dataclasses import dataclass

from app.models import Models
from app.parts import BUILT_IN
from app.settings import LookSettings
from engines.family import Kind
from engines.session import AUTO_ORDER, runtimes

HIDDEN = ("echo",)
"""Built in for tests and benches."""


@dataclass(frozen=True, slots=True)
class Part:
    """One entry."""

    name: str
    """As the settings name it."""
    missing: str = ""
    """What to do before it can be chosen; empty where it is here."""
    family: str = ""
    """Of a model; empty for what is built in."""


def parts_of(kind: Kind, models: Models | None = None) -> tuple[Part, ...]:
    """Built-in ones first, then the shelf's, then those of the catalogue that are not here. Reads files: not on a window's thread."""
    models = models or Models()
    built_in = [name for name in BUILT_IN.get(kind, ()) if name not in HIDDEN]
    here = {card.name: card.family for card in models.shelf.cards() if card.kind == str(kind)}
    known = {*built_in, *here}
    elsewhere = [entry for entry in models.catalog if entry.kind is kind and entry.name not in known]
    return (
        *(Part(name, family=here.get(name, "")) for name in dict.fromkeys([*built_in, *sorted(here)])),
        *(Part(entry.name, f"ffrt models pull {entry.name}", entry.family) for entry in elsewhere),
    )


def models_of(look: LookSettings) -> tuple[str, ...]:
    """The models that ``look`` names, without what is built in. Imports parts: not on a window's thread."""
    chosen = {Kind.SWAPPER: (look.swapper,), Kind.DETECTOR: (look.detector,), Kind.MASK: look.masks, Kind.ENHANCER: (look.enhancer,)}
    return tuple(name for kind, names in chosen.items() for name in names if name and name not in BUILT_IN.get(kind, ()))


def runtimes_here() -> tuple[Part, ...]:
    """What can run models, in the order in which it is tried; ``missing`` says why one cannot run here. Imports runtimes: seconds."""
    names = dict.fromkeys([*AUTO_ORDER, *runtimes])
    return tuple(Part(name, runtimes[name].problem() if name in list(runtimes) else "not in this build") for name in names)

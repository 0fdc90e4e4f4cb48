"""The models that ship with the program, checked before they are used."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from engines.errors import ModelError


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """One model that ships with the program."""

    name: str
    path: Path
    sha256: str
    licence: str
    usual_shape: tuple[int, ...] = ()
    """Of its input, where the file leaves sizes open: what an engine is built for. Empty where it does not."""


def embedded_models() -> dict[str, EmbeddedModel]:
    """All of them, by name, as ``assets/models/models.toml`` lists them."""
    folder = Path(str(files("assets") / "models"))
    table = tomllib.loads((folder / "models.toml").read_text(encoding="utf-8"))
    return {
        name: EmbeddedModel(name, folder / entry["file"], entry["sha256"], table["licence"], tuple(entry.get("usual_shape", ())))
        for name, entry in table["models"].items()
    }


def embedded_model(name: str) -> Path:
    """The file of a model that ships with the program. Raises ``ModelError`` when it is missing or was changed."""
    models = embedded_models()
    if name not in models:
        raise ModelError(f"no embedded model is called {name!r}; there are {', '.join(sorted(models))}")
    verify(models[name])
    return models[name].path


def verify(model: EmbeddedModel) -> None:
    """Raises ``ModelError`` unless the file's SHA-256 is the one on record."""
    if not model.path.is_file():
        raise ModelError(f"the embedded model {model.path.name} is missing; install ffrt again")
    if hashlib.sha256(model.path.read_bytes()).hexdigest() != model.sha256:
        raise ModelError(f"the embedded model {model.path.name} is not the file that was shipped; install ffrt again")

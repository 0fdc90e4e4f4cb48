"""What an engine was built from, and the one name that follows from it.

Engines themselves can't name a cache entry: a second build of the same network may give other bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engines.errors import ModelError

SCHEMA = 1
"""Goes up when the meaning of a field, or the way graphs are prepared for a build, changes: older engines are then stale."""

PRECISIONS = ("fp32", "fp16", "int8", "fp8")

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class InputProfile:
    """The shapes an engine takes at one input: each dimension from ``low`` to ``high``, fastest at ``best``."""

    name: str
    low: tuple[int, ...]
    best: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def is_static(self) -> bool:
        return self.low == self.high

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of ``shape`` may be given."""
        return len(shape) == len(self.low) and all(a <= n <= b for a, n, b in zip(self.low, shape, self.high, strict=True))


@dataclass(frozen=True, slots=True)
class EngineKey:
    """All that decides what an engine is. Two equal keys are one engine; any difference is another."""

    model_sha256: str
    """Of the fp32 ONNX file, 64 hexadecimal digits."""
    runtime: str
    """``rtx`` or ``tensorrt``."""
    runtime_version: str
    targets: tuple[str, ...]
    """Compute capabilities, ``sm_86``; their order says nothing. Empty: whatever the runtime holds portable."""
    precision: str
    profiles: tuple[InputProfile, ...]
    flags: tuple[str, ...] = ()
    """Whatever else was asked of the builder, ``name=value``; their order says nothing."""
    driver: str = ""
    """Driver's version and the GPU's name where the runtime ties engines to them; empty where it does not (``rtx``)."""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        """Raises ``ModelError`` for what cannot be keyed: an engine that cannot be told apart must not be kept."""
        if not _SHA256.fullmatch(self.model_sha256):
            raise ModelError(f"{self.model_sha256!r} was given as a model's SHA-256; it has 64 digits of 0-9 and a-f")
        if self.precision not in PRECISIONS:
            raise ModelError(f"the precision {self.precision!r} is not known; choose from {', '.join(PRECISIONS)}")
        if not self.runtime or not self.runtime_version:
            raise ModelError("an engine cannot be kept without the name and version of what built it")
        object.__setattr__(self, "targets", tuple(sorted(set(self.targets), key=_by_number)))
        object.__setattr__(self, "flags", tuple(sorted(set(self.flags))))
        object.__setattr__(self, "profiles", tuple(sorted(self.profiles, key=lambda profile: profile.name)))

    @property
    def hex(self) -> str:
        """64 hexadecimal digits: the SHA-256 of the key's canonical JSON."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, fit to be read by a person."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> EngineKey:
        """The key that ``to_dict`` wrote. Raises KeyError, TypeError or ``ModelError`` for anything else."""
        fields = dict(table)
        profiles = tuple(
            InputProfile(entry["name"], tuple(entry["low"]), tuple(entry["best"]), tuple(entry["high"])) for entry in fields.pop("profiles")
        )
        targets, flags = tuple(fields.pop("targets")), tuple(fields.pop("flags"))
        return cls(profiles=profiles, targets=targets, flags=flags, **fields)


def parse_target(text: str) -> str:
    """``sm_86``, ``sm86``, ``86`` or ``8.6`` → ``sm_86``. Raises ``ModelError``."""
    found = re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)", text.strip().lower())
    if found is None:
        raise ModelError(f"{text!r} is no compute capability; write sm_86, as NVIDIA's list of GPUs names it")
    return f"sm_{int(found[1])}{found[2]}"


def capability(target: str) -> int:
    """``sm_86`` → 86."""
    return int(target.removeprefix("sm_"))


def _by_number(target: str) -> tuple[int, str]:
    digits = target.removeprefix("sm_")
    return (int(digits) if digits.isdigit() else 0, target)

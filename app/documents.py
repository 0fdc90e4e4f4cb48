"""From a file's text to a checked model, with one clear sentence for whatever is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from app.errors import StoreError

Model = TypeVar("Model", bound=BaseModel)


def json_object(text: str, place: Path | str, error: type[StoreError], mend: str) -> dict[str, Any]:
    """The object that ``text`` holds. Raises ``error`` for anything else, with ``mend``: what to do."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error(f"{place} is damaged ({problem}); {mend}") from None
    if not isinstance(facts, dict):
        raise error(f"{place} is damaged; {mend}")
    return facts


def checked(model: type[Model], facts: Mapping[str, Any], place: Path | str, error: type[StoreError] = StoreError) -> Model:
    """Raises ``error`` with the first thing that does not fit."""
    try:
        return model.model_validate(facts)
    except ValidationError as problems:
        raise error(f"{place}: {first_problem(problems)}") from None


def check_version(facts: Mapping[str, Any], key: str, version: int, place: Path | str, error: type[StoreError] = StoreError) -> None:
    """Raises ``error`` unless ``facts[key]`` is a version that this program knows."""
    found = facts.get(key)
    if type(found) is not int or found < 1:
        raise error(f"{place} has no line `{key} = {version}`, so it is not a file of this kind; give one that ffrt wrote")
    if found > version:
        raise error(f"{place} was written by a newer ffrt ({key} {found}; this one knows up to {version}); update ffrt, the file is kept")


def first_problem(problems: ValidationError) -> str:
    """``look.opacity: …``, with what was given."""
    problem = problems.errors(include_url=False)[0]
    field = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"the field {field} is unknown; remove it, or update ffrt"
    return f"{field}: {problem['msg']} ({str(problem['input'])[:80]!r} was given)"

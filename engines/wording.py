"""How numbers read in sentences for people."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """``1 crop``, ``0 crops``, ``2 good crops``: of what takes an s."""
    return f"{number} {thing}{'' if number == 1 else 's'}"

"""Numbers in sentences."""

from __future__ import annotations

import pytest

from engines.wording import counted


@pytest.mark.parametrize(
    ("number", "thing", "words"),
    [(0, "crop", "0 crops"), (1, "good crop", "1 good crop"), (2, "good crop", "2 good crops"), (21, "frame", "21 frames")],
)
def test_one_is_singular(number: int, thing: str, words: str) -> None:
    assert counted(number, thing) == words

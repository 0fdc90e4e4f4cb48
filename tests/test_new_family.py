"""A new swapper family is one new file: the one that CONTRIBUTING.md shows, put beside the others, goes live."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import HOPPER, ROOT
from paired import Paired
from standins import identity as identities
from standins.swappers import Contract, swapper

import engines.swap
from app.models import Models
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from engines.family import Kind, families
from engines.registry import import_all
from rt.frame import Frame

HALF = ((0.5,) * 3, (0.5,) * 3)


def recipe() -> str:
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    return text


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as part of ``engines.swap`` for one test."""
    list(families)  # fills it: what is registered in the test is gone afterwards
    folder = tmp_path / "swap"
    folder.mkdir()
    monkeypatch.setattr(engines.swap, "__path__", [*engines.swap.__path__, str(folder)])
    monkeypatch.setattr(families, "_entries", dict(families._entries))
    yield folder
    for path in folder.glob("*.py"):
        sys.modules.pop(f"engines.swap.{path.stem}", None)
        vars(engines.swap).pop(path.stem, None)


class Changed(Paired):
    """Counts the frames in which pixels changed."""

    frames = 0

    def compare(self, before: np.ndarray, frame: Frame) -> None:
        self.frames += not np.array_equal(before, frame.pixels)


def test_one_new_file_is_a_family(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (room / "mine.py").write_text(recipe())
    import_all("engines.swap")
    assert families["mine"].kind is Kind.SWAPPER

    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    models = Models()
    models.import_file(identities.arcface(tmp_path / "arcface_w600k_r50.onnx"))
    row = models.import_file(swapper(tmp_path / "somebody.onnx", Contract(96, given=HALF, made=HALF)))
    assert (row["family"], row["kind"]) == ("mine", "swapper")

    witness = Changed()
    settings = Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=640x360,fps=30,frames=12"),
        look=LookSettings(swapper="somebody"),
        output=OutputSettings(null=True),
    )
    session = LiveSession(settings, witness=witness)
    session.start()
    assert session.wait(60)
    session.close()
    assert session.report()["error"] is None
    assert witness.frames > 0

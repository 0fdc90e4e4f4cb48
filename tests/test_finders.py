"""What finding faces costs a line on a GPU: why embedded models stay on the processor (ARCHITECTURE.md has these numbers)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit import FolderKit, model_file
from standins.fan4_2d import fan4_2d
from standins.scrfd import scrfd

from engines.detect import detectors
from engines.device.memory import CUDA
from engines.face import Detection
from engines.family import families
from engines.landmarks.contract import sought_by_mesh
from engines.landmarks.facemesh import FaceMesh, roi_from_detection
from engines.session import RunsInPlace, Session


@dataclass
class Counting:
    """Counts what a session would have to be sent, and sends back."""

    run: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        made = self.run(feeds)
        self.up.append(sum(array.nbytes for array in feeds.values()))
        self.down.append(sum(array.nbytes for array in made.values()))
        return made


def counted(session: Any, monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting(session.run)
    monkeypatch.setattr(session, "run", counting)
    return counting


def sessions() -> list[Session]:
    return [session for model in (FaceMesh(), *(detectors[name]() for name in detectors)) for session in model.networks.values()]


def test_embedded_models_run_on_the_processor_and_move_nothing() -> None:
    for session in sessions():
        assert session.runtime == "ort:CPUExecutionProvider"
        assert not (isinstance(session, RunsInPlace) and session.works_in(CUDA))


def test_what_they_would_move_on_a_gpu(astronaut: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    detector, mesh = detectors["blazeface-short"](), FaceMesh()
    looked, located = (counted(*model.networks.values(), monkeypatch) for model in (detector, mesh))
    found: list[Detection] = detector.detect(astronaut)
    mesh.locate_all(astronaut, [roi_from_detection(found[0])] * 2)
    assert (looked.up, looked.down) == ([49_152], [60_928])
    assert (located.up, located.down) == ([2 * 110_592], [2 * 5_620]), "of two faces"


class Counted(FolderKit):
    """Opens models whose traffic is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._monkeypatch = monkeypatch

    def session(self, model: Any, shapes: Any = None) -> Session:
        opened = super().session(model, shapes)
        self.count = counted(opened, self._monkeypatch)
        return opened


@pytest.mark.parametrize(
    ("family", "make", "up", "down"),
    [("scrfd", scrfd, 2_949_120, 604_800), ("2dfan4", fan4_2d, 786_432, 1_114_928)],
)
def test_what_models_of_one_s_own_move(family: str, make: Any, up: int, down: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = Counted(monkeypatch)
    model = families[family].open(model_file(make(tmp_path / "model.onnx"), family), kit)
    image = np.zeros((720, 1280, 3), np.uint8)
    if family == "scrfd":
        model.detect(image)
    else:
        model.locate(image, [sought_by_mesh(np.random.default_rng(1).uniform(0, 300, (468, 3)).astype(np.float32))])
    assert (kit.count.up, kit.count.down) == ([up], [down])

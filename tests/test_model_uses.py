"""The report of a run lists every network that runs: by what, why by nothing better, and how much memory it takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kept_runtime
import numpy as np
import pytest
from conftest import HOPPER
from rich.console import Console
from standins.shelf import fill

from app import console
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from engines.ort import OrtSession
from engines.store import embedded_models

DEFAULT = {"face_detection_full_range_sparse", "face_landmark", "palm_detection_lite", "hand_landmark_lite"}
EMBEDDED = set(embedded_models())


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("models"))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the files whose networks ran, whoever opened them."""
    names: set[str] = set()
    run = OrtSession.run

    def noted(self: OrtSession, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        names.add(Path(self._name).stem)
        return run(self, feeds)

    monkeypatch.setattr(OrtSession, "run", noted)
    return names


def report_of(look: LookSettings) -> dict[str, Any]:
    session = LiveSession(
        Settings(
            source=SourceSettings(photos=(HOPPER,)),
            input=InputSettings(spec="synthetic:size=640x360,fps=30"),
            look=look,
            output=OutputSettings(null=True),
        )
    )
    session.start()
    try:
        while session.metrics().frames_out < 7:  # the search for palms comes round once
            assert not session.wait(0.01)
    finally:
        session.close()
    assert session.report()["error"] is None
    return session.report()


LOOKS: dict[str, tuple[LookSettings, set[str]]] = {
    "default": (LookSettings(), DEFAULT),
    "short range, no mask": (LookSettings(detector="blazeface-short", masks=()), {"face_detection_short_range", "face_landmark"}),
    "everything": (
        LookSettings(
            swapper="ghost_1_256",
            landmarks="2dfan4",
            masks=("hands", "mouth", "xseg_1", "bisenet_resnet_34"),
            enhancer="codeformer",
        ),
        DEFAULT | {"ghost_1_256", "crossface_ghost", "arcface_w600k_r50", "2dfan4", "xseg_1", "bisenet_resnet_34", "codeformer"},
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_the_report_lists_every_network_that_runs(name: str, shelf: Path, ran: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    look, wanted = LOOKS[name]
    rows = report_of(look)["models"]
    listed = [row["model"] for row in rows]
    assert sorted(listed) == sorted(wanted), "each once"
    assert ran - wanted <= {"face_detection_full_range_sparse"}, "the synthetic camera looks for its portrait's face with this one"
    assert wanted - ran <= {"hand_landmark_lite"}, "no hand is there to be looked at"
    assert all(set(row) == {"model", "runtime", "why", "memory_bytes"} and row["runtime"] for row in rows)
    assert all("embedded models always run on the processor" in row["why"] for row in rows if row["model"] in EMBEDDED)
    assert all("not rtx:" in row["why"] and "not tensorrt:" in row["why"] for row in rows if row["model"] not in EMBEDDED)


def test_the_table_says_reason_and_memory(shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a runtime that knows how much it takes, and of ONNX Runtime, which is at least as much as the file holds."""
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    monkeypatch.setattr(console, "out", Console(width=500, soft_wrap=True))
    (path,) = shelf.rglob("person.dfm")
    kept_runtime.kept(path).write_bytes(path.read_bytes())
    try:
        report = report_of(LookSettings(swapper="person", masks=("xseg_1",), runtime="kept,ort"))
    finally:
        kept_runtime.kept(path).unlink()
    rows = {row["model"]: row for row in report["models"]}
    assert rows["person"] == {"model": "person", "runtime": "ort:CPUExecutionProvider", "why": "", "memory_bytes": path.stat().st_size}
    (mask,) = shelf.rglob("xseg_1.onnx")
    assert rows["xseg_1"]["memory_bytes"] >= mask.stat().st_size
    assert "no graph of" in rows["xseg_1"]["why"]
    console.print_report(report)
    shown = capsys.readouterr().out
    for row in report["models"]:
        assert row["model"] in shown
        assert row["why"] in shown
    assert f"person ({path.stat().st_size / 1e6:.0f} MB)" in shown

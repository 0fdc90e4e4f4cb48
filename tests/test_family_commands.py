"""A stand-in of every family through the real commands: imported, live, and judged. All of them by `make test-families`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import HOPPER
from standins.shelf import OTHERS, PERSON, SWAPPERS, fill
from test_cli import ffrt

from engines.family import Kind, families

SMALL = "synthetic:size=640x360"
SWEEP = os.environ.get("FFRT_SWEEP") == "1"
every = pytest.mark.skipif(not SWEEP, reason="part of `make test-families`")

SOME_SWAPPERS = {"hyperswap_1a_256", PERSON}
SOME_OTHERS = {"2dfan4", "codeformer", "xseg_1"}


def _some(cases: list[tuple[str, ...]], chosen: set[str]) -> list[Any]:
    """The chosen ones always, all others in the sweep."""
    return [pytest.param(*case, marks=() if case[-1] in chosen else every) for case in cases]


ALL_SWAPPERS: list[tuple[str, ...]] = [(name,) for name in (*SWAPPERS, PERSON)]
ALL_OTHERS: list[tuple[str, ...]] = [(kind, name) for kind, names in OTHERS.items() for name in names]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short clip and a photo, both of which come with the program."""
    folder = tmp_path_factory.mktemp("material")
    (folder / "clips").mkdir()
    (folder / "photos").mkdir()
    clip = "synthetic:size=640x360,fps=30,frames=30,face=160"
    done = ffrt("--headless", "--input", clip, "--record", folder / "clips" / "portrait.mp4")
    assert done.returncode == 0, done.stderr
    (folder / "photos" / HOPPER.name).write_bytes(HOPPER.read_bytes())
    return folder


def report_of(path: Path, shelf: Path, *arguments: Any) -> dict[str, Any]:
    done = ffrt(*arguments, "--report", path, env={**os.environ, "FFRT_MODELS": str(shelf)})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def test_every_family_has_a_stand_in() -> None:
    here = {family for family, _ in SWAPPERS.values()} | {"dfm", "crossface"}
    here |= {family for kind in OTHERS.values() for family, _ in kind.values()}
    without = sorted(set(families) - here)
    assert not without, f"{without} have no stand-in: write one in tests/standins and name it in tests/standins/shelf.py"
    assert here <= set(families)
    swappers = {name for name in families if families[name].kind is Kind.SWAPPER}
    assert swappers == {family for family, _ in SWAPPERS.values()} | {"dfm"}, "the benches below run each of them"
    assert set(OTHERS) == set(map(str, Kind)) - {"swapper", "converter"}


@pytest.mark.parametrize("name", _some(ALL_SWAPPERS, SOME_SWAPPERS))
def test_the_live_bench_of_a_swapper(name: str, shelf: Path, tmp_path: Path) -> None:
    report = report_of(
        tmp_path / "live.json", shelf, "bench", "live", "--swapper", name, "--seconds", 2, "--input", "synthetic:size=640x360"
    )
    assert report["settings"]["look"]["swapper"] == name
    assert report["error"] is None
    assert report["faces"] == 1
    assert report["frames_out"] > 0
    assert report["stages_ms"]["swap"]["p50"] > 0
    assert report["sinks"]["null"]["timecodes"] == report["sinks"]["null"]["frames"] > 0


@pytest.mark.parametrize("name", _some(ALL_SWAPPERS, {"hyperswap_1a_256"}))
def test_the_quality_bench_of_a_swapper(name: str, shelf: Path, material: Path, tmp_path: Path) -> None:
    pytest.importorskip("dlib")
    folders = ("--clips", material / "clips", "--sources", material / "photos")
    report = report_of(tmp_path / "quality.json", shelf, "bench", "quality", "--swapper", name, *folders, "--frames", 10)
    (pair,) = report["pairs"]
    assert (pair["source"], pair["clip"], pair["frames"]) == (HOPPER.name, "portrait.mp4", 10)
    assert 0 < pair["mean_to_source"] < 2
    assert 0 < pair["mean_to_target"] < 2
    assert pair["median_iod"] < 0.5, "the stand-in paints the target's own face in another tint"
    assert pair["flicker"] is not None


@pytest.mark.parametrize(("option", "name"), _some(ALL_OTHERS, SOME_OTHERS))
def test_every_other_family_goes_live(option: str, name: str, shelf: Path, tmp_path: Path) -> None:
    """Beside inswapper, which needs five points and an embedding. The stand-in of a detector sees its markers alone, and finds nobody."""
    worn = ("--input", SMALL) if option == "detector" else ("--input", SMALL, "--source", HOPPER, "--swapper", "inswapper_128")
    report = report_of(tmp_path / "live.json", shelf, "--headless", *worn, f"--{option}", name, "--null", "--seconds", 1)
    assert report["error"] is None
    assert report["frames_out"] > 0
    assert report["faces"] == (0 if option == "detector" else 1)
    assert name in str(report["settings"]["look"])

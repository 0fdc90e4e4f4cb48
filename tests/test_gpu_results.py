"""`make test-gpu`: what it says without a GPU, and the row it prints with one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ASTRONAUT, ROOT

from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, RunSettings, Settings, SourceSettings
from engines.device.cuda_probe import find_gpus
from engines.session import ModelUse

sys.path.insert(0, str(ROOT / "scripts"))
import gpu_table
import need_gpu

without_gpu = pytest.mark.skipif(find_gpus()[0] > 0, reason="a GPU is here")


def called(*command: str | Path, **environment: str) -> tuple[int, str]:
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment})
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("library", ["libffrt-nobody-has-this.so", need_gpu.LIBRARY])
@without_gpu
def test_without_a_driver_or_a_card_one_sentence_says_so(library: str) -> None:
    why = need_gpu.why_not(library)
    assert why.startswith("NVIDIA's driver ")
    assert "\n" not in why


@without_gpu
def test_make_ends_before_it_fetches_anything() -> None:
    code, said = called("make", "test-gpu", f"PYTHON={sys.executable}")
    first, *rest = said.strip().splitlines()
    assert code != 0
    assert re.fullmatch(r"The tests of the GPU need an NVIDIA card, .*, and none can be used here: NVIDIA's driver .*\.", first)
    assert len(rest) == 1, "make's own line"


@without_gpu
@pytest.mark.parametrize("required", [True, False])
def test_its_tests_fail_with_one_sentence_where_a_gpu_is_required_and_are_skipped_elsewhere(required: bool) -> None:
    command = (sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", "tests/test_gpu.py")
    code, said = called(*command, FFRT_REQUIRE_GPU=str(int(required)))
    assert (code != 0) == required
    assert said.count("no NVIDIA GPU can be used here") == int(required)
    assert ("skipped" in said) != required


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the line's own, with the model that the bench on a GPU runs."""
    path = tmp_path_factory.mktemp("gpu") / "gpu.json"
    session = LiveSession(
        Settings(
            source=SourceSettings(photos=(ASTRONAUT,)),
            input=InputSettings(spec="synthetic:size=320x180,fps=60,frames=10"),
            output=OutputSettings(null=True),
            run=RunSettings(),
        )
    )
    session.start()
    session.wait(60)
    session.close()
    swapper = {"model": "inswapper_full", "runtime": "rtx:1.7.1", "why": "", "memory_bytes": 1}
    assert set(swapper) == set(ModelUse.__slots__)
    path.write_text(json.dumps({**session.report(), "models": [swapper]}), encoding="utf-8")
    return path


def results(tmp_path: Path, failures: int = 0) -> Path:
    path = tmp_path / "gpu.xml"
    path.write_text(f'<testsuites><testsuite name="pytest" tests="10" failures="{failures}" errors="0" skipped="0"/></testsuites>')
    return path


def rows_of(text: str) -> list[list[str]]:
    lines = text.splitlines()
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_row_is_a_table_with_what_was_measured(measured: Path, tmp_path: Path) -> None:
    head, rule, row = rows_of(gpu_table.table(measured, results(tmp_path), "RTX 4070 | 12 GB (sm_89)", "CUDA 13.0"))
    assert len(head) == len(rule) == len(row)
    assert set(rule) == {"---"}
    found, report = dict(zip(head, row, strict=True)), json.loads(measured.read_text(encoding="utf-8"))
    assert (found["card"], found["driver"], found["engine"]) == ("RTX 4070 / 12 GB (sm_89)", "CUDA 13.0", "rtx:1.7.1")
    assert found["passed"] == "10 of 10"
    assert found["fps of 60"] == f"{report['fps']:.1f}"
    assert found["age p50"] == f"{report['age_ms']['p50']:.1f}"
    assert found["swap p50"] == f"{report['stages_ms']['swap']['p50']:.1f}"
    assert all(row)


def test_where_the_bench_failed_the_row_says_so(tmp_path: Path) -> None:
    head, _, row = rows_of(gpu_table.table(tmp_path / "none.json", results(tmp_path, failures=3), "RTX 4070", "CUDA 13.0"))
    found = dict(zip(head, row, strict=True))
    assert (found["engine"], found["passed"], found["fps of 60"]) == ("failed", "7 of 10", "–")
    assert len(head) == len(row)

"""`ffrt engines` as a person calls it, with folders of its own."""

from __future__ import annotations

import importlib.util
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from standins.scrfd import scrfd
from standins.sketch import Sketch
from test_cli import ffrt, start

from app.cli import main
from engines.build.crops import crops_folder, portrait_crops
from engines.store import embedded_model

needs_rtx = pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="TensorRT for RTX is not installed")
MODEL = "face_detection_short_range"


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    """Folders of its own for everything that is kept."""
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))
    return tmp_path


@pytest.fixture
def engines(here: Path, capsys):
    """The command in this process: a process of its own takes seconds, and one of the tests has it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def call(*arguments: Any) -> SimpleNamespace:
        with pytest.raises(SystemExit) as ended:
            main(["engines", *map(str, arguments)])
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code, stdout=out, stderr=err)

    yield call
    root.handlers[:] = handlers
    root.setLevel(level)


@needs_rtx
def test_a_detector_of_any_size_is_built_for_the_one_it_runs_at_live(engines, tmp_path: Path) -> None:
    model = scrfd(tmp_path / "scrfd.onnx")
    built = engines("build", model, "--for", "sm_89", "--json")
    assert built.returncode == 0, built.stderr
    facts = json.loads(built.stdout)
    assert facts["usual_shapes"] == {"input.1": "1x3x640x640"}
    assert [profile["best"] for profile in facts["profiles"]] == [[1, 3, 640, 640]]
    again = engines("build", model, "--for", "sm_89")
    assert "leaves the size of input.1 open: built for 1x3x640x640" in " ".join(again.stderr.split())
    other = engines("build", model, "--for", "sm_89", "--shape", "input.1=1x3x320x320", "--json")
    assert json.loads(other.stdout)["usual_shapes"] == {}


@needs_rtx
def test_build_list_and_prune(engines, tmp_path: Path) -> None:
    built = ffrt("engines", "build", MODEL, "--precision", "fp16", "--for", "sm_86,sm_89", "--batch", "1..8", "--json")
    assert built.returncode == 0, built.stderr
    facts = json.loads(built.stdout)
    assert facts["built"] is True
    assert (facts["runtime"], facts["precision"], facts["targets"]) == ("rtx", "fp16", ["sm_86", "sm_89"])
    assert Path(facts["file"]).stat().st_size == facts["bytes"]
    assert tmp_path in Path(facts["file"]).parents
    again = engines("build", MODEL, "--precision", "fp16", "--for", "sm_89,sm_86", "--batch", "1..8")
    assert again.returncode == 0, again.stderr
    assert "was built before" in again.stdout
    (listed,) = json.loads(engines("list", "--json").stdout)
    assert listed["key"] == facts["key"]
    assert listed["proof"] == "graph"
    assert listed["stale"] == ""
    assert facts["key"][:8] in engines("list").stdout
    assert json.loads(engines("prune", "--json").stdout) == []
    (removed,) = json.loads(engines("prune", "--all", "--json").stdout)
    assert removed["key"] == facts["key"]
    assert json.loads(engines("list", "--json").stdout) == []


def test_verify_parity_says_the_numbers_by_its_status_too(engines) -> None:
    good = engines("verify-parity", MODEL, "--precision", "fp16", "--json")
    assert good.returncode == 0, good.stderr
    verdict = json.loads(good.stdout)
    assert verdict["passed"] is True
    assert {output["name"] for output in verdict["verdicts"][0]["outputs"]} == {"boxes", "logits"}
    bad = engines("verify-parity", "iris_landmark", "--precision", "int8")
    assert bad.returncode == 1
    assert "refused" in bad.stdout
    assert "landmark_px" in bad.stdout


def test_a_file_of_ones_own_on_crops_of_ones_own(engines, tmp_path: Path) -> None:
    crops = tmp_path / "crops"
    write_crops(crops)
    same = engines("verify-parity", MODEL, "--candidate", embedded_model(MODEL), "--crops", crops, "--json")
    assert same.returncode == 0, same.stderr
    assert json.loads(same.stdout)["passed"] is True
    other = engines("verify-parity", MODEL, "--candidate", embedded_model("iris_landmark"))
    assert other.returncode == 1
    assert "iris" in other.stderr


BAD = {
    "no such model": (["build", "nose"], "neither a file nor", 1),
    "text as a model": (["build", "{tmp}/text.onnx"], "text.onnx", 1),
    "unknown precision": (["build", MODEL, "--precision", "fp17"], "fp16", 2),
    "unknown runtime": (["build", MODEL, "--runtime", "ncnn"], "rtx", 2),
    "no compute capability": (["build", MODEL, "--for", "rtx4090"], "write sm_86", 1),
    "no batch": (["build", MODEL, "--batch", "many"], "1..8", 1),
    "effort": (["build", MODEL, "--effort", "9"], "0 (quick build)", 2),
    "few crops": (["build", MODEL, "--crops", "{tmp}"], "at least 32", 1),
    "crops that are not there": (["build", MODEL, "--crops", "{tmp}/nope"], "nope is not there; give a folder of 32 or more crops", 1),
    "a file for crops": (["build", MODEL, "--crops", "{tmp}/text.onnx"], "text.onnx is a file; give a folder", 1),
    "pixels": (["build", MODEL, "--pixels", "half"], "0.5,0.5", 2),
    "targets for tensorrt": (["build", MODEL, "--runtime", "tensorrt", "--for", "sm_89"], "leave it out", 2),
    "negative age": (["prune", "--older-than", "-3"], "0 or more", 2),
    "fp32 against itself": (["verify-parity", MODEL], "--precision fp16", 2),
    "engines of a strange runtime": (["verify-parity", MODEL, "--runtime", "ort"], "rtx", 2),
    "engines that are not built": (["verify-parity", MODEL, "--runtime", "rtx"], "ffrt engines build", 1),
    "a runtime that is not here": (
        ["verify-parity", MODEL, "--candidate", "{model}", "--runtime", "ort-directml"],
        "onnxruntime-directml",
        1,
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_sentence(case: str, engines, tmp_path: Path) -> None:
    arguments, words, status = BAD[case]
    (tmp_path / "text.onnx").write_text("this is text\n" * 40)
    given = [word.replace("{tmp}", str(tmp_path)).replace("{model}", str(embedded_model(MODEL))) for word in arguments]
    done = engines(*given)
    assert done.returncode == status, done.stderr
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5


@pytest.mark.parametrize("precision", ["int8", "fp8"])
def test_small_numbers_want_crops_of_ones_own(precision: str, engines) -> None:
    done = engines("build", MODEL, "--precision", precision, "--for", "sm_89")
    assert done.returncode == 2
    assert f"run `ffrt engines calibrate {MODEL}` first, or give --crops DIR. fp16 needs none" in " ".join(done.stderr.split())


@needs_rtx
@pytest.mark.parametrize("target", ["sm_89", "sm_120"])
@pytest.mark.parametrize("precision", ["int8", "fp8"])
def test_small_numbers_are_built_from_crops_that_were_recorded(precision: str, target: str, engines, tmp_path: Path) -> None:
    """Explicit Q/DQ: TensorRT for RTX builds it, and the engine is smaller than fp32's. The gate is asked on a network that bears it."""
    model = sturdy(tmp_path / "sturdy.onnx")
    write_crops(crops_folder("sturdy"))
    done = engines("build", model, "--precision", precision, "--for", target, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["facts"]["graph_parity"]["passed"] is True
    assert any(flag.startswith("crops=") and "portraits" not in flag for flag in facts["flags"])
    full = json.loads(engines("build", model, "--for", target, "--json").stdout)
    assert facts["bytes"] < 0.9 * full["bytes"]


@needs_rtx
def test_fp8_is_for_chips_that_have_it(engines) -> None:
    done = engines("build", MODEL, "--precision", "fp8", "--for", "sm_86,sm_89")
    assert done.returncode == 1
    assert "fp8 was asked for sm_86; chips have it from sm_89 on; choose --precision int8 or fp16" in " ".join(done.stderr.split())


def sturdy(path: Path) -> Path:
    """Convolutions wide enough for their weights to be most of the engine, which change the picture a little."""
    rng = np.random.default_rng(2)
    s = Sketch()
    x = "x"
    for depth_in, depth_out in ((3, 128), (128, 128), (128, 3)):
        x = s.op("Conv", x, s.const(rng.normal(0, (9 * depth_in) ** -0.5, (depth_out, depth_in, 3, 3))), pads=[1] * 4)
    return s.save(path, [("x", (1, 3, 64, 64))], [(s.add("x", s.mul(x, 0.1)), "y", (1, 3, 64, 64))])


def write_crops(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, crop in enumerate(portrait_crops()):
        cv2.imwrite(str(folder / f"{number}.png"), crop[..., ::-1])


@needs_rtx
def test_two_commands_at_once_build_once(here: Path) -> None:
    both = [start("engines", "build", MODEL, "--precision", "fp16", "--for", "sm_89", "--json") for _ in range(2)]
    said = [process.communicate(timeout=110) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    facts = [json.loads(out) for out, _ in said]
    assert sorted(fact["built"] for fact in facts) == [False, True]
    assert facts[0]["sha256"] == facts[1]["sha256"]


@needs_rtx
def test_a_cache_that_cannot_be_written_is_one_sentence(engines, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    done = engines("build", MODEL, "--for", "sm_89")
    assert done.returncode == 1
    assert "FFRT_CACHE" in done.stderr


@needs_rtx
def test_a_full_disk_is_told_with_what_to_do(engines, small_disk: Path, monkeypatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(small_disk))
    (small_disk / "filler").write_bytes(bytes(1_000_000))
    done = engines("build", MODEL, "--for", "sm_86")
    assert done.returncode == 1
    assert "has no space left; run `ffrt engines prune`, or set FFRT_CACHE" in done.stderr
    assert [path.suffix for path in (small_disk / "engines").iterdir()] in ([".lock"], [])

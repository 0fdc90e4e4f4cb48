"""Files that are no models, or not the one that was asked for, through the real command: one clear sentence, and a status that is not 0."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import HOPPER
from onnx import TensorProto
from standins.gfpgan import gfpgan
from standins.identity import arcface
from standins.shelf import write_swapper
from standins.swappers import Contract, swapper
from test_cli import ffrt as process

from app.cli import main
from app.models import Models
from engines.session import runtimes
from engines.store.shelf import Shelf


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _changed(path: Path, change: Callable[[onnx.ModelProto], None]) -> Path:
    model = onnx.load(swapper(path, Contract(128, emap=True)))
    change(model)
    return _write(path, model.SerializeToString())


def _cut(path: Path) -> Path:
    whole = swapper(path, Contract(128, emap=True)).read_bytes()
    return _write(path, whole[: len(whole) // 2])


def _huge(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=[2**20, 2**20], raw_data=bytes(16)))


def _outside(model: onnx.ModelProto) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../../etc/passwd")
    model.graph.initializer.append(tensor)


def _future(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 999


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


FILES: dict[str, tuple[str, Callable[[Path], Path], str]] = {
    "truncated": ("mine.onnx", _cut, "cut short"),
    "huge tensor": ("mine.onnx", lambda path: _changed(path, _huge), "made to do harm"),
    "weights outside": ("mine.onnx", lambda path: _changed(path, _outside), "outside its folder"),
    "opset of the future": ("mine.onnx", lambda path: _changed(path, _future), "opset 999"),
    "missing": ("mine.onnx", lambda path: path, "does not exist"),
    "folder": ("mine.onnx", _folder, "not a file"),
    "empty": ("mine.onnx", lambda path: _write(path, b""), "is empty"),
    "text": ("mine.onnx", lambda path: _write(path, b"this is text, and no model\n" * 9), "not an ONNX model"),
    "dfm that is text": ("mine.dfm", lambda path: _write(path, b"this is text, and no model\n" * 9), "not an ONNX model"),
    "dfm that is a zip": ("mine.dfm", lambda path: _write(path, b"PK\x03\x04" + bytes(99)), "zip archive"),
    "swapper that fits several": (
        "mine.onnx",
        lambda path: swapper(path, Contract(256)),
        "fits several families (ghost, hififace, simswap)",
    ),
}
"""What is wrong → file name, its writer, words of the sentence."""

OPTIONS = ("swapper", "detector", "landmarks", "identity", "enhancer", "mask")


class Ffrt:
    """The command in this process, with a folder of models of its own; an exception that would be a traceback fails the test."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capsys = capsys
        monkeypatch.setenv("FFRT_MODELS", str(folder))
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(logging.getLogger(), "handlers", [])

    def refused(self, *arguments: object, notes: int = 0) -> str:
        """The one sentence, after so many lines of what a person should know."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in arguments])
        out, errors = self._capsys.readouterr()
        assert ended.value.code in (1, 2), errors
        assert out == ""
        said = [line for line in errors.splitlines() if line][notes:]
        assert len(said) == 1, errors
        assert said[0].startswith("ffrt: ")
        return said[0]

    def live(self, *arguments: object) -> str:
        return self.refused("--headless", "--source", HOPPER, "--input", "synthetic:size=320x180,frames=3", "--null", *arguments)


@pytest.fixture
def ffrt(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ffrt:
    return Ffrt(tmp_path / "models", capsys, monkeypatch)


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_not_worn_and_not_imported(case: str, ffrt: Ffrt, tmp_path: Path) -> None:
    name, make, words = FILES[case]
    path = make(tmp_path / name)
    for said in (ffrt.live("--swapper", path), ffrt.refused("models", "import", path)):
        assert words in said
        assert str(path) in said
    assert Shelf(ffrt.folder).cards() == []


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("case", ["truncated", "missing", "text"])
def test_every_option_refuses_a_bad_file(case: str, option: str, ffrt: Ffrt, tmp_path: Path) -> None:
    name, make, words = FILES[case]
    """Also where nothing would have used it, as a landmark model beside the mesh swapper."""
    assert words in ffrt.live(f"--{option}", make(tmp_path / name))


@pytest.mark.parametrize("option", sorted({*OPTIONS} - {"enhancer"}))
def test_a_model_of_another_kind_is_refused(option: str, ffrt: Ffrt, tmp_path: Path) -> None:
    said = ffrt.live(f"--{option}", f"gfpgan:{gfpgan(tmp_path / 'gfpgan.onnx')}")
    assert f"gfpgan is of the kind enhancer (family gfpgan), and --{option} was asked for" in said


def test_the_family_that_is_named_must_fit(ffrt: Ffrt, tmp_path: Path) -> None:
    path = swapper(tmp_path / "mine.onnx", Contract(256))
    assert f"--swapper ghost:{path}" in ffrt.live("--swapper", path)
    assert "not of the family inswapper" in ffrt.live("--swapper", f"inswapper:{path}")
    assert "crossface_ghost" in ffrt.live("--swapper", f"ghost:{path}"), "it is taken, and asks for what it needs"


def test_what_stands_before_a_path(ffrt: Ffrt, tmp_path: Path) -> None:
    """A family; and that of a model that is here is known without."""
    path = swapper(tmp_path / "mine.onnx", Contract(128, emap=True))
    assert "'inswaper' is no family of a swapper; before a file's path stands one of " in ffrt.live("--swapper", f"inswaper:{path}")
    Models(Shelf(ffrt.folder)).import_file(path)
    for asked in ("inswapper:mine", "inswapper:"):
        assert "inswapper: goes before a file's path, as in inswapper:mine.onnx" in ffrt.live("--swapper", asked)
    assert "did you mean mine? here are: " in ffrt.live("--swapper", "MINE")


def test_half_precision_inswapper_is_refused_and_the_right_file_named(ffrt: Ffrt, tmp_path: Path) -> None:
    """A network whose arithmetic is fp16, as that of the published file is; the recogniser is not asked for first."""
    path = _half(tmp_path / "inswapper_128_fp16.onnx")
    assert "use inswapper_128.onnx" in ffrt.live("--swapper", path)
    Models(Shelf(ffrt.folder)).import_file(path)
    assert "use inswapper_128.onnx" in ffrt.live("--swapper", "inswapper_128_fp16")


MISSING = {
    "rtx": ("tensorrt-rtx", "cuda-python", "NVIDIA GPU"),
    "tensorrt": ("the package tensorrt ", "tensorrt is installed", "cuda-python", "NVIDIA GPU"),
    "ort-cuda": ("install onnxruntime-gpu",),
    "ort-directml": ("install onnxruntime-directml", "Windows and a DirectX 12 GPU"),
    "ort-coreml": ("macOS",),
    "ort-openvino": ("install onnxruntime-openvino",),
}
"""Runtime → what its sentence may name, whichever is missing first."""


def test_the_table_names_every_runtime_that_may_be_missing() -> None:
    assert {*MISSING, "ort"} == {name for name in runtimes if not name.startswith("kept")}


@pytest.mark.parametrize("wears", ["a model", "none"])
@pytest.mark.parametrize("runtime", MISSING)
def test_a_runtime_that_cannot_run_here_names_what_is_missing(runtime: str, wears: str, ffrt: Ffrt, tmp_path: Path) -> None:
    """And nothing takes its place, be it asked for a model or by itself."""
    if not runtimes[runtime].problem():
        pytest.skip(f"{runtime} runs here")
    path = swapper(tmp_path / "blendswap_256.onnx", Contract(256, source_side=112))
    said = ffrt.live("--runtime", runtime, *(["--swapper", path] if wears == "a model" else []))
    assert f"the runtime {runtime} was asked for: " in said
    assert any(words in said for words in MISSING[runtime])


def test_of_several_runtimes_each_says_what_it_misses(ffrt: Ffrt, tmp_path: Path) -> None:
    missing = [name for name in MISSING if runtimes[name].problem()]
    path = swapper(tmp_path / "blendswap_256.onnx", Contract(256, source_side=112))
    said = ffrt.live("--runtime", ",".join(missing), "--swapper", path)
    assert all(f"{name}: " in said for name in missing)


def _half(path: Path) -> Path:
    from standins.swappers import emap

    f16, f32 = TensorProto.FLOAT16, TensorProto.FLOAT
    make, array = onnx.helper, onnx.numpy_helper.from_array
    nodes = [
        make.make_node("Cast", ["target"], ["narrow"], to=f16),
        make.make_node("Mul", ["narrow", "half"], ["dark"]),
        make.make_node("Cast", ["dark"], ["wide"], to=f32),
        make.make_node("ReduceMean", ["source"], ["one"], keepdims=0),
        make.make_node("Add", ["wide", "one"], ["output"]),
    ]
    inputs = [make.make_tensor_value_info("target", f32, [1, 3, 128, 128]), make.make_tensor_value_info("source", f32, [1, 512])]
    outputs = [make.make_tensor_value_info("output", f32, [1, 3, 128, 128])]
    weights = [array(np.array(0.5, np.float16), "half"), array(emap().astype(np.float16), "emap")]
    graph = make.make_graph(nodes, "half", inputs, outputs, weights)
    return _write(path, make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8).SerializeToString())


def test_two_files_of_one_name(ffrt: Ffrt, tmp_path: Path) -> None:
    """Also of a model that another one needs: none of the two is picked."""
    models = Models(Shelf(ffrt.folder))
    hashes = [models.import_file(arcface(tmp_path / "arcface_w600k_r50.onnx", seed=seed))["sha256"][:8] for seed in (5, 6)]
    models.import_file(write_swapper(tmp_path, "inswapper_128"))
    for said in (
        ffrt.live("--swapper", "inswapper_128"),
        ffrt.live("--swapper", "inswapper_128", "--identity", "arcface_w600k_r50"),
        *(ffrt.refused("models", command, "arcface_w600k_r50") for command in ("show", "verify", "remove")),
    ):
        assert "the name of 2 different files" in said
        assert all(digits in said for digits in hashes)
    with pytest.raises(SystemExit) as ended:
        main(["--headless", "--input", "synthetic:size=320x180,frames=3", "--null", "--source", str(HOPPER), "--swapper", "inswapper_128",
              "--identity", hashes[0]])  # fmt: skip
    assert ended.value.code in (0, None), "the digits choose one"


@pytest.mark.parametrize("command", ["show", "pull", "verify", "remove"])
def test_a_name_that_nobody_knows(command: str, ffrt: Ffrt) -> None:
    assert "nobody" in ffrt.refused("models", command, "nobody")


def test_a_model_that_was_damaged_on_the_shelf(ffrt: Ffrt, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = Models(Shelf(ffrt.folder)).import_file(write_swapper(tmp_path, "person"))
    _write(Path(row["path"]), Path(row["path"]).read_bytes()[:-9])
    assert "was changed" in ffrt.live("--swapper", "person")
    with pytest.raises(SystemExit) as ended:
        main(["models", "verify"])
    assert ended.value.code == 1
    assert "was changed" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who is root may write everywhere")
def test_a_folder_that_may_not_be_written(ffrt: Ffrt, tmp_path: Path) -> None:
    ffrt.folder.mkdir(mode=0o555)
    assert "cannot write to" in ffrt.refused("models", "import", write_swapper(tmp_path, "person"))


def test_a_folder_that_is_a_file(ffrt: Ffrt, tmp_path: Path) -> None:
    _write(ffrt.folder, b"")
    assert "is a file; name a folder" in ffrt.refused("models", "import", write_swapper(tmp_path, "person"))


def test_a_disk_that_is_read_only(ffrt: Ffrt, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    monkeypatch.setenv("FFRT_MODELS", str(small_disk / "models"))
    said = ffrt.refused("models", "import", write_swapper(tmp_path, "person"))
    assert "cannot write to" in said
    assert "FFRT_MODELS" in said


def test_a_full_disk(ffrt: Ffrt, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(small_disk / "models"))
    said = ffrt.refused("models", "import", swapper(tmp_path / "mine.onnx", Contract(128, emap=True)))
    assert "MB are free; free some space" in said
    assert list((small_disk / "models").iterdir()) == []


def test_a_full_disk_for_the_cache_only_costs_time(
    ffrt: Ffrt, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(small_disk))
    _write(small_disk / "filler", bytes(900_000))
    Models(Shelf(ffrt.folder)).import_file(arcface(tmp_path / "arcface_w600k_r50.onnx"))
    with pytest.raises(SystemExit) as ended:
        main(["--headless", "--input", "synthetic:size=320x180,frames=3", "--null", "--source", str(HOPPER),
              "--swapper", str(write_swapper(tmp_path, "inswapper_128"))])  # fmt: skip
    assert ended.value.code in (0, None)
    assert "read anew at every start" in capsys.readouterr().err
    assert [path.name for path in (small_disk / "arrays").iterdir()] == []


def test_a_read_only_disk_for_the_cache_only_costs_time(
    ffrt: Ffrt, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    monkeypatch.setenv("FFRT_CACHE", str(small_disk / "cache"))
    Models(Shelf(ffrt.folder)).import_file(arcface(tmp_path / "arcface_w600k_r50.onnx"))
    with pytest.raises(SystemExit) as ended:
        main(["--headless", "--input", "synthetic:size=320x180,frames=3", "--null", "--source", str(HOPPER),
              "--swapper", str(write_swapper(tmp_path, "inswapper_128"))])  # fmt: skip
    assert ended.value.code in (0, None)
    assert "read anew at every start" in capsys.readouterr().err


def test_crops_that_cannot_be_kept_are_not_recorded(ffrt: Ffrt, small_disk: Path) -> None:
    """It is said before the camera is opened: this one is none."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    arguments = ("--input", "synthetic:size=1x1", "--out", small_disk / "mine" / "crops", "--yes")
    said = ffrt.refused("engines", "calibrate", "face_landmark", *arguments, notes=1)
    assert f"{small_disk} cannot be written to" in said


def test_a_model_that_is_not_of_the_kind_is_told_so_without_a_family(ffrt: Ffrt, tmp_path: Path) -> None:
    """Its graph fits three families of enhancers: which of them does not matter here."""
    for name in ("gfpgan", "mine"):
        said = ffrt.live("--detector", gfpgan(tmp_path / f"{name}.onnx"))
        assert f"{name} is of the kind enhancer" in said
        assert "--detector was asked for" in said


def test_a_file_named_like_its_family_is_imported_and_worn_without_a_word(
    ffrt: Ffrt, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = gfpgan(tmp_path / "GPEN-BFR-512.onnx")
    with pytest.raises(SystemExit) as ended:
        main(["models", "import", str(path), "--json"])
    assert ended.value.code in (0, None)
    out, errors = capsys.readouterr()
    assert (json.loads(out)["family"], json.loads(out)["told_by"]) == ("gpen", "name")
    assert f"ffrt models import {path} --family FAMILY" in errors.replace("\n", "")
    other = gfpgan(tmp_path / "mine.onnx")
    assert f"type `ffrt models import {other} --family gfpgan`, or gpen or restoreformer" in ffrt.refused("models", "import", other)
    assert f"write --enhancer gfpgan:{other}, or gpen or restoreformer" in ffrt.live("--enhancer", other)


def test_as_a_process_of_its_own(tmp_path: Path) -> None:
    """What a person sees."""
    path = _write(tmp_path / "mine.dfm", b"this is text, and no model\n" * 9)
    for arguments in (("--headless", "--null", "--swapper", path), ("models", "import", path)):
        done = process(*arguments, env={**os.environ, "FFRT_MODELS": str(tmp_path / "models")})
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"ffrt: {path} is ")
        assert "Traceback" not in done.stderr


def test_letters_that_the_terminal_lacks_are_written_otherwise(tmp_path: Path) -> None:
    """As on Windows, where a file or a pipe is given the letters of the country alone. JSON stays JSON."""
    path = swapper(tmp_path / "größe.onnx", Contract(128, emap=True))
    env = {**os.environ, "FFRT_MODELS": str(tmp_path / "models"), "PYTHONIOENCODING": "ascii"}
    done = process("models", "import", path, "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "größe"
    done = process("models", "show", "größe", env=env)
    assert done.returncode == 0, done.stderr
    assert "gr\\xf6\\xdfe" in done.stdout
    assert "Traceback" not in process("models", "show", "größer", env=env).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such file names")
def test_a_file_name_that_is_not_utf8_is_worn(ffrt: Ffrt, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xfc.dfm"))
    path.write_bytes(write_swapper(tmp_path, "person").read_bytes())
    with pytest.raises(SystemExit) as ended:
        main(["--headless", "--input", "synthetic:size=320x180,frames=3", "--null", "--swapper", str(path)])
    assert ended.value.code in (0, None)

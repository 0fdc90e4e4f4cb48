"""Engines really built by TensorRT for RTX, which takes no GPU. `make test-engines` adds the sweep: every chip, effort and precision."""

from __future__ import annotations

import os
from pathlib import Path

import engine_kit
import numpy as np
import onnx
import pytest
from engine_kit import BATCHES
from onnx import TensorProto, helper, numpy_helper
from standins import fan_68_5

from engines.build.builder import BuildRequest, build_engine, known_targets
from engines.build.cache import EngineCache
from engines.build.child import Progress
from engines.build.graph import load_checked, profiles
from engines.build.precision import convert
from engines.build.ranges import measure
from engines.build.service import DEFAULT_TARGETS, BuildOptions, build_engine_of, verify_engine
from engines.build.trial import missing_shapes
from engines.errors import BuildCancelled, BuildError, DeviceError, ModelError, ParityError
from engines.session import open_session
from engines.store import embedded_model, embedded_models
from engines.store.graph import read_graph
from engines.tensorrt import find_engine, gpu_target

trt = pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed: pip install 'ffrt[engines]'", exc_type=ImportError)

sweep = pytest.mark.skipif(os.environ.get("FFRT_SWEEP") != "1", reason="part of `make test-engines`")

HEADER_MIN = 10_000
"""Bytes: the smallest engine of an embedded model is a hundred times as large."""


def built(path: Path, precision: str, batch: str, targets: tuple[str, ...], effort: int | None = None) -> bytes:
    """In this process, without the gate: what is tried here is the builder."""
    model, graph = load_checked(path)
    ranges, shapes = {}, missing_shapes(path, graph, {})
    if precision in ("int8", "fp8"):
        rng = np.random.default_rng(1)
        shape = shapes.get("image") or (1, *(int(size) for size in graph.inputs[0].shape[1:]))
        ranges = measure(model, [{"image": rng.integers(0, 256, shape, np.uint8)}])
    taken = profiles(graph.inputs, BATCHES[batch], shapes)
    request = BuildRequest(path, Path(), "rtx", precision, targets, taken, optimization_level=effort)
    return build_engine(trt, convert(model, precision, ranges), request)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", sorted(embedded_models()))
def test_every_embedded_model_builds_for_four_generations(name: str, precision: str, batch: str) -> None:
    assert DEFAULT_TARGETS == ("sm_75", "sm_86", "sm_89", "sm_120")
    assert len(built(embedded_model(name), precision, batch, DEFAULT_TARGETS)) > HEADER_MIN


def test_fp16_engines_are_smaller() -> None:
    path = embedded_model("face_landmark")
    assert len(built(path, "fp16", "dynamic", ("sm_89",))) < 0.9 * len(built(path, "fp32", "dynamic", ("sm_89",)))


def built_stand_in(path: Path, precision: str, targets: tuple[str, ...], batch: str = "static") -> bytes:
    model, graph = load_checked(path)
    taken = engine_kit.profiles_of(graph, batch)
    if taken is None:
        assert batch == "dynamic", "a batch of one fits every file"
        with pytest.raises(ModelError, match=r"a batch up to 8 was asked for; this model takes .* and no other"):
            profiles(graph.inputs, BATCHES[batch], {})
        return b""
    return engine_kit.built(convert(model, precision, {}), path, precision, taken, targets)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", sorted(engine_kit.stand_ins()))
def test_every_family_builds_for_four_generations(name: str, precision: str, tmp_path: Path) -> None:
    path = engine_kit.stand_ins()[name](tmp_path)
    targets = DEFAULT_TARGETS if (name, precision) not in NOT_FOR_TURING else DEFAULT_TARGETS[1:]
    assert len(built_stand_in(path, precision, targets)) > HEADER_MIN


NOT_FOR_TURING = {("fan_68_5", "fp32")}
"""See the next test."""


@sweep
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("target", DEFAULT_TARGETS)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", sorted(engine_kit.stand_ins()))
def test_every_family_for_every_chip_alone(name: str, precision: str, target: str, batch: str, tmp_path: Path) -> None:
    """Where a file takes one picture alone, a batch is refused before anything is built."""
    path = engine_kit.stand_ins()[name](tmp_path)
    if target == "sm_75" and batch == "static" and (name, precision) in NOT_FOR_TURING:
        with pytest.raises(BuildError, match="leave sm_75 out"):
            built_stand_in(path, precision, (target,), batch)
        return
    built_stand_in(path, precision, (target,), batch)


def test_what_turing_cannot_do_is_said_with_the_mend(tmp_path: Path) -> None:
    """A product whose fixed weights stand on the left does not become a convolution."""
    path = fan_68_5.fan_68_5(tmp_path / "m.onnx")
    with pytest.raises(BuildError, match=r"use --precision fp16, or leave sm_75 out"):
        built_stand_in(path, "fp32", DEFAULT_TARGETS)
    assert built_stand_in(path, "fp32", ("sm_86", "sm_89", "sm_120"))
    assert built_stand_in(path, "fp16", DEFAULT_TARGETS)


@sweep
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
@pytest.mark.parametrize("target", known_targets(trt))
@pytest.mark.parametrize("name", sorted(embedded_models()))
def test_every_chip_alone(name: str, target: str, precision: str, batch: str) -> None:
    assert len(built(embedded_model(name), precision, batch, (target,))) > HEADER_MIN


@sweep
@pytest.mark.parametrize("effort", range(6))
def test_every_effort(effort: int) -> None:
    assert len(built(embedded_model("face_landmark"), "fp16", "dynamic", ("sm_89",), effort)) > HEADER_MIN


@sweep
@pytest.mark.parametrize("target", ["sm_89", "sm_120"])
@pytest.mark.parametrize("name", sorted(embedded_models()))
def test_fp8_where_the_chip_has_it(name: str, target: str) -> None:
    assert len(built(embedded_model(name), "fp8", "dynamic", (target,))) > HEADER_MIN


def test_no_target_is_a_portable_engine() -> None:
    assert len(built(embedded_model("face_detection_short_range"), "fp16", "static", ())) > HEADER_MIN


# --- the whole way: child, gate, cache


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "engines")


QUICK = BuildOptions(targets=("sm_89",))


def test_an_engine_is_built_once_and_found_by_what_went_in(cache: EngineCache, tmp_path: Path) -> None:
    heard: list[Progress] = []
    path = embedded_model("face_detection_short_range")
    options = BuildOptions(targets=("sm_89", "sm_86"), precision="fp16", batch=(1, 1, 4))
    entry, is_new = build_engine_of(path, options, cache, report=heard.append)
    assert is_new
    assert entry.facts["model"] == path.name
    assert entry.facts["graph_parity"]["passed"] is True
    assert entry.facts["graph_parity"]["crops"] >= 32
    assert entry.key.targets == ("sm_86", "sm_89")
    assert {progress.what for progress in heard} > {"reading the model", "measuring ranges", "comparing with fp32"}
    assert any(progress.total > 0 and progress.done > 0 for progress in heard)
    renamed = tmp_path / "another name.onnx"
    renamed.write_bytes(path.read_bytes())
    again, is_new = build_engine_of(renamed, options, cache)
    assert not is_new
    assert again == entry


def test_an_fp16_engine_is_not_taken_before_it_was_proven_on_a_gpu(cache: EngineCache, monkeypatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(cache.folder.parent))
    path, version = embedded_model("face_detection_short_range"), trt.__version__
    assert "run `ffrt engines build" in find_engine(path, "rtx", version, "sm_89")[1]
    half, _ = build_engine_of(path, BuildOptions(targets=("sm_89",), precision="fp16"), cache)
    assert "not proven yet; run `ffrt engines verify-parity" in find_engine(path, "rtx", version, "sm_89")[1]
    full, _ = build_engine_of(path, QUICK, cache)
    assert find_engine(path, "rtx", version, "sm_89")[0] == full
    cache.add_facts(half.key, {"parity": {"passed": True}})
    found = find_engine(path, "rtx", version, "sm_89")[0]
    assert found is not None
    assert found.key == half.key
    for other in (
        find_engine(path, "rtx", "0.1", "sm_89"),
        find_engine(path, "rtx", version, "sm_75"),
        find_engine(path, "tensorrt", version, "sm_89"),
    ):
        assert other[0] is None
    half.path.write_bytes(b"cut off")
    assert find_engine(path, "rtx", version, "sm_89")[0] == full
    cache.add_facts(full.key, {})
    build_engine_of(path, BuildOptions(targets=("sm_120",), precision="fp16"), cache)
    (entry,) = [entry for entry in cache.entries() if entry.key.targets == ("sm_120",)]
    cache.add_facts(entry.key, {"parity": {"passed": False}})
    assert "differs too much from fp32" in find_engine(path, "rtx", version, "sm_120")[1]


def test_the_gate_refuses_before_anything_is_built(cache: EngineCache) -> None:
    with pytest.raises(ParityError, match=r"iris_landmark\.onnx at int8 is refused after 32 crops: eye: landmark_px .*--precision fp16"):
        build_engine_of(embedded_model("iris_landmark"), BuildOptions(targets=("sm_89",), precision="int8"), cache)
    assert cache.entries() == []


def test_cancel_in_the_middle_leaves_nothing(cache: EngineCache) -> None:
    heard: list[Progress] = []
    with pytest.raises(BuildCancelled):
        build_engine_of(
            embedded_model("iris_landmark"),
            QUICK,
            cache,
            report=heard.append,
            cancelled=lambda: any(progress.total > 0 for progress in heard),  # the builder itself is at work
        )
    assert cache.entries() == []
    assert {path.suffix for path in cache.folder.iterdir()} <= {".lock"}


def test_a_build_without_memory_is_an_error_message(cache: EngineCache) -> None:
    with pytest.raises(BuildError, match="memory"):
        build_engine_of(
            embedded_model("iris_landmark"), BuildOptions(targets=DEFAULT_TARGETS, memory_bytes=150_000_000, precision="fp16"), cache
        )
    assert cache.entries() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (BuildOptions(precision="fp8"), "from sm_89 on"),
        (BuildOptions(targets=("sm_90",)), "does not build for sm_90; it knows sm_75"),
        (BuildOptions(shapes={"face": (1, 3)}), "inputs are image"),
    ],
    ids=["fp8", "chip", "shape"],
)
def test_options_that_do_not_fit_are_one_sentence(options: BuildOptions, words: str, cache: EngineCache) -> None:
    with pytest.raises(ModelError, match=words):
        build_engine_of(embedded_model("iris_landmark"), options, cache)


def model_file(path: Path, nodes, weights: dict[str, np.ndarray], outputs: dict[str, int], opset: int = 17) -> Path:
    ends = (
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
    )
    graph = helper.make_graph(nodes, "made", *ends, [numpy_helper.from_array(value, name) for name, value in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), path)
    return path


def test_what_the_runtime_cannot_build_is_told_in_its_words(cache: EngineCache, tmp_path: Path) -> None:
    """NonMaxSuppression is read and then refused: it has to stay outside of the graph."""
    weights = {"boxes": np.zeros((1, 9, 4), np.float32), "scores": np.zeros((1, 1, 9), np.float32), "most": np.int64([3])}
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], keepdims=0), helper.make_node("Add", ["scores", "m"], ["s"])]
    nodes += [helper.make_node("NonMaxSuppression", ["boxes", "s", "most"], ["y"])]
    path = model_file(tmp_path / "nms.onnx", nodes, weights, {"y": TensorProto.INT64})
    with pytest.raises(BuildError, match=r"rtx cannot (build|read) nms\.onnx: .{10}"):
        build_engine_of(path, QUICK, cache)


def test_an_operator_nobody_knows_is_told(cache: EngineCache, tmp_path: Path) -> None:
    path = model_file(tmp_path / "odd.onnx", [helper.make_node("Swap", ["x"], ["y"], domain="faces")], {}, {"y": TensorProto.FLOAT})
    with pytest.raises((BuildError, ModelError), match=r"odd\.onnx"):
        build_engine_of(path, QUICK, cache)


def test_a_file_that_is_cut_off_is_one_sentence(cache: EngineCache, tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(embedded_model("iris_landmark").read_bytes()[:100_000])
    with pytest.raises(ModelError, match=r"cut\.onnx"):
        build_engine_of(path, QUICK, cache)


def test_without_a_gpu_asking_for_the_runtime_names_what_is_missing() -> None:
    with pytest.raises(DeviceError, match=r"the runtime rtx was asked for: .*(cuda-python|GPU)"):
        open_session(embedded_model("iris_landmark"), runtime="rtx")


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(embedded_models()))
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_engines_compute_what_the_original_does(name: str, precision: str, cache: EngineCache, monkeypatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(cache.folder.parent))
    target = gpu_target()
    if target not in known_targets(trt):
        pytest.skip(f"TensorRT for RTX does not run on {target}")
    shapes = missing_shapes(embedded_model(name), read_graph(embedded_model(name)), {})
    options = BuildOptions(targets=(target,), precision=precision, batch=(1, 1, 8), shapes=shapes)
    entry, _ = build_engine_of(embedded_model(name), options, cache)
    _, verdict = verify_engine(embedded_model(name), entry, cache, options.trial)
    assert verdict.passed, verdict.sentence()
    session = open_session(embedded_model(name), runtime="rtx")
    session.warm_up()
    assert session.memory_bytes
    session.close()
    session.close()

"""The runtime on the processor keeps the contract of sessions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, save
from standins.sketch import Sketch

from engines.build.cache import EngineCache
from engines.errors import DeviceError, ModelError
from engines.ort import PROVIDERS, OrtSession
from engines.registry import Registry
from engines.session import AUTO_ORDER, Runtime, choose_runtime, open_session, runtimes


@pytest.fixture
def doubler(tmp_path):
    """A model of one step: twice = value + value, float32 [N, 3]."""
    value = helper.make_tensor_value_info("value", TensorProto.FLOAT, ["N", 3])
    twice = helper.make_tensor_value_info("twice", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph([helper.make_node("Add", ["value", "value"], ["twice"])], "doubler", [value], [twice])
    path = tmp_path / "doubler ü.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_runs_a_model_by_names(doubler):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(open_session(doubler).run({"value": value})["twice"], value * 2)


def test_says_what_goes_in_and_out_and_what_runs_it(doubler):
    session = open_session(doubler, threads=2)
    assert [(spec.name, spec.shape, spec.dtype) for spec in session.inputs] == [("value", ("N", 3), np.float32)]
    assert [spec.name for spec in session.outputs] == ["twice"]
    assert session.runtime == "ort:CPUExecutionProvider"


@pytest.mark.parametrize(
    ("feeds", "given"),
    [
        ({"value": np.zeros((1, 4), np.float32)}, r"value float32\[1, 4\]"),
        ({"value": np.zeros((1, 3), np.float64)}, r"value float64\[1, 3\]"),
        ({"other": np.zeros((1, 3), np.float32)}, r"other float32\[1, 3\]"),
        ({}, "nothing"),
    ],
    ids=["shape", "type", "name", "empty"],
)
def test_feeds_that_do_not_fit_are_told_what_does(doubler, feeds, given):
    with pytest.raises(ModelError, match=rf"was given {given}; it takes value float32"):
        open_session(doubler).run(feeds)


def test_says_how_much_memory_it_takes(tmp_path):
    """48 MB of weights: more than what may be free already."""
    s = Sketch()
    side = 3500
    path = s.save(tmp_path / "wide.onnx", [("x", (1, side))], [(s.op("MatMul", "x", s.const(np.ones((side, side)))), "y", (1, side))])
    session = OrtSession(path)
    assert session.memory_bytes >= 4 * side**2
    assert session.memory_bytes < 5 * 4 * side**2
    session.close()
    assert session.memory_bytes == 0


def test_closes_twice_and_runs_no_more(doubler):
    session = open_session(doubler)
    session.close()
    session.close()
    with pytest.raises(ModelError, match="closed"):
        session.run({"value": np.zeros((1, 3), np.float32)})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"absent\.onnx does not exist"):
        open_session(tmp_path / "absent.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256))], ids=["empty", "text", "bytes"])
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "odd.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"odd\.onnx cannot be opened as an ONNX model"):
        open_session(path)


def test_an_unknown_runtime_names_the_known_ones(doubler):
    with pytest.raises(ModelError, match=r"'abacus'.*ort"):
        open_session(doubler, runtime="abacus")
    assert "ort" in list(runtimes)


# --- providers, and which runtime is taken


@pytest.mark.parametrize("name", ["ort-cuda", "ort-directml", "ort-coreml", "ort-openvino"])
def test_a_provider_that_is_not_installed_names_its_package(doubler, name):
    provider = PROVIDERS[name]
    if provider.name in ort.get_available_providers():
        pytest.skip(f"{provider.name} is installed here")
    with pytest.raises(DeviceError, match=rf"the runtime {name} was asked for: .*install {provider.package}.*needs {provider.needs[:8]}"):
        open_session(doubler, runtime=name)


def test_a_fall_back_to_the_processor_is_an_error(doubler):
    """ONNX Runtime warns and goes on where a provider is not there; so does one whose libraries are missing."""
    with pytest.raises(
        DeviceError, match=r"asked for CUDAExecutionProvider and took CPUExecutionProvider; it comes with the package onnxruntime-gpu"
    ):
        OrtSession(doubler, provider="CUDAExecutionProvider")


def test_warm_up_runs_at_batch_one(doubler):
    session = open_session(doubler)
    session.warm_up()
    assert session.memory_bytes >= doubler.stat().st_size


def test_a_size_that_is_said_is_fixed_and_one_that_is_not_there_is_no_fault(doubler):
    name = next(size for size in open_session(doubler).inputs[0].shape if isinstance(size, str))
    session = open_session(doubler, sizes={name: 3, "nobody": 7})
    (spec,) = session.inputs
    assert spec.shape[0] == 3
    feed = np.ones((3, *map(int, spec.shape[1:])), spec.dtype)
    np.testing.assert_array_equal(*[each.run({spec.name: feed})[session.outputs[0].name] for each in (session, open_session(doubler))])


def test_a_model_in_memory_runs_too(doubler):
    session = OrtSession.from_bytes(doubler.read_bytes(), "doubler")
    np.testing.assert_array_equal(session.run({"value": np.ones((1, 3), np.float32)})["twice"], np.full((1, 3), 2))
    with pytest.raises(ModelError, match=r"odd cannot be opened"):
        OrtSession.from_bytes(b"odd", "odd")


@pytest.fixture
def three():
    """Runtimes a (lacks something), b and c."""
    known: Registry[Runtime] = Registry("runtime")
    for name, why in (("a", "no GPU"), ("b", ""), ("c", "")):
        known.register(name)(Runtime(lambda path, *, threads, sizes: None, lambda why=why: why))
    return known


def test_the_first_that_can_run_is_taken_and_the_others_are_told(three):
    choice = choose_runtime(("a", "x", "b", "c"), known=three)
    assert choice.runtime == "b"
    assert choice.rejected == (("a", "no GPU"), ("x", "this build of ffrt has no such runtime"))
    assert choice.describe() == "b; not a: no GPU; not x: this build of ffrt has no such runtime"


def test_what_does_not_fit_the_model_is_passed_over(three):
    choice = choose_runtime(("a", "b", "c"), lambda name: "no engine is built" if name == "b" else "", three)
    assert choice.runtime == "c"
    assert ("b", "no engine is built") in choice.rejected


def test_none_left_lists_every_reason(three):
    with pytest.raises(DeviceError, match=r"a: no GPU; b: not wanted; c: not wanted"):
        choose_runtime(("a", "b", "c"), lambda name: "not wanted", three)


def test_the_written_order_ends_with_what_runs_everywhere(monkeypatch):
    assert AUTO_ORDER[-1] == "ort"
    assert set(AUTO_ORDER) <= set(runtimes)
    monkeypatch.setattr("engines.tensorrt.find_gpus", lambda: (0, "none"))
    choice = choose_runtime(("rtx", "tensorrt", "ort"))
    assert choice.runtime == "ort"
    assert all(why for _, why in choice.rejected)


# --- the optimised graph of a large model


@pytest.fixture
def large(tmp_path, monkeypatch, doubler):
    """Any model counts as large; the cache is the test's own."""
    monkeypatch.setattr("engines.ort.CACHED_MIN", 1)
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    return doubler


ONES = {"value": np.ones((2, 3), np.float32)}


def test_a_large_model_is_optimised_once(large, monkeypatch):
    first = open_session(large).run(ONES)["twice"]
    (entry,) = EngineCache().entries()
    assert (entry.key.runtime, entry.key.runtime_version) == ("ort", ort.__version__)
    monkeypatch.setattr(EngineCache, "_build", lambda *given: pytest.fail("it was optimised before"))
    second = open_session(large)
    np.testing.assert_array_equal(second.run(ONES)["twice"], first)
    assert second.runtime == "ort:CPUExecutionProvider"
    assert [(spec.name, spec.shape) for spec in second.inputs] == [("value", ("N", 3))]


def test_the_second_start_reads_the_graph_that_was_kept(tmp_path, monkeypatch):
    """Seen by what it computes: the graph that is kept is exchanged for one of another result, and a fresh process gives that. 18 MB, so
    that nothing need be told which models are large."""
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    s = Sketch()
    side = 2100
    path = s.save(tmp_path / "large.onnx", [("x", (1, side))], [(s.op("MatMul", "x", s.const(np.eye(side))), "y", (1, side))])
    assert started_on(path, side) == side
    (entry,) = EngineCache().entries()

    def exchanged(out):
        other = Sketch()
        other.save(out, [("x", (1, side))], [(other.mul("x", 3.0), "y", (1, side))])
        return {"model": path.name}

    EngineCache().remove(entry.key.hex)
    EngineCache().get_or_build(entry.key, exchanged, now_s=lambda: 0.0)
    assert started_on(path, side) == 3 * side


def started_on(path, side):
    """The sum of what a process of its own computes of ones."""
    code = f"""
import sys
sys.path[:] = {sys.path!r}
import numpy as np
from pathlib import Path
from engines.session import open_session
print(int(open_session(Path({str(path)!r})).run({{"x": np.ones((1, {side}), np.float32)}})["y"].sum()))
"""
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_another_processor_or_version_optimises_anew(large, monkeypatch):
    open_session(large)
    monkeypatch.setattr("engines.ort._processor", lambda: "another")
    open_session(large)
    monkeypatch.setattr("engines.ort.ort.__version__", "9.9")
    open_session(large)
    assert len(EngineCache().entries()) == 3
    assert len(EngineCache().prune(now_s=0.0, versions={"ort": "9.9"})) == 2


def test_a_damaged_graph_is_optimised_anew(large):
    open_session(large)
    (entry,) = EngineCache().entries()
    entry.path.write_bytes(bytes(entry.nbytes))
    np.testing.assert_array_equal(open_session(large).run(ONES)["twice"], np.full((2, 3), 2))


def test_a_cache_that_cannot_be_used_costs_time_and_nothing_else(large, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "file"))
    np.testing.assert_array_equal(open_session(large).run(ONES)["twice"], np.full((2, 3), 2))
    assert "optimised anew at every start" in caplog.text
    assert "FFRT_CACHE" in caplog.text


def test_a_disk_that_is_full_is_not_the_model_s_fault(small_disk, monkeypatch, caplog, tmp_path):
    """2 MB on a disk of one: ONNX Runtime says that its own writing failed, and as if of the model."""
    s = Sketch()
    path = s.save(tmp_path / "wide.onnx", [("x", (1, 700))], [(s.op("MatMul", "x", s.const(np.eye(700))), "y", (1, 700))])
    monkeypatch.setattr("engines.ort.CACHED_MIN", 1)
    monkeypatch.setenv("FFRT_CACHE", str(small_disk))
    ones = np.ones((1, 700), np.float32)
    np.testing.assert_array_equal(open_session(path).run({"x": ones})["y"], ones)
    assert "has no space left; run `ffrt engines prune`, or set FFRT_CACHE" in caplog.text
    assert "fetch" not in caplog.text
    assert {file.suffix for file in small_disk.rglob("*") if file.is_file()} <= {".lock"}


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on file sizes there")
def test_a_limit_on_file_sizes_is_not_the_model_s_fault_either(large, tmp_path):
    """In a process of its own: the limit is the process's."""
    code = f"""
import resource, sys
sys.path[:] = {sys.path!r}
import numpy as np
import engines.ort
from pathlib import Path
engines.ort.CACHED_MIN = 1
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(engines.ort.OrtSession(Path({str(large)!r})).run({{"value": np.ones((2, 3), np.float32)}})["twice"].sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "12.0", done.stderr
    assert "FFRT_CACHE" in done.stderr
    assert "fetch" not in done.stderr
    assert EngineCache().entries() == []


def test_a_model_that_is_bad_is_the_model_s_fault(large):
    large.write_bytes(large.read_bytes()[:60])
    with pytest.raises(ModelError, match="fetch or convert it again"):
        open_session(large)
    assert EngineCache().entries() == []


def test_what_is_pruned_while_it_runs_goes_on_running(large):
    open_session(large).close()
    session = open_session(large)
    assert EngineCache().prune(now_s=0.0, max_bytes=0)
    np.testing.assert_array_equal(session.run(ONES)["twice"], np.full((2, 3), 2))
    open_session(large).close()
    assert len(EngineCache().entries()) == 1


def test_a_graph_that_cannot_be_opened_is_made_anew(large, caplog):
    """Whole by its hash, and no model: ONNX Runtime wrote it so."""
    open_session(large)
    (entry,) = EngineCache().entries()

    def nonsense(out):
        out.write_bytes(b"no graph")
        return {}

    EngineCache().remove(entry.key.hex)
    EngineCache().get_or_build(entry.key, nonsense, now_s=lambda: 0.0)
    np.testing.assert_array_equal(open_session(large).run(ONES)["twice"], np.full((2, 3), 2))
    assert "made anew at the next start" in caplog.text
    open_session(large)
    (entry,) = EngineCache().entries()
    assert entry.path.read_bytes() != b"no graph"


def test_a_small_model_is_not_kept(doubler, tmp_path, monkeypatch):
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    open_session(doubler)
    assert not (tmp_path / "cache").exists()

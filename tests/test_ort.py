"""The runtime on the processor keeps the contract of sessions."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from engines.errors import ModelError
from engines.session import open_session, runtimes


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

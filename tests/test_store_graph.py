"""Reading model files that strangers made: what they say, and all the ways in which they lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from store_files import OPSET, model_bytes, model_proto, write

from engines.errors import ModelError
from engines.session import TensorSpec
from engines.store import embedded_models
from engines.store.graph import inspect, read_graph

MANY = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALID = model_bytes()


def test_a_graph_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    model = model_proto()
    model.graph.input.append(helper.make_tensor_value_info("emap", TensorProto.FLOAT, [4, 4]))  # old exporters list weights as inputs
    graph = read_graph(write(tmp_path / "a.onnx", model))
    f32 = np.dtype(np.float32)
    assert graph.inputs == (TensorSpec("target", ("batch", 3, 8, 8), f32), TensorSpec("source", (1, 4), f32))
    assert graph.outputs == (TensorSpec("output", ("batch", 3, 8, 8), f32),)
    assert graph.last_initializer == TensorSpec("emap", (4, 4), f32)
    assert graph.opset == OPSET
    assert graph.describe() == "target float32[batch, 3, 8, 8], source float32[1, 4] → output float32[batch, 3, 8, 8]"


def test_sizes_that_exporters_leave_open_may_vary(tmp_path: Path) -> None:
    model = model_proto()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 0
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -1
    assert read_graph(write(tmp_path / "a.onnx", model)).inputs[0].shape == ("?", 3, "?", 8)


def test_a_dfm_file_is_read_likewise(tmp_path: Path) -> None:
    assert read_graph(write(tmp_path / "somebody.dfm", model_proto())).inputs[0].name == "target"


@pytest.mark.parametrize("model", embedded_models().values(), ids=lambda model: model.name)
def test_embedded_models_can_be_read(model) -> None:
    found = inspect(model.path)
    assert found.graph.inputs[0].dtype == np.uint8
    assert found.external == ()


def test_a_real_runtime_agrees(tmp_path: Path) -> None:
    from engines.session import open_session

    path = write(tmp_path / "a.onnx", model_proto())
    session = open_session(path)
    graph = read_graph(path)
    assert (session.inputs, session.outputs) == (graph.inputs, graph.outputs)


NOT_MODELS = {
    "empty": (b"", "is empty"),
    "text": (b"this is text, and no model\n" * 9, "not an ONNX model"),
    "page": (b"<!DOCTYPE html><p>hello", "web page"),
    "zip": (b"PK\x03\x04" + bytes(99), "PyTorch"),
    "pickle": (b"\x80\x02}q\x00.", "pickled"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "zeros": (bytes(1000), "not an ONNX model|no ONNX model"),
    "other message": (onnx.helper.make_tensor("a", TensorProto.FLOAT, [1], [1.0]).SerializeToString(), "ONNX model"),
    "no graph": (onnx.ModelProto(ir_version=9).SerializeToString(), "no graph"),
}


@pytest.mark.parametrize("case", NOT_MODELS)
def test_what_is_no_model_is_said(tmp_path: Path, case: str) -> None:
    data, words = NOT_MODELS[case]
    (tmp_path / "a.onnx").write_bytes(data)
    with pytest.raises(ModelError, match=words):
        read_graph(tmp_path / "a.onnx")


def test_a_file_cut_short_is_told_from_one_that_never_was_a_model(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(VALID[:-40])
    with pytest.raises(ModelError, match="cut short"):
        read_graph(tmp_path / "a.onnx")


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        read_graph(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match="not a file"):
        read_graph(tmp_path)


def test_a_file_too_large_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.onnx").open("wb") as file:
        os.truncate(file.fileno(), 3 * 10**9)  # no bytes are written
    with pytest.raises(ModelError, match=r"3\.0 GB"):
        read_graph(tmp_path / "a.onnx")


def test_an_opset_from_the_future(tmp_path: Path) -> None:
    model = model_proto()
    model.opset_import[0].version = 999
    with pytest.raises(ModelError, match=r"opset 999; .* up to \d+: update ffrt"):
        read_graph(write(tmp_path / "a.onnx", model))


def test_a_format_from_the_future(tmp_path: Path) -> None:
    model = model_proto()
    model.ir_version = 999
    with pytest.raises(ModelError, match="format 999"):
        read_graph(write(tmp_path / "a.onnx", model))


def _unknown_operator(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "Frobnicate"


def _unknown_domain(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "somebody.else"


def _nothing_gives_it(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "ghost"


def _no_such_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "ghost"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_unknown_operator, "uses the operator 'Frobnicate', which no runtime has"),
        (_unknown_domain, "uses the operator 'ReduceMean' of somebody.else, which no runtime has"),
        (_nothing_gives_it, "an operator takes 'ghost', which nothing gives"),
        (_no_such_output, "nothing gives its output 'ghost'"),
    ],
)
def test_a_graph_that_no_runtime_could_run(tmp_path: Path, change: Callable[[onnx.ModelProto], None], said: str) -> None:
    model = model_proto()
    change(model)
    with pytest.raises(ModelError, match=said):
        read_graph(write(tmp_path / "a.onnx", model))


def test_operators_of_the_runtime_and_of_the_file_itself(tmp_path: Path) -> None:
    model = model_proto()
    model.graph.node[0].domain = "com.microsoft"
    read_graph(write(tmp_path / "a.onnx", model))
    inner = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.append(helper.make_function("own", "Mine", ["a"], ["b"], inner, [helper.make_opsetid("", OPSET)]))
    model.graph.node.append(helper.make_node("Mine", ["target"], ["more"], domain="own"))
    read_graph(write(tmp_path / "a.onnx", model))


def test_no_opset_at_all(tmp_path: Path) -> None:
    model = model_proto()
    del model.opset_import[:]
    with pytest.raises(ModelError, match="no opset"):
        read_graph(write(tmp_path / "a.onnx", model))


@pytest.mark.parametrize("dims", [[2**40], [2**20, 2**20], [2**62, 2**62], [-1], [4, 5]])
@pytest.mark.parametrize("where", ["weight", "constant", "inner graph", "function", "sparse"])
def test_a_tensor_larger_than_its_file(tmp_path: Path, dims: list[int], where: str) -> None:
    model = model_proto()
    tensor = TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * 16)
    node = helper.make_node("Constant", [], ["c"], value=tensor)
    if where == "weight":
        model.graph.initializer.append(tensor)
    elif where == "constant":
        model.graph.node.append(node)
    elif where == "inner graph":
        model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=helper.make_graph([node], "g", [], [])))
    elif where == "function":
        model.functions.append(helper.make_function("d", "f", [], ["c"], [node], [helper.make_opsetid("", OPSET)]))
    else:
        model.graph.sparse_initializer.append(onnx.SparseTensorProto(values=tensor, dims=[4]))
    with pytest.raises(ModelError, match=r"made to do harm|dimension of -1"):
        read_graph(write(tmp_path / "a.onnx", model))


@pytest.mark.parametrize(
    "dtype", [TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.BOOL, TensorProto.STRING]
)
@pytest.mark.parametrize("raw", [True, False])
def test_honest_tensors_are_taken(tmp_path: Path, dtype: int, raw: bool) -> None:
    model = model_proto()
    values = [b"a"] * 64 if dtype == TensorProto.STRING else np.zeros(64, onnx.helper.tensor_dtype_to_np_dtype(dtype))
    if raw and dtype != TensorProto.STRING:
        model.graph.initializer.append(helper.make_tensor("w", dtype, [64], values.tobytes(), raw=True))  # type: ignore[union-attr]
    else:
        model.graph.initializer.append(helper.make_tensor("w", dtype, [64], values))
    assert read_graph(write(tmp_path / "a.onnx", model)).last_initializer is not None


def test_a_huge_input(tmp_path: Path) -> None:
    model = model_proto()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 2**40
    with pytest.raises(ModelError, match=r"declares 'target' .* GB"):
        read_graph(write(tmp_path / "a.onnx", model))


def external_model(location: str, offset: int = 0, length: int = 16) -> onnx.ModelProto:
    model = model_proto()
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    return model


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../secret", "sub/../../secret", "C:\\secret", "\\\\server\\share", "", "a\0b", "link"]
)
def test_weights_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    folder = tmp_path / "models"
    (folder / "sub").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ModelError, match="beside it"):
        read_graph(write(folder / "a.onnx", external_model(location)))


def test_weights_beside_the_model_are_named_and_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx", external_model("a.data"))
    with pytest.raises(ModelError, match=r"'a\.data', which is not beside it"):
        read_graph(path)
    (tmp_path / "a.data").write_bytes(bytes(16))
    assert inspect(path).external == ("a.data",)
    write(path, external_model("a.data", offset=4))
    with pytest.raises(ModelError, match="more of 'w'"):
        read_graph(path)


def test_weights_whose_place_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "a.data").write_bytes(bytes(16))
    model = external_model("a.data")
    model.graph.initializer[-1].external_data[1].value = "seven"
    with pytest.raises(ModelError, match="damaged"):
        read_graph(write(tmp_path / "a.onnx", model))


@MANY
@given(st.binary(max_size=400))
def test_random_bytes_are_no_model(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.onnx").write_bytes(data)
    with pytest.raises(ModelError):
        read_graph(tmp_path / "a.onnx")


@MANY
@given(st.integers(0, len(VALID) - 1))
def test_a_truncated_model_is_refused(tmp_path: Path, length: int) -> None:
    (tmp_path / "a.onnx").write_bytes(VALID[:length])
    with pytest.raises(ModelError):
        read_graph(tmp_path / "a.onnx")


@MANY
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_mutated_model_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(VALID)
    for at, value in changes:
        data[at] = value
    (tmp_path / "a.onnx").write_bytes(data)
    try:
        read_graph(tmp_path / "a.onnx").describe()
    except ModelError as error:
        assert "a.onnx" in str(error)  # noqa: PT017 - most mutations are refused, some are harmless


@MANY
@given(st.integers(0, len(VALID)), st.integers(0, len(VALID)), st.binary(max_size=30))
def test_a_model_with_a_piece_replaced_is_read_or_refused(tmp_path: Path, start: int, end: int, piece: bytes) -> None:
    (tmp_path / "a.onnx").write_bytes(VALID[: min(start, end)] + piece + VALID[max(start, end) :])
    try:
        read_graph(tmp_path / "a.onnx")
    except ModelError as error:
        assert "a.onnx" in str(error)  # noqa: PT017

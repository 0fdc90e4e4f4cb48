"""fp16, int8 and fp8 graphs: right numbers, fp32 where fp16 overflows, and a clear refusal where nothing can be done."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.build.graph import load_model, parse_batch, parse_shape, profiles
from engines.build.precision import check_targets, convert, rounded, tensor_names
from engines.build.ranges import measure
from engines.build.turing import without_full_products
from engines.errors import ModelError
from engines.ort import OrtSession
from engines.session import TensorSpec
from engines.store import embedded_model, embedded_models

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def model_of(nodes, weights: dict[str, np.ndarray], shape=("N", 3, 8, 8), opset: int = 17) -> onnx.ModelProto:
    """x → y, float32 both."""
    ends = [helper.make_tensor_value_info("x", FLOAT, shape)], [helper.make_tensor_value_info("y", FLOAT, None)]
    graph = helper.make_graph(nodes, "made", *ends, [numpy_helper.from_array(value, name) for name, value in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    return OrtSession.from_bytes(model.SerializeToString(), "made").run({"x": x})["y"]


def types_of(model: onnx.ModelProto) -> dict[str, int]:
    """Output of each node → its element type."""
    inferred = onnx.shape_inference.infer_shapes(model)
    values = [*inferred.graph.value_info, *inferred.graph.output]
    return {value.name: value.type.tensor_type.elem_type for value in values}


def type_after(model: onnx.ModelProto, op: str) -> int:
    (node,) = [node for node in model.graph.node if node.op_type == op]
    return types_of(model)[node.output[0]]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def conv(rng: np.random.Generator, scale: float = 0.2, name: str = "w", channels: int = 4) -> dict[str, np.ndarray]:
    return {name: (rng.standard_normal((channels, 3, 3, 3)) * scale).astype(np.float32)}


def test_inputs_and_outputs_keep_their_types(rng) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"])]
    model = model_of(nodes, conv(rng))
    half = convert(model, "fp16", {})
    assert half.graph.input[0].type.tensor_type.elem_type == FLOAT
    assert half.graph.output[0].type.tensor_type.elem_type == FLOAT
    assert {tensor.data_type for tensor in half.graph.initializer} == {HALF}
    assert type_after(half, "Conv") == HALF
    x = rng.standard_normal((2, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(run(half, x), run(model, x), atol=0.02)
    assert convert(model, "fp32", {}) is model


@pytest.mark.parametrize("op", ["Exp", "Sqrt", "Softmax", "ReduceMean"])
def test_operators_that_overflow_stay_fp32(op: str, rng) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Abs", ["c"], ["a"])]
    nodes += [helper.make_node(op, ["a"], ["r"]), helper.make_node("Mul", ["r", "k"], ["y"])]
    half = convert(model_of(nodes, conv(rng) | {"k": np.float32([0.5])}), "fp16", {})
    assert type_after(half, "Conv") == HALF
    assert type_after(half, op) == FLOAT
    assert np.isfinite(run(half, rng.standard_normal((1, 3, 8, 8)).astype(np.float32))).all()


def test_a_tensor_seen_too_large_stays_fp32(rng) -> None:
    """x · 1000 · 1000 is 10^6: fp16 ends at 65504. Only the ranges tell."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["a"]), helper.make_node("Mul", ["a", "k"], ["b"])]
    nodes += [helper.make_node("Mul", ["b", "small"], ["c"]), helper.make_node("Add", ["c", "c"], ["y"])]
    model = model_of(nodes, {"k": np.float32([1000]), "small": np.float32([1e-6])})
    x = rng.uniform(0.5, 1, (1, 3, 8, 8)).astype(np.float32)
    assert not np.isfinite(run(rounded(convert(model, "fp16", {})), x)).all()
    half = convert(model, "fp16", measure(model, [{"x": x}]))
    np.testing.assert_allclose(run(rounded(half), x), run(model, x), rtol=2e-3)
    assert type_after(half, "Add") == HALF


def test_a_weight_that_fp16_cannot_hold_stays_fp32(rng) -> None:
    nodes = [helper.make_node("Clip", ["x", "", "top"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    model = model_of(nodes, {"top": np.float32(3.4e38)})
    half = convert(model, "fp16", {})
    assert type_after(half, "Clip") == FLOAT
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(run(half, x), run(model, x), atol=1e-2)


def test_rounding_is_that_of_fp16(rng) -> None:
    nodes = [helper.make_node("Mul", ["x", "k"], ["a"]), helper.make_node("Add", ["a", "k"], ["y"])]
    k = np.float32([0.3])
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    wanted = (x.astype(np.float16) * k.astype(np.float16) + k.astype(np.float16)).astype(np.float32)
    np.testing.assert_array_equal(run(rounded(convert(model_of(nodes, {"k": k}), "fp16", {})), x), wanted)


def test_constants_casts_resizes_and_shared_weights(rng) -> None:
    scales = helper.make_node("Constant", [], ["scales"], value=numpy_helper.from_array(np.float32([1, 1, 2, 2])))
    nodes = [
        scales,
        helper.make_node("Cast", ["wh"], ["w"], to=FLOAT),
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Resize", ["c", "", "scales"], ["r"], mode="linear"),
        helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0),
        helper.make_node("Add", ["r", "s"], ["y"]),
    ]
    model = model_of(nodes, {"wh": conv(rng)["w"].astype(np.float16)})
    half = convert(model, "fp16", {})
    assert type_after(half, "Resize") == HALF
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(run(half, x), run(model, x), atol=0.03)


def test_a_graph_whose_output_is_used_inside_too(rng) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["y"], ["z"])]
    model = model_of(nodes, {})
    model.graph.output.append(helper.make_tensor_value_info("z", FLOAT, None))
    half = convert(model, "fp16", {})
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    found = OrtSession.from_bytes(half.SerializeToString(), "made").run({"x": x})
    np.testing.assert_allclose(found["z"], -found["y"], atol=1e-3)


def test_what_a_branch_uses_stays_as_it_is(rng) -> None:
    branch = [
        helper.make_graph([helper.make_node(op, ["a"], [f"{op}_out"])], op, [], [helper.make_tensor_value_info(f"{op}_out", FLOAT, None)])
        for op in ("Neg", "Abs")
    ]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0)]
    nodes += [helper.make_node("Greater", ["m", "zero"], ["yes"])]
    nodes += [helper.make_node("If", ["yes"], ["f"], then_branch=branch[0], else_branch=branch[1]), helper.make_node("Relu", ["f"], ["y"])]
    model = model_of(nodes, {"zero": np.float32(0)})
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(run(convert(model, "fp16", {}), x), run(model, x), atol=1e-2)


@pytest.mark.parametrize("precision", ["int8", "fp8"])
@pytest.mark.parametrize("opset", [11, 17])
def test_quantized_graphs_compute_nearly_the_same(precision: str, opset: int, rng) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"])]
    model = model_of(nodes, conv(rng), opset=opset)
    x = rng.uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32)
    small = convert(model, precision, measure(model, [{"x": x}]))
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in small.graph.node}
    wanted, got = run(model, x), run(small, x)
    assert 0 < np.abs(wanted - got).max() < 0.06 * np.abs(wanted).max()


def test_a_model_without_products_cannot_be_quantized() -> None:
    with pytest.raises(ModelError, match=r"nothing in this model.*use fp16"):
        convert(model_of([helper.make_node("Relu", ["x"], ["y"])], {}), "int8", {"x": 1.0})


@pytest.mark.parametrize(("targets", "fine"), [(("sm_89",), True), (("sm_89", "sm_120"), True), (("sm_86", "sm_89"), False), ((), False)])
def test_fp8_is_refused_unless_every_chip_has_it(targets: tuple[str, ...], fine: bool) -> None:
    check_targets("fp16", targets)
    if fine:
        check_targets("fp8", targets)
        return
    with pytest.raises(ModelError, match=r"from sm_89 on; choose --precision int8 or fp16"):
        check_targets("fp8", targets)


@pytest.mark.parametrize("name", sorted(embedded_models()))
def test_embedded_models_are_nearly_all_fp16(name: str) -> None:
    model = load_model(embedded_model(name))
    half = convert(model, "fp16", {})
    types = types_of(half)
    heavy = [types[node.output[0]] for node in half.graph.node if node.op_type == "Conv"]
    assert set(heavy) == {HALF}
    assert set(tensor_names(half)) < set(tensor_names(model)) | set(types)


def test_a_reference_that_overflows_by_itself_is_refused() -> None:
    model = model_of([helper.make_node("Exp", ["x"], ["y"])], {})
    with pytest.raises(ModelError, match="itself computes NaN or infinity"):
        measure(model, [{"x": np.full((1, 3, 8, 8), 1000, np.float32)}])


# --- products of matrices as convolutions, for Turing


@pytest.mark.parametrize("shape", [("N", 6), (2, 5, 6), ("N", 5, 4, 6)], ids=str)
@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Gemm turned", "Gemm alone"])
def test_products_become_convolutions_with_the_same_result(kind: str, shape: tuple, rng) -> None:
    if kind != "MatMul" and len(shape) > 2:
        pytest.skip("Gemm takes two dimensions")
    w = rng.standard_normal((6, 7)).astype(np.float32)
    weights = {"w": w.T.copy() if kind == "Gemm turned" else w, "c": rng.standard_normal(7).astype(np.float32)}
    inputs = ["x", "w"] if kind in ("MatMul", "Gemm alone") else ["x", "w", "c"]
    turned = {"transB": 1} if kind == "Gemm turned" else {}
    model = model_of([helper.make_node(kind.split()[0], inputs, ["p"], **turned), helper.make_node("Relu", ["p"], ["y"])], weights, shape)
    changed = without_full_products(model)
    assert not {"MatMul", "Gemm"} & {node.op_type for node in changed.graph.node}
    x = rng.standard_normal([3 if isinstance(size, str) else size for size in shape]).astype(np.float32)
    np.testing.assert_allclose(run(changed, x), run(model, x), atol=1e-5)


def test_products_of_computed_matrices_and_of_fp16_stay(rng) -> None:
    model = model_of([helper.make_node("MatMul", ["x", "x"], ["y"])], {})
    assert [node.op_type for node in without_full_products(model).graph.node] == ["MatMul"]
    half = convert(model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": np.ones((8, 8), np.float32)}), "fp16", {})
    assert "MatMul" in [node.op_type for node in without_full_products(half).graph.node]


# --- what is read from files


def test_bad_files_are_one_sentence(tmp_path) -> None:
    whole = embedded_model("iris_landmark").read_bytes()
    for content in (b"", b"text\n" * 9, whole[: len(whole) // 2], bytes(range(256))):
        path = tmp_path / "odd.onnx"
        path.write_bytes(content)
        with pytest.raises(ModelError, match=r"odd\.onnx"):
            load_model(path)
    with pytest.raises(ModelError, match="does not exist"):
        load_model(tmp_path / "none.onnx")


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "", "missing.bin"])
def test_weights_outside_the_folder_are_not_read(location: str, tmp_path, rng) -> None:
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], conv(rng))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    (tmp_path / "secret.bin").write_bytes(bytes(4096))
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"beside"):
        load_model(path)


def test_weights_beside_the_file_are_read(tmp_path, rng) -> None:
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], conv(rng))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    loaded = load_model(tmp_path / "m.onnx")
    np.testing.assert_array_equal(numpy_helper.to_array(loaded.graph.initializer[0]), conv(np.random.default_rng(3))["w"])


def inputs_of(*shape: int | str) -> tuple[TensorSpec, ...]:
    return (TensorSpec("x", shape, np.dtype(np.float32)),)


def test_profiles() -> None:
    inputs = inputs_of("N", 3, 8, 8)
    (profile,) = profiles(inputs, parse_batch("1..4..8"), {})
    assert (profile.low, profile.best, profile.high) == ((1, 3, 8, 8), (4, 3, 8, 8), (8, 3, 8, 8))
    assert profile.takes((5, 3, 8, 8))
    assert not profile.takes((9, 3, 8, 8))
    (profile,) = profiles(inputs, parse_batch("2"), {})
    assert profile.is_static
    free = inputs_of("N", 3, "H", "W")
    with pytest.raises(ModelError, match="--shape x=1x3x640x640"):
        profiles(free, (1, 1, 1), {})
    (profile,) = profiles(free, (1, 1, 2), dict([parse_shape("x=1x3x64x32")]))
    assert profile.high == (2, 3, 64, 32)
    fixed = inputs_of(1, 3, 8, 8)
    assert profiles(fixed, (1, 1, 1), {})[0].is_static
    with pytest.raises(ModelError, match="leave the batch out"):
        profiles(fixed, (1, 1, 8), {})
    with pytest.raises(ModelError, match="inputs are x"):
        profiles(fixed, (1, 1, 1), {"z": (1,)})
    with pytest.raises(ModelError, match="it takes"):
        profiles(fixed, (1, 1, 1), {"x": (1, 3, 9, 8)})


@pytest.mark.parametrize("text", ["", "0", "8..1", "1..2..3..4", "many", "1..0"])
def test_a_batch_that_means_nothing_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ModelError, match=r"1\.\.8"):
        parse_batch(text)


@pytest.mark.parametrize("text", ["x", "x=", "x=1x0", "x=axb", "=3x"])
def test_a_shape_that_means_nothing_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ModelError, match="NAME=1x3x640x640"):
        parse_shape(text)

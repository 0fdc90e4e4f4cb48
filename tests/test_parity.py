"""The gate lets nothing through that differs from fp32, and says by how much."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from engines.build.crops import CROPS_MIN, Framing, Pixels, feeds_of, portrait_crops, read_crops
from engines.build.parity import compare, computes_in_half, guess_check, refuse_half_swapper
from engines.errors import ModelError, ParityError
from engines.measure import Check, Measure
from engines.session import TensorSpec, open_session
from engines.store import embedded_model
from engines.store.graph import read_graph

IMAGE = TensorSpec("image", ("N", 3, 64, 64), np.dtype(np.float32))


class Made:
    """A session that computes ``outputs`` from its one input and then spoils it."""

    runtime = "made"
    memory_bytes = None

    def __init__(self, output: TensorSpec, function, spoil=lambda value: value) -> None:
        self.inputs, self.outputs = (IMAGE,), (output,)
        self._function, self._spoil = function, spoil

    def run(self, feeds):
        return {self.outputs[0].name: self._spoil(self._function(feeds["image"]))}

    def warm_up(self) -> None: ...

    def close(self) -> None: ...


FACE = TensorSpec("face", ("N", 3, 64, 64), np.dtype(np.float32))
EMBEDDING = TensorSpec("embedding", ("N", 512), np.dtype(np.float32))
POINTS = TensorSpec("points", ("N", 68, 2), np.dtype(np.float32))


def flipped(image: np.ndarray) -> np.ndarray:
    return image[..., ::-1].copy()


def embedded(image: np.ndarray) -> np.ndarray:
    return image.reshape(len(image), -1)[:, :512] - 0.5


def located(image: np.ndarray) -> np.ndarray:
    return image.reshape(len(image), -1)[:, :136].reshape(-1, 68, 2) * 64


@pytest.fixture(scope="module")
def crops() -> np.ndarray:
    return portrait_crops()


@pytest.fixture(scope="module")
def feeds(crops: np.ndarray) -> list[dict[str, np.ndarray]]:
    return feeds_of((IMAGE,), crops)


def noise(sigma: float):
    rng = np.random.default_rng(5)
    return lambda value: value + rng.normal(0, sigma, value.shape).astype(np.float32)


def verdict(output: TensorSpec, function, spoil, feeds):
    return compare(Made(output, function), Made(output, function, spoil), feeds)


@pytest.mark.parametrize(
    ("output", "function"), [(FACE, flipped), (EMBEDDING, embedded), (POINTS, located)], ids=lambda x: getattr(x, "name", "")
)
def test_the_same_passes_and_is_json(output, function, feeds) -> None:
    same = verdict(output, function, lambda value: value, feeds)
    assert same.passed
    assert same.crops == CROPS_MIN
    same.require("m", "fp16")
    json.dumps(same.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("output", "function", "fine", "bad", "measure"),
    [
        (FACE, flipped, noise(0.01), noise(0.03), "psnr_db"),  # 40 and 30 dB of a span of 1
        (EMBEDDING, embedded, noise(0.002), noise(0.05), "cosine"),
        (POINTS, located, lambda p: p + np.float32(0.1), lambda p: p + np.float32(0.2), "landmark_px"),  # 0.42 and 0.85 at 192
    ],
    ids=["image", "embedding", "landmarks"],
)
def test_noise_is_judged_by_what_the_output_is(output, function, fine, bad, measure: str, feeds) -> None:
    assert verdict(output, function, fine, feeds).passed
    refused = verdict(output, function, bad, feeds)
    assert not refused.passed
    assert refused.outputs[0].measure == measure
    with pytest.raises(ParityError, match=rf"m at fp16 is refused after 32 crops: {output.name}: {measure} [0-9.]+ .*--precision fp32"):
        refused.require("m", "fp16")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("output", "function"), [(FACE, flipped), (EMBEDDING, embedded), (POINTS, located)], ids=["image", "embedding", "points"]
)
def test_one_nan_in_one_crop_is_refused(output, function, value: float, feeds) -> None:
    seen = []

    def spoil(result: np.ndarray) -> np.ndarray:
        seen.append(0)
        if len(seen) == 17:
            result.flat[3] = value
        return result

    refused = verdict(output, function, spoil, feeds)
    assert not refused.passed
    with pytest.raises(ParityError, match="NaN or infinity"):
        refused.require("m", "int8")
    json.dumps(refused.to_dict(), allow_nan=False)


def test_a_black_box_is_refused(feeds) -> None:
    assert not verdict(FACE, flipped, np.zeros_like, feeds).passed
    assert not verdict(FACE, flipped, lambda value: np.full_like(value, np.nan), feeds).passed


def test_one_bad_crop_among_good_ones_is_refused(feeds) -> None:
    """The worst decides, not the mean."""
    seen = []

    def spoil(result: np.ndarray) -> np.ndarray:
        seen.append(0)
        return result * 0 if len(seen) == 5 else result

    assert not verdict(FACE, flipped, spoil, feeds).passed


@given(st.floats(1e-4, 1e4), st.floats(0.001, 0.2))
@settings(deadline=None, max_examples=20)
def test_the_span_of_an_output_does_not_matter(scale: float, sigma: float) -> None:
    rng = np.random.default_rng(9)
    values = [{"image": rng.uniform(0, 1, (1, 3, 64, 64)).astype(np.float32)} for _ in range(CROPS_MIN)]
    plain = verdict(FACE, flipped, noise(sigma), values)
    grain = noise(sigma)
    scaled = compare(
        Made(FACE, lambda x: flipped(x) * np.float32(scale)),
        Made(FACE, lambda x: flipped(x), lambda y: grain(y) * np.float32(scale)),
        values,
    )
    assert scaled.outputs[0].worst == pytest.approx(plain.outputs[0].worst, abs=0.1)


def test_too_few_crops_prove_nothing(feeds) -> None:
    with pytest.raises(ModelError, match="32 or more"):
        verdict(FACE, flipped, noise(0), feeds[:31])


def test_two_models_are_not_compared(feeds) -> None:
    with pytest.raises(ModelError, match="outputs are"):
        compare(Made(FACE, flipped), Made(EMBEDDING, embedded), feeds)
    with pytest.raises(ModelError, match="two models"):
        verdict(FACE, flipped, lambda value: value[..., :10], feeds)


def test_a_reference_that_is_broken_is_no_reference(feeds) -> None:
    with pytest.raises(ModelError, match="reference itself"):
        compare(Made(FACE, lambda x: x * np.nan), Made(FACE, flipped), feeds)


def test_a_family_may_say_what_an_output_is(feeds) -> None:
    result = compare(Made(FACE, flipped), Made(FACE, flipped), feeds, {"face": Check(Measure.COSINE)})
    assert result.outputs[0].measure == "cosine"


def test_outputs_are_guessed_by_their_shapes() -> None:
    def guessed(*shape):
        return guess_check(TensorSpec("out", shape, np.dtype(np.float32)), (TensorSpec("in", ("N", 64, 64, 3), np.dtype(np.uint8)),))

    assert guessed("N", 468, 3) == Check(Measure.LANDMARK_PX, 64)
    assert guessed("N", 512).measure is Measure.COSINE
    assert guessed("N", 3, 256, 256).measure is Measure.PSNR_DB
    assert guessed("N", 2304).measure is Measure.PSNR_DB
    assert guessed("N", 1).measure is Measure.PSNR_DB


# --- crops


def test_crops_show_faces_and_are_the_same_each_time(crops: np.ndarray) -> None:
    np.testing.assert_array_equal(crops, portrait_crops())
    assert crops.shape == (CROPS_MIN, 256, 256, 3)
    assert len({crop.tobytes() for crop in crops}) == CROPS_MIN
    session = open_session(embedded_model("face_landmark"))
    logits = [float(session.run(feed)["logit"][0, 0]) for feed in feeds_of(session.inputs, crops)]
    assert min(logits) > 0  # FaceMesh sees a face in each


@pytest.mark.parametrize("framing", Framing)
def test_framings_differ(framing: Framing, crops: np.ndarray) -> None:
    found = portrait_crops(4, framing)
    assert found.shape == (4, 256, 256, 3)
    assert (framing is Framing.FACE) == np.array_equal(found, crops[:4])


def test_feeds_fit_their_inputs(crops: np.ndarray) -> None:
    specs = (
        TensorSpec("nhwc", ("N", 32, 48, 3), np.dtype(np.uint8)),
        TensorSpec("nchw", (1, 3, 48, 32), np.dtype(np.float32)),
        TensorSpec("latent", (1, 512), np.dtype(np.float32)),
        TensorSpec("weight", (1,), np.dtype(np.float64)),
    )
    (feed,) = feeds_of(specs, crops[:1], pixels=Pixels(0.5, 0.5))
    assert feed["nhwc"].shape == (1, 32, 48, 3)
    assert feed["nhwc"].dtype == np.uint8
    assert feed["nchw"].shape == (1, 3, 48, 32)
    assert -1 <= feed["nchw"].min() < 0 < feed["nchw"].max() <= 1
    assert np.linalg.norm(feed["latent"]) == pytest.approx(1)
    assert feed["weight"].dtype == np.float64
    with pytest.raises(ModelError, match="--shape"):
        feeds_of((TensorSpec("free", (1, 3, "H", "W"), np.dtype(np.float32)),), crops[:1])
    with pytest.raises(ModelError, match="neither picture"):
        feeds_of((TensorSpec("odd", (1, 4, 5), np.dtype(np.float32)),), crops[:1])


def test_crops_of_ones_own(tmp_path: Path, crops: np.ndarray) -> None:
    import cv2

    for number, crop in enumerate(crops):
        cv2.imwrite(str(tmp_path / f"{number:02}.png"), cv2.cvtColor(crop, cv2.COLOR_RGB2BGR))
    np.testing.assert_array_equal(read_crops(tmp_path), crops)
    (tmp_path / "00.png").unlink()
    with pytest.raises(ModelError, match="at least 32"):
        read_crops(tmp_path)


# --- fp16 swappers on ONNX Runtime


def swapper(path: Path, dtype, cast: bool) -> Path:
    weights = numpy_helper.from_array(np.ones((3, 3, 1, 1), dtype), "w")
    kind = TensorProto.FLOAT16 if dtype == np.float16 and not cast else TensorProto.FLOAT
    nodes = [helper.make_node("Cast", ["w"], ["v"], to=TensorProto.FLOAT)] if cast else []
    nodes.append(helper.make_node("Conv", ["x", "v" if cast else "w"], ["y"]))
    ends = [[helper.make_tensor_value_info(name, kind, [1, 3, 8, 8])] for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "s", *ends, [weights]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def test_an_fp16_swapper_on_onnx_runtime_is_refused_with_the_file_to_use(tmp_path: Path) -> None:
    half = swapper(tmp_path / "inswapper_128_fp16.onnx", np.float16, cast=False)
    for runtime in ("ort", "ort-cuda"):
        with pytest.raises(ParityError, match=r"use inswapper_128\.onnx \(fp32\)"):
            refuse_half_swapper(half, read_graph(half), runtime, is_swapper=True)
    refuse_half_swapper(half, read_graph(half), "rtx", is_swapper=True)
    refuse_half_swapper(half, read_graph(half), "ort", is_swapper=False)
    odd = swapper(tmp_path / "mine.onnx", np.float16, cast=False)
    with pytest.raises(ParityError, match="fp32 file of the same model"):
        refuse_half_swapper(odd, read_graph(odd), "ort", is_swapper=True)


def test_fp16_that_is_only_kept_so_is_fine(tmp_path: Path) -> None:
    assert not computes_in_half(swapper(tmp_path / "a.onnx", np.float16, cast=True))
    assert not computes_in_half(swapper(tmp_path / "b.onnx", np.float32, cast=False))
    assert not computes_in_half(embedded_model("face_landmark"))
    refuse_half_swapper(tmp_path / "a.onnx", read_graph(tmp_path / "a.onnx"), "ort", is_swapper=True)

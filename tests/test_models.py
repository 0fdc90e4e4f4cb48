"""The embedded models: what they are, and that they compute what they did before their conversion."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from engines.errors import ModelError
from engines.session import open_session
from engines.store import EmbeddedModel, embedded_model, embedded_models, verify

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).parent / "golden" / "litert.npz"
"""Made by golden/make_litert.py with Google's interpreter."""

KERNELS_ROUNDED_PX = 0.03
"""The wheel keeps the iris model's kernels as float32; ours are float16. All others are float16 there too."""


@pytest.fixture(scope="module")
def portrait() -> np.ndarray:
    return cv2.cvtColor(cv2.imread(str(ROOT / "assets/portraits/astronaut.png")), cv2.COLOR_BGR2RGB)


def run(golden: np.lib.npyio.NpzFile, name: str, portrait: np.ndarray) -> dict[str, np.ndarray]:
    left, top, side = golden[f"{name}/window"]
    piece = np.ascontiguousarray(portrait[top : top + side, left : left + side])
    return open_session(embedded_model(name)).run({"image": piece[None]})


@pytest.mark.parametrize(
    ("name", "outputs", "tolerance"),
    [
        ("face_landmark", ("points", "logit"), 1e-3),
        ("iris_landmark", ("eye", "iris"), KERNELS_ROUNDED_PX),
        ("hand_landmark_lite", ("points", "presence", "right", "world"), 1e-3),
    ],
)
def test_landmarks_are_those_of_the_unconverted_model(name, outputs, tolerance, portrait):
    with np.load(GOLDEN) as golden:
        result = run(golden, name, portrait)
        for output in outputs:
            np.testing.assert_allclose(result[output].ravel(), golden[f"{name}/{output}"], atol=tolerance)


@pytest.mark.parametrize("name", ["face_detection_full_range_sparse", "face_detection_short_range", "palm_detection_lite"])
def test_boxes_are_those_of_the_unconverted_model(name, portrait):
    with np.load(GOLDEN) as golden:
        result, anchors = run(golden, name, portrait), golden[f"{name}/anchors"]
        assert len(anchors) > 0
        np.testing.assert_allclose(result["logits"][0, anchors], golden[f"{name}/logits"], atol=2e-3)
        np.testing.assert_allclose(result["boxes"][0, anchors].ravel(), golden[f"{name}/boxes"], atol=2e-3)


@pytest.mark.parametrize("name", sorted(embedded_models()))
def test_every_model_takes_bytes_and_any_batch(name):
    session = open_session(embedded_model(name))
    (image,) = session.inputs
    assert image.dtype == np.uint8
    assert isinstance(image.shape[0], str)
    assert image.shape[3] == 3
    rng = np.random.default_rng(1)
    shape = embedded_models()[name].usual_shape or (1, *image.shape[1:])
    batch = rng.integers(0, 256, (3, *shape[1:]), np.uint8)
    together = session.run({"image": batch})
    alone = session.run({"image": batch[1:2]})
    for key, value in alone.items():
        np.testing.assert_allclose(together[key][1:2], value, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("height", "width"), [(128, 192), (192, 128), (160, 192), (32, 64)])
def test_the_detector_of_free_size_gives_an_anchor_for_every_cell_of_four_pixels(height, width):
    result = open_session(embedded_model("face_detection_full_range_sparse")).run({"image": np.zeros((2, height, width, 3), np.uint8)})
    assert result["logits"].shape == (2, height * width // 16)
    assert result["boxes"].shape == (2, height * width // 16, 16)


@pytest.mark.parametrize("model", embedded_models().values(), ids=lambda model: model.name)
def test_the_table_tells_the_truth(model):
    assert hashlib.sha256(model.path.read_bytes()).hexdigest() == model.sha256
    assert model.licence == "Apache-2.0"
    assert (model.path.parent / "LICENSE-Apache-2.0").is_file()


def test_a_changed_model_is_refused(tmp_path):
    shipped = embedded_models()["iris_landmark"]
    data = bytearray(shipped.path.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "iris_landmark.onnx").write_bytes(data)
    changed = EmbeddedModel(shipped.name, tmp_path / "iris_landmark.onnx", shipped.sha256, shipped.licence)
    with pytest.raises(ModelError, match="not the file that was shipped"):
        verify(changed)


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"gone\.onnx is missing"):
        verify(EmbeddedModel("gone", tmp_path / "gone.onnx", "", ""))


def test_an_unknown_model_names_the_known_ones():
    with pytest.raises(ModelError, match=r"'nose'.*face_landmark"):
        embedded_model("nose")

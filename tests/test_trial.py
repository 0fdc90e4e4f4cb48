"""Models are tried on what their families really give them: range, norm, layout, and with the measure that fits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from standins import swappers
from standins.fan4_2d import fan4_2d
from standins.insight_3d68 import insight_3d68
from standins.insight_106 import insight_106
from standins.shelf import CONVERTERS, HALF, IMAGENET, OTHERS, SWAPPERS, fill, write_swapper
from standins.sketch import Sketch
from standins.swappers import Contract

from engines.build.crops import CROPS_MIN, Pixels, crops_folder, portrait_crops, recorded_crops
from engines.build.graph import load_model
from engines.build.parity import compare
from engines.build.precision import convert, rounded
from engines.build.service import BuildOptions, prepare_engine, verify_file, verify_precision
from engines.build.trial import Feeds, Trial, missing_shapes, model_at
from engines.build.views import portrait_views
from engines.errors import DeviceError, ModelError
from engines.measure import Measure
from engines.ort import OrtSession
from engines.store.graph import read_graph
from engines.store.shelf import Shelf

RANGES: dict[str, tuple[float, float]] = {
    "scrfd_2.5g": (-127.5 / 128, 127.5 / 128),
    "yoloface_8n": (0, 1),
    "yunet_2023_mar": (0, 255),
    "2dfan4": (0, 1),
    "peppa_wutz": (0, 1),
    "2d106det": (0, 255),
    "1k3d68": (0, 255),
    "fan_68_5": (0.3, 0.8),
    "arcface_w600k_r50": (-1, 1),
    "gfpgan_1.4": (-1, 1),
    "codeformer": (-1, 1),
    "gpen_bfr_256": (-1, 1),
    "restoreformer_plus_plus": (-1, 1),
    "xseg_1": (0, 1),
    "bisenet_resnet_34": (-0.485 / 0.229, (1 - 0.406) / 0.225),
    "inswapper_128": (0, 1),
    "hyperswap_1a_256": (-1, 1),
    "simswap_256": (-0.485 / 0.229, (1 - 0.406) / 0.225),
    "simswap_unofficial_512": (0, 1),
    "ghost_1_256": (-1, 1),
    "hififace_unofficial_256": (-1, 1),
    "cscs_256": (-1, 1),
    "uniface_256": (-1, 1),
    "blendswap_256": (0, 1),
    "person": (0, 1),
}
"""What black and white are to each network: from what its authors and users publish (see the families' own files). fan_68_5 takes points:
shares of a crop in which the face is small."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("models"))


@pytest.fixture
def shelf(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("FFRT_MODELS", str(folder))
    return Shelf()


def heard(path: Path, trial: Trial | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Feeds:
    session = OrtSession(path)
    try:
        return (trial or Trial()).feeds(path, session, shapes or {})
    finally:
        session.close()


def picture(feed: Mapping[str, np.ndarray]) -> np.ndarray:
    """The largest tensor."""
    return max(feed.values(), key=lambda value: value.size)


@pytest.mark.parametrize("name", RANGES)
def test_every_family_feeds_its_own_range(name: str, shelf: Shelf) -> None:
    feeds = heard(shelf.path(shelf.find(name)))
    assert len(feeds) == CROPS_MIN
    assert len({picture(feed).tobytes() for feed in feeds}) == CROPS_MIN, "no two alike"
    low, high = RANGES[name]
    values = np.stack([picture(feed) for feed in feeds]).astype(np.float64)
    span = high - low
    assert low - 1e-5 * span <= values.min() < low + 0.3 * span
    assert high - 0.3 * span < values.max() <= high + 1e-5 * span


def test_the_table_names_every_stand_in() -> None:
    """A family that is added later belongs into it."""
    assert set(RANGES) == {*SWAPPERS, "person", *(name for kind in OTHERS.values() for name in kind)}


@pytest.mark.parametrize("name", CONVERTERS)
def test_converters_get_embeddings_as_they_come(name: str, shelf: Shelf) -> None:
    lengths = [np.linalg.norm(picture(feed)) for feed in heard(shelf.path(shelf.find(name)))]
    assert min(lengths) > 15, "not of length 1"


def test_a_latent_is_what_the_family_makes_of_an_embedding(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ghost's keeps its length, simswap's has length 1; with no converter here the embedding stands in for its own."""
    ghost, simswap = (write_swapper(tmp_path, name) for name in ("ghost_1_256", "simswap_256"))
    for folder in (shelf.folder, tmp_path / "none"):
        monkeypatch.setenv("FFRT_MODELS", str(folder))
        for path, family, long in ((ghost, "ghost", True), (simswap, "simswap", False)):
            vectors = [min(feed.values(), key=lambda value: value.size) for feed in heard(path, Trial(family))]
            assert all((np.linalg.norm(vector) > 15) == long for vector in vectors)


def test_the_same_trial_is_the_same_numbers(shelf: Shelf) -> None:
    path = shelf.path(shelf.find("inswapper_128"))
    for one, other in zip(heard(path), heard(path), strict=True):
        assert {name: value.tobytes() for name, value in one.items()} == {name: value.tobytes() for name, value in other.items()}


def test_shapes_are_those_of_the_engine(shelf: Shelf, tmp_path: Path) -> None:
    scrfd = shelf.path(shelf.find("scrfd_2.5g"))
    (name,) = heard(scrfd)[0]
    assert heard(scrfd, shapes={name: (1, 3, 320, 320)})[0][name].shape == (1, 3, 320, 320)
    many = swappers.swapper(tmp_path / "hyperswap.onnx", Contract(256, HALF, HALF, True, outputs=("output", "mask"), batch="N"))
    fed = heard(many, shapes={"target": (4, 3, 256, 256), "source": (4, 512)})[0]
    assert {value.shape[0] for value in fed.values()} == {4}


OTHERWISE = {"person": "no fixed size", "simswap_unofficial_512": "256", "gpen_bfr_256": "512"}
"""Of one graph with others, or refused, once its file leaves the size open."""


@pytest.mark.parametrize("name", [name for name in RANGES if name not in OTHERWISE])
def test_open_sizes_are_those_that_the_family_runs_at(name: str, shelf: Shelf, tmp_path: Path) -> None:
    """The size is taken out of each file, and found again."""
    card = shelf.find(name)
    path = tmp_path / "free.onnx"
    sizes = opened_up(shelf.path(card), path)
    assert missing_shapes(path, read_graph(path), {}, card.family) == sizes
    said = dict.fromkeys(sizes, (1,))
    assert missing_shapes(path, read_graph(path), said, card.family) == {}, "what was given is not asked for"
    assert missing_shapes(shelf.path(card), card.graph, {}, card.family) == (sizes if name == "scrfd_2.5g" else {})


def opened_up(path: Path, to: Path) -> dict[str, tuple[int, ...]]:
    """Writes the model with the sizes of its pictures left open; their shapes with one picture each."""
    model = onnx.load(path)
    sizes = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if len(dims) != 4:
            continue
        sizes[value.name] = (1, *(dim.dim_value or 640 for dim in dims[1:]))  # a detector's file leaves them open itself
        for dim in dims[1:]:
            if dim.dim_value != 3:
                dim.dim_param = f"side {len(sizes)}"
    onnx.save(model, to)
    return sizes


def test_views_show_faces_where_their_points_are() -> None:
    from engines.landmarks.facemesh import FaceMesh, roi_from_points

    mesh, views = FaceMesh(), portrait_views()
    assert len(views) == CROPS_MIN
    for view in views:
        found = mesh.locate(view.image, roi_from_points(view.points))
        assert found.score > 0.5
        assert float(np.linalg.norm((found.points - view.points)[:, :2], axis=1).mean()) < 0.02 * np.ptp(view.points[:, 0])


# --- crops of one's own


def keep(crops: np.ndarray, folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, crop in enumerate(crops):
        cv2.imwrite(str(folder / f"{number:02}.png"), crop[..., ::-1])


def test_a_person_s_own_crops_are_looked_at_instead(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path))
    assert recorded_crops("gfpgan_1.4") is None
    keep(portrait_crops(), crops_folder("gfpgan_1.4"))
    crops = recorded_crops("gfpgan_1.4")
    assert crops is not None
    path = shelf.path(shelf.find("gfpgan_1.4"))
    own = heard(path, Trial(crops=crops))
    assert len(own) == CROPS_MIN
    assert {picture(feed).tobytes() for feed in own}.isdisjoint(picture(feed).tobytes() for feed in heard(path))
    assert Trial(crops=crops).flags() != Trial().flags()
    detector = heard(shelf.path(shelf.find("yunet_2023_mar")), Trial(crops=crops))
    assert {picture(feed).shape for feed in detector} == {(1, 3, 640, 640)}


def test_crops_that_show_nobody_are_one_sentence(shelf: Shelf) -> None:
    grey = np.full((CROPS_MIN, 256, 256, 3), 90, np.uint8)
    with pytest.raises(ModelError, match="a face was seen in 0 of 32 crops, and 32 are needed"):
        heard(shelf.path(shelf.find("gfpgan_1.4")), Trial(crops=grey))


# --- which family


def test_what_a_file_is(shelf: Shelf, tmp_path: Path) -> None:
    card = shelf.find("hififace_unofficial_256")
    renamed = tmp_path / "mine.onnx"
    renamed.write_bytes(shelf.path(card).read_bytes())
    found = model_at(renamed)
    assert found is not None
    assert (found.family, found.path) == ("hififace", renamed), "by its card, whose graph fits others too"
    strange = swappers.swapper(tmp_path / "strange.onnx", Contract(256, given=IMAGENET, outputs=("other",)))
    with pytest.raises(ModelError, match="fits several families"):
        model_at(strange)
    named = model_at(strange, "simswap")
    assert named is not None
    assert named.family == "simswap"
    with pytest.raises(ModelError, match="not of the family yunet"):
        model_at(strange, "yunet")


def test_a_model_of_no_family_is_fed_by_pixels(tmp_path: Path) -> None:
    s = Sketch()
    odd = s.save(tmp_path / "odd.onnx", [("x", (1, 3, 40, 40))], [(s.mul("x", 2.0), "y", (1, 3, 40, 40))])
    assert model_at(odd) is None
    assert heard(odd)[0]["x"].min() >= 0
    assert heard(odd, Trial(pixels=Pixels(0.5, 0.5)))[0]["x"].min() < 0


# --- what overflows in earnest


def bright(path: Path) -> Path:
    """Of 2d106det's contract; sums up a hundredth of every pixel on its way: at most 1.1e3 of [0, 1], and 2.8e5 of 0…255, where fp16 ends
    at 6.5e4."""
    s = Sketch()
    weights = s.const(np.full((1, 3, 192, 192), 0.01))
    total = s.op("Conv", "data", weights)
    spread = s.mul(s.shape(total, -1, 1), s.const(np.linspace(0.5, 1, 212)[None] * 1e-6))
    return s.save(path, [("data", ("None", 3, 192, 192))], [(spread, "fc1", ("None", 212))])


def in_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """All of it, as a converter does that measures nothing."""
    return rounded(convert(model, "fp16", {}))


def test_fp16_that_overflows_with_what_the_family_gives_is_refused(tmp_path: Path) -> None:
    path = bright(tmp_path / "2d106det.onnx")
    model = load_model(path)
    half = tmp_path / "half.onnx"
    onnx.save(in_half(model), half)
    guessed = verify_file(path, half, BuildOptions(precision="fp16", trial=Trial(pixels=Pixels())), "ort")
    assert guessed.passed, "[0, 1] shows nothing of it"
    real = verify_file(path, half, BuildOptions(precision="fp16"), "ort")
    assert not real.passed
    assert not real.outputs[0].finite


def test_ranges_are_measured_with_what_the_family_gives(tmp_path: Path) -> None:
    """So what overflows stays fp32, and the gate passes it."""
    path = bright(tmp_path / "2d106det.onnx")
    assert verify_precision(path, BuildOptions(precision="fp16")).passed


def test_an_fp16_file_is_given_fp16(tmp_path: Path) -> None:
    """The fp16 export of a model takes its pictures in fp16, its reference in fp32."""
    s = Sketch()
    full = s.save(tmp_path / "2d106det.onnx", [("data", ("None", 3, 192, 192))], [flat(s)])
    model = load_model(full)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float16), tensor.name))
    half = tmp_path / "half.onnx"
    onnx.save(model, half)
    assert verify_file(full, half, BuildOptions(precision="fp16"), "ort").passed


def flat(s: Sketch) -> tuple[str, str, tuple[int | str, ...]]:
    pooled = s.op("AveragePool", "data", kernel_shape=[16, 16], strides=[16, 16])  # 3 · 12 · 12 cells
    rows = s.op("Slice", s.shape(pooled, -1, 432), s.ints(0), s.ints(212), s.ints(1))
    return s.mul(rows, 1 / 255), "fc1", ("None", 212)


# --- each kind by its own measure


@pytest.mark.parametrize(
    ("make", "name", "units"),
    [(insight_106, "2d106det", 2.0), (insight_3d68, "1k3d68", 2.0), (fan4_2d, "2dfan4", 64.0)],
    ids=["flat", "flat with depth", "in cells of heatmaps"],
)
@pytest.mark.parametrize(("px", "passes"), [(0.4, True), (0.6, False)])
def test_landmarks_are_judged_in_pixels_at_192(make, name: str, units: float, px: float, passes: bool, tmp_path: Path) -> None:
    path = make(tmp_path / f"{name}.onnx")
    session = OrtSession(path)
    verdict = compare(session, Moved(path, px * units / 192), heard(path), Trial().checks_of(path))
    points = next(output for output in verdict.outputs if output.measure == Measure.LANDMARK_PX)
    assert points.worst == pytest.approx(px, abs=0.01)
    assert points.passed is passes


class Moved(OrtSession):
    """All points a little to the right."""

    def __init__(self, path: Path, shift: float) -> None:
        super().__init__(path)
        self._shift = np.float32(shift)

    def run(self, feeds):
        results = super().run(feeds)
        name = min(results, key=lambda name: results[name].size)
        flat = results[name].reshape(len(results[name]), -1).copy()
        flat[:, :: 2 if flat.shape[1] == 212 else 3] += self._shift
        return {**results, name: flat.reshape(results[name].shape)}


# --- while live


def test_an_engine_made_while_live_is_tried_as_its_family_and_on_the_person_s_crops(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU it gets as far as to the proof on it."""
    pytest.importorskip("tensorrt_rtx", exc_type=ImportError)
    from engines.build.cache import EngineCache

    monkeypatch.setenv("FFRT_CACHE", str(tmp_path))
    keep(portrait_crops(), crops_folder("2d106det"))
    model = shelf.model(shelf.find("2d106det"))
    with pytest.raises(DeviceError, match="rtx was asked for"):
        prepare_engine(model, "rtx", "sm_89", {}, lambda progress: None, lambda: False)
    (entry,) = EngineCache().entries()
    assert entry.facts["graph_parity"]["outputs"][0]["measure"] == "landmark_px"
    trial = Trial("insight_106", recorded_crops("2d106det"))
    assert set(trial.flags()) <= set(entry.key.flags)

"""Every swapper family, on a stand-in whose result NumPy computes: crop, norms, colour order, embedding, way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import ASTRONAUT, HOPPER
from kit import FolderKit, graph_of, model_file
from standins import full_size
from standins import identity as identities
from standins import swappers as standins
from standins.shelf import RECOGNISERS
from standins.swappers import KEPT, Contract, colour_by_hand

import engines.identity
import engines.swap  # noqa: F401  registers the families
from engines.align import TEMPLATES
from engines.detect import detectors
from engines.errors import ModelError, NoFaceError
from engines.family import families
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.swap.contract import Patch, SourceFace
from engines.swap.inswapper import read_emap
from engines.swap.neural import NeuralSwapper

HALF, IMAGENET = ((0.5,) * 3, (0.5,) * 3), ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PLAIN = ((0.0,) * 3, (1.0,) * 3)

INSIGHTFACE_112 = np.array([[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]])
"""InsightFace's arcface_dst: pixels of a crop of 112."""

LEVELS = 2.5
"""Half a level for each of two roundings, and what two bilinear samplings lose of a smooth picture."""


def face_of(path: Path) -> SourceFace:
    """A portrait, smoothed: what is lost by sampling twice is then under a level."""
    image = cv2.GaussianBlur(open_photo(path), (0, 0), 5)
    (face,) = find_faces(open_photo(path), detectors["blazeface-full"](), FaceMesh())
    return SourceFace(image, face, path.name)


@pytest.fixture(scope="module")
def woman() -> SourceFace:
    return face_of(ASTRONAUT)


@pytest.fixture(scope="module")
def man() -> SourceFace:
    return face_of(HOPPER)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("parts")
    models = {"arcface_w600k_r50": model_file(identities.arcface(folder / "arcface_w600k_r50.onnx"), "arcface")}
    for number, name in enumerate(("crossface_simswap", "crossface_ghost", "crossface_hififace")):
        models[name] = model_file(identities.crossface(folder / f"{name}.onnx", number), "crossface")
    for name, seed in RECOGNISERS.items():
        models[name] = model_file(identities.arcface(folder / f"{name}.onnx", seed=seed), "arcface")
    return models


# --- the same by hand ---


def crop_by_hand(face: SourceFace, template: np.ndarray, side: int) -> np.ndarray:
    """uint8 [side, side, 3] BGR, by a similarity that lstsq finds and plain bilinear sampling."""
    five = five_by_hand(face.landmarks.points)
    rows = [[x, -y, 1, 0] for x, y in five] + [[y, x, 0, 1] for x, y in five]
    cos, sin, right, down = np.linalg.lstsq(np.array(rows), np.r_[template[:, 0], template[:, 1]] * side, rcond=None)[0]
    return cv2.warpAffine(face.image, np.array([[cos, -sin, right], [sin, cos, down]]), (side, side), borderMode=cv2.BORDER_REPLICATE)


def five_by_hand(points: np.ndarray) -> np.ndarray:
    """The eyes' rims as MediaPipe's connections list them (33 … 133 and 362 … 263), its nose tip 1, mouth corners 61 and 291."""
    left = [33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7]
    right = [263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249]
    return np.stack([points[left, :2].mean(0), points[right, :2].mean(0), *points[[1, 61, 291], :2]]).astype(np.float64)


def raw_by_hand(*faces: SourceFace) -> np.ndarray:
    """The embedding: mean of the directions, at the mean length."""
    raws = [identities.arcface_by_hand(crop_by_hand(face, INSIGHTFACE_112 / 112, 112)) for face in faces]
    direction = np.mean([raw / np.linalg.norm(raw) for raw in raws], 0)
    return direction / np.linalg.norm(direction) * np.mean([np.linalg.norm(raw) for raw in raws])


def normed(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def converted(raw: np.ndarray, seed: int) -> np.ndarray:
    matrix, shift = identities.crossface_parts(seed)
    return raw @ matrix.astype(np.float64) + shift


def by_emap(raw: np.ndarray) -> np.ndarray:
    return normed(normed(raw) @ standins.emap().astype(np.float64))


VECTOR_CASES: dict[str, tuple[str, Contract, Callable[[np.ndarray], np.ndarray]]] = {
    "inswapper_128": ("inswapper", Contract(128, emap=True), by_emap),
    "inswapper_128_outputs_named_otherwise": ("inswapper", Contract(128, emap=True, outputs=("1288",)), by_emap),
    "reswapper_256": ("inswapper", Contract(256, emap=True, inputs=("x", "y")), by_emap),
    "hyperswap_1a_256": ("hyperswap", Contract(256, given=HALF, made=HALF, mask=True, outputs=("output", "mask")), normed),
    "simswap_256": ("simswap", Contract(256, given=IMAGENET), lambda raw: normed(converted(raw, 0))),
    "simswap_unofficial_512": ("simswap", Contract(512), lambda raw: normed(converted(raw, 0))),
    "ghost_1_256": ("ghost", Contract(256, given=HALF, made=HALF, outputs=("781",)), lambda raw: converted(raw, 1)),
    "hififace_unofficial_256": ("hififace", Contract(256, given=HALF, made=HALF), lambda raw: normed(converted(raw, 2))),
}


CSCS = Contract(256, given=HALF, made=HALF, inputs=("input_1", "input_2"))


def cscs_by_hand(face: SourceFace) -> np.ndarray:
    """float64 [512], of one photo: its crop as FFHQ's are, shown to both recognisers, and what they say added up at length 1 each."""
    crop = crop_by_hand(face, np.array(PUBLISHED["ffhq_512"][1]) / 512, 112)
    first, second = (identities.arcface_by_hand(crop, seed) for seed in RECOGNISERS.values())
    return normed(first) + normed(second)


def opened(path: Path, family: str, parts: dict, **options: object) -> NeuralSwapper:
    return families[family].open(model_file(path, family), FolderKit(options, **parts))


def check(patch: Patch | None, image: np.ndarray, colour: np.ndarray) -> None:
    """Where the patch is opaque it is KEPT · picture + (1 - KEPT) · colour, BGR levels."""
    assert patch is not None
    height, width = patch.alpha.shape
    below = image[patch.top : patch.top + height, patch.left : patch.left + width].astype(np.float64)
    wanted = below * KEPT[::-1] + (1 - KEPT[::-1]) * colour[::-1] * 255
    inside = patch.alpha == 255
    assert inside.sum() > 2000
    off = np.abs(patch.pixels[inside] - wanted[inside])
    assert off.mean() < 1
    assert np.quantile(off, 0.99) < LEVELS


@pytest.mark.parametrize("name", VECTOR_CASES)
def test_a_swapper_fed_with_an_embedding(name: str, woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    family, contract, latent = VECTOR_CASES[name]
    swapper = opened(standins.swapper(tmp_path / f"{name}.onnx", contract), family, parts)
    swapper.warm_up()
    patch = swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([man]), 1, 0)
    check(patch, woman.image, colour_by_hand(latent(raw_by_hand(man))))


def test_two_photos_are_combined(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    family, contract, latent = VECTOR_CASES["inswapper_128"]
    swapper = opened(standins.swapper(tmp_path / "x.onnx", contract), family, parts)
    patch = swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([man, woman]), 1, 0)
    check(patch, woman.image, colour_by_hand(latent(raw_by_hand(man, woman))))


@pytest.mark.parametrize(
    ("family", "contract", "template", "side"),
    [
        ("uniface", Contract(256, given=HALF, made=HALF, source_side=256), "ffhq_512", 256),
        ("blendswap", Contract(256, source_side=112), "arcface_112_v2", 112),
    ],
)
def test_a_swapper_fed_with_a_picture(
    family: str, contract: Contract, template: str, side: int, woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path
) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", contract), family, parts)
    patch = swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([man]), 1, 0)
    colour = crop_by_hand(man, np.array(TEMPLATES[template]), side)[..., ::-1].mean((0, 1)) / 255
    check(patch, woman.image, colour)


def test_cscs_is_fed_by_two_recognisers(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", CSCS), "cscs", parts)
    prepared = swapper.prepare([man])
    wanted = cscs_by_hand(man)
    assert np.abs(prepared[0] - wanted).max() < 0.02 * np.abs(wanted).max(), "its length is that of the sum, not 1"
    patch = swapper.swap(woman.image, woman.landmarks.points, prepared, 1, 0)
    check(patch, woman.image, colour_by_hand(wanted))


def test_cscs_sees_the_target_as_ffhq_lays_it(woman: SourceFace, parts: dict, tmp_path: Path) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", CSCS), "cscs", parts)
    wanted = crop_by_hand(woman, np.array(PUBLISHED["ffhq_512"][1]) / 512, 256)
    assert np.abs(swapper.crop(woman.image, woman.landmarks.points).astype(float) - wanted).mean() < 1


def test_cscs_of_two_photos_is_in_between(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", CSCS), "cscs", parts)
    both = [cscs_by_hand(face) for face in (man, woman)]
    wanted = normed(sum(map(normed, both))) * np.mean([np.linalg.norm(one) for one in both])
    assert np.abs(swapper.prepare([man, woman])[0] - wanted).max() < 0.02 * np.abs(wanted).max()


@pytest.mark.parametrize("missing", RECOGNISERS)
def test_cscs_without_one_of_its_recognisers_says_which(missing: str, parts: dict, tmp_path: Path) -> None:
    left = {name: model for name, model in parts.items() if name != missing}
    with pytest.raises(ModelError, match=missing):
        opened(standins.swapper(tmp_path / "x.onnx", CSCS), "cscs", left)


@pytest.mark.parametrize("morph", [False, True])
def test_dfm_needs_no_photo(morph: bool, woman: SourceFace, tmp_path: Path) -> None:
    swapper = families["dfm"].open(model_file(standins.dfm(tmp_path / "person.dfm", morph=morph), "dfm"), FolderKit())
    swapper.warm_up()
    patch = swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([]), 1, 0)
    check(patch, woman.image, standins.DFM_COLOUR[::-1] * (0.75 if morph else 1))
    assert patch is not None
    middle = patch.alpha[patch.alpha.shape[0] // 2]
    assert middle[: len(middle) // 4].max() == 0, "the left third is outside of the file's own mask"


def test_the_mask_of_hyperswap_is_used(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    family, contract, _ = VECTOR_CASES["hyperswap_1a_256"]
    swapper = opened(standins.swapper(tmp_path / "x.onnx", contract), family, parts)
    patch = swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([man]), 1, 0)
    assert patch is not None
    middle = patch.alpha[patch.alpha.shape[0] // 2]
    assert middle[: len(middle) // 2].max() == 255
    assert middle[len(middle) * 2 // 3 :].max() == 0


@pytest.mark.parametrize("template", ["arcface_112_v2", "arcface_128"])
def test_the_templates_are_insightfaces(template: str) -> None:
    """arcface_128 is the one of 112 with a margin of 8 on either side: (p + [8, 0]) / 128."""
    wanted = INSIGHTFACE_112 / 112 if template == "arcface_112_v2" else (INSIGHTFACE_112 + [8, 0]) / 128
    assert np.abs(np.array(TEMPLATES[template]) - wanted).max() < 1e-6


PUBLISHED = {
    "arcface_112_v1": (112, [[39.730, 51.138], [72.270, 51.138], [56.000, 68.493], [42.463, 87.010], [69.537, 87.010]]),
    "ffhq_512": (
        512,
        [[192.98138, 239.94708], [318.90277, 240.1936], [256.63416, 314.01935], [201.26117, 371.41043], [313.08905, 371.15118]],
    ),
}
"""InsightFace's frontal one of its five, and the one of FFHQ's 512 that face restorers share: side, pixels."""


@pytest.mark.parametrize("template", PUBLISHED)
def test_the_templates_are_those_published(template: str) -> None:
    side, pixels = PUBLISHED[template]
    assert np.abs(np.array(TEMPLATES[template]) * side - pixels).max() < 1e-3


@pytest.mark.parametrize("boost", [2, 3, 4])
def test_pixel_boost_shows_the_network_whole_faces(boost: int, woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    """The stand-in pulls its crop towards the crop's mean: tiles would come out as blocks, and rows in a wrong order as combs."""
    images = {}
    for batch in ("batch", 1):
        swapper = opened(standins.centring(tmp_path / f"{batch}.onnx", 128, batch), "inswapper", parts, pixel_boost=boost)
        images[batch] = swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([man]), 1, 0)
    patch = images["batch"]
    assert patch is not None
    assert images[1] is not None
    assert np.array_equal(patch.pixels, images[1].pixels), "a batch and one by one are the same"
    height, width = patch.alpha.shape
    below = woman.image[patch.top : patch.top + height, patch.left : patch.left + width].astype(np.float64)
    inside = patch.alpha == 255
    residue = (patch.pixels - below / 2)[inside]  # half the crop's mean, everywhere the same
    assert residue.std(0).max() < 1.0


def test_a_file_that_lies_about_its_output_is_one_clear_error(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    path = standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True))
    swapper = opened(path, "inswapper", parts)
    swapper._session = type("Wrong", (), {"run": lambda self, feeds: {"o": np.zeros((1, 3, 64, 64), np.float32)}, "runtime": "test"})()
    with pytest.raises(ModelError, match=r"gave \(1, 3, 64, 64\) where \(1, 3, 128, 128\)"):
        swapper.swap(woman.image, woman.landmarks.points, np.zeros((1, 512), np.float32), 1, 0)


def test_the_emap_is_read_once_and_kept_by_hash(parts: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    model = model_file(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper")
    assert np.array_equal(read_emap(model), standins.emap())
    assert np.array_equal(read_emap(replace(model, path=tmp_path / "gone.onnx")), standins.emap()), "the file is not read again"
    other = model_file(standins.centring(tmp_path / "x.onnx", 128, 1), "inswapper")
    with pytest.raises(ModelError, match="does not exist"):
        read_emap(replace(other, path=tmp_path / "gone.onnx"))  # another hash


@pytest.mark.parametrize("damage", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_a_damaged_cache_is_made_anew(damage: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    model = model_file(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper")
    read_emap(model)
    (kept,) = (tmp_path / "cache" / "arrays").iterdir()
    kept.write_bytes(damage)
    assert np.array_equal(read_emap(model), standins.emap())
    assert kept.stat().st_size > 512 * 512 * 4


def test_a_cache_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setenv("FFRT_CACHE", str(tmp_path / "cache"))
    model = model_file(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper")
    assert np.array_equal(read_emap(model), standins.emap())
    assert "read anew at every start" in caplog.text


def test_without_a_recogniser_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="arcface_w600k_r50"):
        opened(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper", {})


def test_without_a_photo_the_error_says_so(parts: dict, tmp_path: Path) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper", parts)
    with pytest.raises(NoFaceError, match="no photo"):
        swapper.prepare([])


@pytest.mark.parametrize(
    "points", [np.full((468, 3), np.nan, np.float32), np.zeros((468, 3), np.float32), np.full((468, 3), -9000.0, np.float32)]
)
def test_points_that_are_no_face_give_no_patch(points: np.ndarray, woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper", parts)
    assert swapper.swap(woman.image, points, swapper.prepare([man]), 1, 0) is None


def test_a_face_half_outside_of_the_picture(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    swapper = opened(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)), "inswapper", parts)
    points = woman.landmarks.points - [float(woman.landmarks.points[:, 0].mean()), 0, 0]
    patch = swapper.swap(woman.image, points.astype(np.float32), swapper.prepare([man]), 1, 0)
    assert patch is not None
    assert patch.left == 0
    assert patch.top >= 0


AMBIGUOUS = {"simswap", "ghost", "hififace"}
"""Their files of 256 pixels have one graph: only a hash or their owner can tell them apart."""


@pytest.mark.parametrize("name", VECTOR_CASES)
def test_families_know_their_own_files(name: str, tmp_path: Path) -> None:
    family, contract, _ = VECTOR_CASES[name]
    graph = graph_of(standins.swapper(tmp_path / "x.onnx", contract))
    fitting = {other for other in families if not families[other].differences(graph)}
    wanted = AMBIGUOUS if family in AMBIGUOUS and contract.side == 256 else {family}
    assert fitting == wanted


def test_other_families_say_what_differs(tmp_path: Path) -> None:
    graph = graph_of(standins.swapper(tmp_path / "x.onnx", Contract(128, emap=True)))
    assert families["hyperswap"].differences(graph) == (
        "its target input is [1, 3, 128, 128], not [any, 3, 256, 256]",
        "its first output is [1, 3, 128, 128], not [any, 3, 256, 256]",
        "it has no second output",
    )


def test_the_full_size_generator_writes_inswappers_network(woman: SourceFace, man: SourceFace, parts: dict, tmp_path: Path) -> None:
    """At a sixteenth of the width. Its parameters grow with the square of the width but for the styles and the outer layers:
    w = 64, q = 8: outer 2·(147q + q·2q·9 + 2q·4q·9 + 4q·8q·9) + biases, inner 12·(9w² + w) and styles 12·512·2w."""
    w, q = 64, 8
    path = full_size.inswapper(tmp_path / "small.onnx", w)
    outer = 2 * (147 * q + 18 * q * q + 72 * q * q + 288 * q * q) + (q + 2 * q + 4 * q + 8 * q) + (4 * q + 2 * q + q + 3)
    assert full_size.parameters(path) == outer + 12 * (9 * w * w + w) + 12 * 512 * 2 * w
    swapper = opened(path, "inswapper", parts)
    assert swapper.swap(woman.image, woman.landmarks.points, swapper.prepare([man]), 1, 0) is not None

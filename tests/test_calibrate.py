"""`ffrt engines calibrate`: crops of one's own camera, and what they are good for."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import ASTRONAUT
from standins import gfpgan
from standins import swappers as standins
from standins.bisenet import bisenet
from standins.fan4_2d import fan4_2d
from standins.fan_68_5 import fan_68_5
from standins.insight_3d68 import insight_3d68
from standins.insight_106 import insight_106
from standins.peppa_wutz import peppa_wutz
from standins.shelf import fill
from standins.swappers import Contract
from standins.xseg import xseg

from app import build
from app.calibrate import CalibrationRequest, consent, record
from app.cli import main
from app.errors import AppError, UsageError
from app.models import Models
from app.settings import InputSettings, Settings
from engines.align import crop_bgr, five_of_mesh, similarity, template
from engines.build.crops import read_crops
from engines.detect import detectors
from engines.errors import ModelError
from engines.family import Kind
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from engines.store.shelf import Shelf
from engines.swap.blendswap import TEMPLATE

CAMERA = "synthetic:size=640x360,fps=60"


def request(model: object, folder: Path, spec: str = CAMERA, seconds: float = 1.0, count: int = 32) -> CalibrationRequest:
    return CalibrationRequest(str(model), InputSettings(spec=spec), folder, count, seconds)


def silent(done: int, total: int, what: str) -> None:
    pass


@pytest.fixture(autouse=True)
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "models"))


def test_a_swapper_s_crops_are_what_its_network_sees(tmp_path: Path) -> None:
    """A portrait that does not move: every crop is the one that alignment by hand gives."""
    model = standins.swapper(tmp_path / "blendswap_256.onnx", Contract(256, source_side=112))
    result = record(request(model, tmp_path / "crops", f"{CAMERA},motion=0"), silent)
    assert result["crops"] == 32
    crops = read_crops(tmp_path / "crops")
    assert crops.shape == (32, 256, 256, 3)
    portrait = open_photo(ASTRONAUT)
    face = find_faces(portrait, detectors["blazeface-full"](), FaceMesh())[0]
    wanted = crop_bgr(portrait, similarity(five_of_mesh(face.points), template(TEMPLATE, 256)), 256)[..., ::-1]
    errors = [float(np.abs(crop.astype(float) - wanted).mean()) for crop in crops]
    assert max(errors) < 12, "the same face at the same place, as sharp as a small picture has it"


def test_crops_are_spread_over_the_time_and_differ(tmp_path: Path) -> None:
    result = record(request("face_landmark", tmp_path / "crops", seconds=1.5), silent)
    assert result["shows"] == "face"
    assert result["frames"] >= 1.5 * 60 * 0.3, "it did not take the first 32 pictures"
    crops = read_crops(tmp_path / "crops").astype(int)
    assert all(np.abs(a - b).max() > 0 for a, b in itertools.pairwise(crops))
    assert (tmp_path / "crops").stat().st_mode & 0o077 == 0, "they are nobody else's"


@pytest.mark.parametrize(("model", "shows"), [("face_detection_short_range", "scene"), ("iris_landmark", "eye")])
def test_embedded_models_get_what_they_look_at(model: str, shows: str, tmp_path: Path) -> None:
    assert record(request(model, tmp_path / "crops"), silent)["shows"] == shows


def test_a_clip_of_one_s_own_will_do_and_the_gate_takes_the_crops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import av

    clip = tmp_path / "clip.mp4"
    portrait = cv2.resize(open_photo(ASTRONAUT), (480, 480))
    with av.open(str(clip), "w") as container:
        stream = container.add_stream("libx264", rate=60)
        stream.width = stream.height = 480
        stream.pix_fmt = "yuv420p"
        for number in range(90):
            moved = np.roll(portrait, number % 7, 1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(moved, format="bgr24")))
        container.mux(stream.encode(None))
    folder = tmp_path / "crops"
    arguments = ["--input", str(clip), "--seconds", "0.6", "--count", "32", "--out", str(folder), "--yes"]
    assert run("engines", "calibrate", "face_detection_short_range", *arguments) == 0
    assert "stay on the disk of this machine" in capsys.readouterr().err
    assert run("engines", "verify-parity", "face_detection_short_range", "--precision", "fp16", "--crops", str(folder)) == 0
    assert "32 crops" in capsys.readouterr().out


def test_an_enhancer_s_crops_are_in_its_template(tmp_path: Path) -> None:
    Models().import_file(gfpgan.gfpgan(tmp_path / "gfpgan_1.4.onnx"), "gfpgan")
    assert "gfpgan" in record(request("gfpgan_1.4", tmp_path / "crops"), silent)["shows"]


PORTRAIT = f"{CAMERA},motion=0"

LOOKS: dict[str, tuple[str, Callable[[Path], Path], str | float, int]] = {
    "xseg_1": ("xseg", xseg, "dfl_whole_face", 256),
    "bisenet_resnet_34": ("bisenet", bisenet, "ffhq_512", 512),
    "2dfan4": ("2dfan4", fan4_2d, 195 / 256, 256),
    "peppa_wutz": ("peppa_wutz", peppa_wutz, 195 / 256, 256),
    "2d106det": ("insight_106", insight_106, 1 / 1.5, 192),
    "1k3d68": ("insight_3d68", insight_3d68, 1 / 1.5, 192),
}
"""Name → family, stand-in, template or the share of the crop that the box takes, side."""


@pytest.mark.parametrize("name", LOOKS)
def test_masks_and_landmark_models_have_crops_of_their_own(name: str, tmp_path: Path) -> None:
    """A portrait that does not move: the crop is the one that alignment by hand gives."""
    family, make, place, side = LOOKS[name]
    Models().import_file(make(tmp_path / f"{name}.onnx"), family)
    result = record(request(name, tmp_path / "crops", PORTRAIT), silent)
    assert result["shows"] == f"{name}'s own crop"
    crops = read_crops(tmp_path / "crops").astype(float)
    assert crops.shape == (32, 256, 256, 3), "as all crops are kept"
    portrait = open_photo(ASTRONAUT)
    points = find_faces(portrait, detectors["blazeface-full"](), FaceMesh())[0].points
    if isinstance(place, str):
        matrix = similarity(five_of_mesh(points), template(place, side))
    else:
        low, high, eyes = points[:, :2].min(0), points[:, :2].max(0), five_of_mesh(points)[:2].astype(float)
        angle = np.arctan2(*(eyes[1] - eyes[0])[::-1])
        matrix = cv2.getRotationMatrix2D(tuple(map(float, (low + high) / 2)), np.degrees(angle), side * place / float((high - low).max()))
        matrix[:, 2] += side / 2 - (low + high) / 2
    wanted = cv2.resize(crop_bgr(portrait, matrix.astype(np.float32), side)[..., ::-1], (256, 256), interpolation=cv2.INTER_AREA)
    assert max(float(np.abs(crop - wanted).mean()) for crop in crops) < 12


def test_a_model_that_takes_no_picture_is_refused(tmp_path: Path) -> None:
    Models().import_file(fan_68_5(tmp_path / "fan_68_5.onnx"))
    with pytest.raises(ModelError, match="fan_68_5 takes no picture, and so no crops"):
        record(request("fan_68_5", tmp_path / "crops"), silent)


def test_every_family_that_looks_at_a_picture_has_a_crop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is added later, as soon as it has its stand-in."""
    folder = fill(tmp_path, tmp_path / "models")
    monkeypatch.setenv("FFRT_MODELS", str(folder))
    parts = build.parts(Settings())
    for card in Shelf().cards():
        part = parts.named(Kind(card.kind), card.name)
        assert hasattr(part, "crop") == (card.kind not in ("detector", "converter") and card.family != "fan_68_5"), card.name
    parts.close()


def test_consent_names_the_folder(tmp_path: Path) -> None:
    assert str(tmp_path / "crops") in consent(request("face_landmark", tmp_path / "crops"))
    assert "crops" in consent(CalibrationRequest("face_landmark", InputSettings()))


def test_nobody_who_could_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("engines", "calibrate", "face_landmark", "--input", CAMERA, "--out", str(tmp_path / "crops")) == 2
    assert "--yes" in capsys.readouterr().err
    assert not (tmp_path / "crops").exists()


def test_without_a_face_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    grey = tmp_path / "grey.mkv"
    import av

    with av.open(str(grey), "w") as container:
        stream = container.add_stream("mjpeg", rate=60)
        stream.width = stream.height = 160
        stream.pix_fmt = "yuvj420p"
        for _ in range(20):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((160, 160, 3), 90, np.uint8), format="bgr24")))
        container.mux(stream.encode(None))
    with pytest.raises(AppError, match=r"no face was found in 20 pictures of .*grey\.mkv; sit before the camera"):
        record(request("face_landmark", tmp_path / "crops", str(grey)), silent)
    assert not (tmp_path / "crops").exists()


def test_too_few_crops_are_said_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(AppError, match=r"\d+ good crops? in \d+ pictures? .* and 32 are needed"):
        record(request("face_landmark", tmp_path / "crops", f"{CAMERA},frames=20"), silent)
    assert not (tmp_path / "crops").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "crops").mkdir()
    (tmp_path / "crops" / "dear.png").touch()
    with pytest.raises(UsageError, match="not an empty folder"):
        record(request("face_landmark", tmp_path / "crops"), silent)


@pytest.mark.parametrize(("change", "words"), [({"count": 8}, "--count 8"), ({"seconds": 0}, "--seconds 0")])
def test_what_means_nothing(change: dict[str, float], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        request("face_landmark", tmp_path, **change).check()  # type: ignore[arg-type]


def test_a_model_that_is_not_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("engines", "calibrate", "nose", "--input", CAMERA, "--out", str(tmp_path / "crops"), "--yes") == 1
    assert "neither a file nor" in capsys.readouterr().err


def run(*arguments: str) -> int:
    """The command in this process; its logging is put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return int(ended.value.code or 0)


def test_nobody_is_asked_about_a_model_that_is_not_here() -> None:
    with pytest.raises(ModelError, match="neither a file nor"):
        consent(CalibrationRequest("nothing", InputSettings()))

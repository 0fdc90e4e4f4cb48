"""Models from a person's shelf in the whole line, a stand-in of every swapper family; and what goes wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import HOPPER
from paired import Paired
from standins import swappers as standins
from standins.shelf import OTHERS, SWAPPERS, fill
from standins.swappers import Contract

from app.bench.quality import QualityOptions, run_quality
from app.session import LiveSession
from app.settings import InputSettings, LookSettings, OutputSettings, RunSettings, Settings, SourceSettings
from engines.errors import ModelError
from engines.family import Kind, families
from rt.frame import Frame


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models, imported as a person would."""
    return fill(tmp_path_factory.mktemp("given"), tmp_path_factory.mktemp("models"), {"identity": OTHERS["identity"]})


class Middle(Paired):
    """Mean colour of the middle of every face before and after the work."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def compare(self, before: np.ndarray, frame: Frame) -> None:
        for face in frame.faces:
            x, y = face.points[[50, 280], :2].mean(0).astype(int)  # between the cheeks
            place = np.s_[y - 8 : y + 8, x - 8 : x + 8]
            self.seen.append((before[place].mean((0, 1)), frame.pixels[place].mean((0, 1))))


def run(look: LookSettings, photos: tuple[Path, ...], witness: Middle | None = None, faces: int = 5) -> dict:
    """Until the witness has seen so many faces; without one, until a few frames are out."""
    settings = Settings(
        source=SourceSettings(photos=photos),
        input=InputSettings(spec="synthetic:size=640x360,fps=30"),
        look=look,
        output=OutputSettings(null=True),
        run=RunSettings(),
    )
    session = LiveSession(settings, witness=witness)
    session.start()
    try:
        while (session.metrics().frames_out if witness is None else len(witness.seen)) < faces:
            assert not session.wait(0.01)
    finally:
        session.close()
    return session.report()


@pytest.mark.parametrize("name", [*SWAPPERS, "person"])
def test_every_family_goes_live(name: str, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in keeps a share of each colour of the person filmed; all but the person in front of a DFM file come from a photo."""
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    witness = Middle()
    report = run(LookSettings(swapper=name), () if name == "person" else (HOPPER,), witness)
    assert report["error"] is None
    assert report["settings"]["look"]["swapper"] == name
    before, after = (np.array(side) for side in zip(*witness.seen, strict=True))
    added = after - before * standins.KEPT[::-1]  # (1 - KEPT) · the identity's colour: the same in every frame
    assert added.std(0).max() < 3
    assert added.mean() > 5


@pytest.mark.parametrize("name", ["inswapper_128", "hyperswap_1a_256", "uniface_256", "person"])
def test_the_quality_bench_judges_every_kind_of_swapper(
    name: str, shelf: Path, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dlib")
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    for folder, file in (("clips", "videos/hevc_main10.mp4"), ("photos", "images/asian_woman.jpg")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / Path(file).name).write_bytes((shared_data / file).read_bytes())
    options = QualityOptions(look=LookSettings(swapper=name), frames_per_clip=10)
    found = run_quality(tmp_path / "clips", tmp_path / "photos", None, lambda *_: None, options).to_dict()
    assert found["pairs"][0]["frames"] == 10
    assert found["landmarks"]["median_iod"] < 0.3, "the stand-in paints the target's own face in another tint"
    assert 0 < found["identity"]["mean_to_source"] < 2


def test_a_session_changes_its_swapper_while_live(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    settings = Settings(
        source=SourceSettings(photos=(HOPPER,)), input=InputSettings(spec="synthetic:size=640x360,fps=30"), output=OutputSettings(null=True)
    )
    session = LiveSession(settings)
    session.start()
    try:
        session.update(settings.model_copy(update={"look": LookSettings(swapper="hyperswap_1a_256", pixel_boost=2)}))
        target = session.metrics().frames_out + 5
        while session.metrics().frames_out < target:
            assert not session.wait(0.01)
    finally:
        session.close()
    assert session.report()["settings"]["look"]["swapper"] == "hyperswap_1a_256"


def test_a_model_in_the_wrong_place_is_one_clear_sentence(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    with pytest.raises(ModelError, match=r"inswapper_128 is of the kind swapper .* and --detector was asked for; here are: blazeface-full"):
        run(LookSettings(detector="inswapper_128"), (HOPPER,))


@pytest.mark.parametrize(
    ("look", "photos", "said"),
    [
        (LookSettings(), (), "no --source was given: the picture passes as it is, with the face that is filmed"),
        (LookSettings(swapper="person"), (), None),
        (LookSettings(swapper="person"), (HOPPER,), "person draws one person alone: --source is not used"),
        (LookSettings(swapper="person", pixel_boost=2), (), "person has one size: --pixel-boost changes nothing"),
        (LookSettings(pixel_boost=2), (HOPPER,), "mesh has one size: --pixel-boost changes nothing"),
        (LookSettings(swapper="inswapper_128", pixel_boost=2), (HOPPER,), None),
    ],
)
def test_what_does_nothing_is_said(
    look: LookSettings, photos: tuple[Path, ...], said: str | None, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    settings = Settings(
        source=SourceSettings(photos=photos), input=InputSettings(spec="synthetic:"), look=look, output=OutputSettings(null=True)
    )
    session = LiveSession(settings)
    said_of_it = session.remarks()
    session.start()
    session.close()
    assert said_of_it == (() if said is None else (said,))


def test_a_file_that_was_not_imported_will_do(tmp_path: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    path = standins.swapper(tmp_path / "mine.onnx", Contract(256, emap=True, inputs=("a", "b")))
    assert run(LookSettings(swapper=str(path)), (HOPPER,))["frames_out"] > 0


def test_without_its_recogniser_a_swapper_says_what_to_pull(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "empty"))
    path = standins.swapper(tmp_path / "mine.onnx", Contract(128, emap=True))
    with pytest.raises(ModelError, match="ffrt models pull arcface_w600k_r50"):
        run(LookSettings(swapper=str(path)), (HOPPER,))


def test_cscs_needs_its_own_two_recognisers(tmp_path: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = standins.swapper(tmp_path / "mine.onnx", SWAPPERS["cscs_256"][1])
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "empty"))
    with pytest.raises(ModelError, match="ffrt models pull cscs_arcface_model"):
        run(LookSettings(swapper=str(path)), (HOPPER,))
    monkeypatch.setenv("FFRT_MODELS", str(shelf))
    wanted = "cscs_arcface_model and cscs_id_adapter, and --identity puts arcface_w600k_r50 in the place of both; leave --identity out"
    with pytest.raises(ModelError, match=wanted):
        run(LookSettings(swapper=str(path), identity="arcface_w600k_r50"), (HOPPER,))


def test_every_swapper_of_the_catalogue_has_its_family() -> None:
    from engines.store.catalog import load_catalog

    for entry in load_catalog():
        if entry.kind is Kind.SWAPPER:
            assert families[entry.family].kind is Kind.SWAPPER

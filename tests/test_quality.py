"""The quality bench: its measures against values known from algebra, its report, and one small run of the whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bench import measures
from app.bench.quality import QualityOptions, even_pairs, run_quality
from app.bench.quality_report import PairResult, QualityReport, Sample
from app.bench.recogniser import Recogniser
from app.errors import MissingError, UsageError
from engines.detect import detectors
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces


def frontal(eyes_px: float = 100.0) -> np.ndarray:
    """Points with eyes on a level line, ``eyes_px`` apart, and the nose between them."""
    points = np.random.default_rng(0).uniform(100, 300, (468, 3)).astype(np.float32)
    for corners, x in zip(measures.EYES, (150.0, 150.0 + eyes_px), strict=True):
        points[list(corners), :2] = [[x - 10, 200], [x + 10, 200]]
    points[measures.NOSE_TIP, :2] = [150 + eyes_px / 2, 240]
    return points


def test_landmark_error_is_in_distances_of_the_eyes() -> None:
    wanted = frontal(100)
    found = wanted + np.float32([3, 4, 50])  # five pixels off; depth does not count
    assert measures.landmark_error(found, wanted) == pytest.approx(0.05, rel=1e-4)


@given(st.floats(0.1, 3), st.integers(2, 40))
def test_jitter_of_points_on_a_circle_is_its_radius(radius: float, turns: int) -> None:
    angles = np.arange(4 * turns) * np.pi / 2
    paths = np.zeros((len(angles), 468, 3))
    paths[..., 0] += radius * np.cos(angles)[:, None]
    paths[..., 1] += radius * np.sin(angles)[:, None]
    assert measures.jitter(paths) == pytest.approx(radius)


def test_turned_aside_is_zero_from_the_front_and_the_nose_off_the_middle_otherwise() -> None:
    points = frontal(100)
    assert measures.turned_aside(points) == pytest.approx(0, abs=1e-6)
    points[measures.NOSE_TIP, 0] -= 30
    assert measures.turned_aside(points) == pytest.approx(0.3, rel=1e-4)


def test_steady_change_is_no_flicker_and_trembling_is() -> None:
    base = np.random.default_rng(0).uniform(0, 255, (128, 128)).astype(np.float32)
    assert measures.flicker(base, base + 5, base + 10) == pytest.approx(0, abs=1e-4)
    assert measures.flicker(base, base + 5, base) == pytest.approx(5, rel=1e-4)


def test_a_chip_follows_the_face() -> None:
    image = np.random.default_rng(0).integers(0, 255, (400, 400, 3), np.uint8)
    image = cv2.GaussianBlur(image, (0, 0), 5)
    moved = np.roll(image, (20, -30), (0, 1))
    points = frontal(60)
    there = measures.chip(moved, points + np.float32([-30, 20, 0]))
    assert np.abs(there - measures.chip(image, points)).mean() < 0.5


def test_a_seam_is_one_where_nothing_was_changed_and_more_where_an_edge_was_added() -> None:
    image = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 255, (100, 100, 3), np.uint8), (0, 0), 3)
    alpha = np.zeros((100, 100), np.uint8)
    alpha[20:80, 48:52] = 128
    edged = image.copy()
    edged[:, 50:] = edged[:, 50:] // 2 + 120
    assert measures.seam(image, image, alpha) == pytest.approx(1)
    assert measures.seam(image, edged, alpha) > 2  # type: ignore[operator]
    assert measures.seam(image, edged, np.zeros_like(alpha)) is None


@given(st.integers(1, 12), st.integers(1, 12))
def test_pairs_are_all_pairs_once_and_any_first_part_is_even(sources: int, clips: int) -> None:
    pairs = even_pairs(sources, clips)
    assert sorted(pairs) == [(s, c) for s in range(sources) for c in range(clips)]
    for length in range(len(pairs) + 1):
        uses = np.bincount([clip for _, clip in pairs[:length]], minlength=clips)
        assert np.ptp(uses) <= 1


def test_the_report_counts_every_sample_alike() -> None:
    near, far = Sample(0.4, 0.8, 0.02, 1.0), Sample(0.7, 0.6, 0.04, None)
    report = QualityReport(
        (PairResult("a.jpg", "x.mp4", 30, (near, near, near), 1.0, 2.0), PairResult("b.jpg", "y.mp4", 9, (far,), None, None)),
        {"x.mp4": 0.2, "y.mp4": 0.25},
        {"cat.png": "no face"},
        {"numpy": "2"},
    )
    found = report.to_dict()
    assert found["identity"] == {"mean_to_source": 0.475, "mean_to_target": 0.75, "share_nearer_source": 0.75, "share_under_0_6": 0.75}
    assert found["landmarks"] == {"median_iod": 0.02, "p95_iod": pytest.approx(0.037)}
    assert found["jitter_px"] == 0.25
    assert (found["flicker"], found["flicker_original"], found["seam"]) == (1.0, 2.0, 1.0)
    assert [pair["samples"] for pair in found["pairs"]] == [3, 1]
    assert json.loads(json.dumps(report.to_json_dict()))["pairs"][1]["all"][0]["to_source"] == 0.7


def test_without_dlib_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dlib", None)
    with pytest.raises(MissingError, match=r"pip install 'ffrt\[bench\]'"):
        Recogniser()


def test_dlib_tells_one_person_from_another(astronaut: np.ndarray) -> None:
    pytest.importorskip("dlib")
    recogniser, mesh, detector = Recogniser(), FaceMesh(), detectors["blazeface-full"]()
    hopper = cv2.imread(str(Path(__file__).parent.parent / "assets" / "portraits" / "hopper.jpg"))
    assert hopper is not None
    described = []
    for image in (astronaut, cv2.convertScaleAbs(astronaut[:, ::-1], alpha=0.8), hopper):
        described.append(recogniser.describe(image, find_faces(image, detector, mesh)[0].points))
    assert np.linalg.norm(described[0] - described[1]) < 0.6 < np.linalg.norm(described[0] - described[2])


def test_folders_that_hold_nothing_usable_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("dlib")
    with pytest.raises(UsageError, match="usable clips"):
        run_quality(tmp_path, tmp_path, None, lambda *_: None)
    with pytest.raises(UsageError, match="not a folder"):
        run_quality(tmp_path / "gone", tmp_path, None, lambda *_: None)


def test_a_small_run_finds_the_source_face_in_the_swap(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("dlib")
    clips, photos = tmp_path / "clips", tmp_path / "photos"
    for folder, file in ((clips, "videos/hevc_main10.mp4"), (photos, "images/asian_woman.jpg"), (photos, "images/noface_cat.png")):
        folder.mkdir(exist_ok=True)
        (folder / Path(file).name).write_bytes((shared_data / file).read_bytes())
    told: list[tuple[int, int]] = []
    options = QualityOptions(frames_per_clip=20, sheets_dir=tmp_path / "sheets")
    report = run_quality(clips, photos, tmp_path / "report.json", lambda done, total, _: told.append((done, total)), options)
    found = report.to_dict()
    assert told == [(0, 1), (1, 1)]
    assert [pair["samples"] for pair in found["pairs"]] == [3]
    assert found["identity"]["share_nearer_source"] == 1
    assert found["landmarks"]["median_iod"] < 0.06
    assert found["jitter_px"] < 0.3
    assert list(found["skipped"]) == ["noface_cat.png"]
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["identity"] == found["identity"]
    sheet = cv2.imread(str(tmp_path / "sheets" / "asian_woman__hevc_main10.jpg"))
    assert sheet is not None
    assert sheet.shape == (480, 6 * 240, 3)

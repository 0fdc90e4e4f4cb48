"""How good the swap is: every photo on every clip, through the program's own tracker, swapper and compositor.

Identity is judged by dlib, which took no part in making the picture; expression by FaceMesh, run again on what came out.
No number sees a plastic skin or a grey lip: look at the sheets too.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from app import build
from app.bench import measures
from app.bench.clips import Picture, pictures, usable_clips, usable_sources
from app.bench.quality_report import PairResult, QualityReport, Sample
from app.bench.recogniser import Recogniser
from app.bench.sheets import close_up, write_sheet
from app.errors import UsageError
from app.settings import LookSettings, Settings
from engines.landmarks.facemesh import FaceMesh, roi_from_points
from engines.mask.contract import Cover
from engines.swap.contract import Patch, SourceFace, Swapper
from engines.wording import counted
from rt.compose.lay import covers_of, lay
from rt.frame import FaceState, TrackedFace
from rt.options import Look
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker

Progress = Callable[[int, int, str], None]
"""``progress(done, total, what)``; called on the bench's own thread."""

SHEET_INSTANTS = 5

NOISE_SIGMA, NOISE_FRAMES, NOISE_WARM_UP, NOISE_FPS = 4.0, 60, 20, 30.0
"""The jitter test: a still picture in Gaussian noise of so many grey levels; frames of the warm-up do not count."""

PACKAGES = ("numpy", "opencv-contrib-python", "onnxruntime", "dlib-bin", "face_recognition_models")


@dataclass(frozen=True, slots=True)
class QualityOptions:
    """What to run."""

    look: LookSettings = field(default_factory=LookSettings)
    """Swapper, detector, masks and all; its smoothing is the tracker's."""
    max_pairs: int | None = None
    """Pairs are taken so that clips and photos are used evenly; None takes all."""
    frames_per_clip: int | None = 200
    """Only the first so many; None takes all."""
    sample_every: int = 9
    """One frame in so many goes through dlib and FaceMesh."""
    sheets_dir: Path | None = None
    """Where to write one picture a pair; None writes none."""
    seed: int = 1
    """Of the noise in the jitter test."""


class _Bench:
    """The models, opened once."""

    def __init__(self, options: QualityOptions) -> None:
        self.options = options
        self.recogniser = Recogniser()
        settings = Settings(look=options.look)
        here = build.parts(settings)
        self.detector = build.detector(settings, here)
        self.mesh = FaceMesh()
        self.look = build.unworn_look(settings, here)
        assert self.look.swapper is not None
        self.swapper: Swapper = self.look.swapper

    def tracker(self) -> Tracker:
        return Tracker(self.detector, self.mesh, TrackOptions(smoothing=self.options.look.smoothing))


def run_quality(
    clips_dir: Path, sources_dir: Path, report_path: Path | None, progress: Progress, options: QualityOptions | None = None
) -> QualityReport:
    """Runs all pairs and writes ``report_path`` (JSON, with every sample), where one is given. Minutes, on one thread.

    Raises ``MissingError`` without dlib, ``UsageError`` where the folders hold no usable clip or photo.
    """
    bench = _Bench(options or QualityOptions())
    skipped: dict[str, str] = {}
    clips = usable_clips(_folder(clips_dir), bench.detector, bench.mesh, skipped)
    sources = usable_sources(_folder(sources_dir), bench.detector, bench.mesh, skipped)
    if not clips or not sources:
        found = f"{clips_dir} holds {counted(len(clips), 'usable clip')} and {sources_dir} {counted(len(sources), 'usable photo')}"
        raise UsageError(f"{found}; give folders with at least one of each ({_reasons(skipped)})")
    pairs = even_pairs(len(sources), len(clips))[: bench.options.max_pairs]
    results = []
    for done, (source, clip) in enumerate(pairs):
        progress(done, len(pairs), f"{sources[source].name} on {clips[clip].name}")
        results.append(_run_pair(bench, sources[source], clips[clip]))
    used = sorted({clip for _, clip in pairs})
    jitter = {clips[clip].name: _jitter_of(bench, clips[clip]) for clip in used}
    report = QualityReport(tuple(results), {n: v for n, v in jitter.items() if v is not None}, skipped, _versions())
    progress(len(pairs), len(pairs), "done")
    if report_path is not None:
        report_path.write_text(json.dumps(report.to_json_dict(), indent=1, ensure_ascii=False), encoding="utf-8")
    return report


def even_pairs(sources: int, clips: int) -> list[tuple[int, int]]:
    """All (source, clip) pairs, ordered so that any first part uses clips, then photos, as evenly as it can."""
    return [((clip + turn) % sources, clip) for turn in range(sources) for clip in range(clips)]


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; give one that holds the files to be measured")
    return path


def _reasons(skipped: dict[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in list(skipped.items())[:3]) or "they are empty"


@dataclass(slots=True)
class _Shot:
    """A frame in which the face was swapped."""

    before: np.ndarray
    after: np.ndarray
    face: TrackedFace
    alpha: np.ndarray
    """uint8 [H, W] of the whole frame."""


def _run_pair(bench: _Bench, source: SourceFace, clip: Path) -> PairResult:
    identity = bench.swapper.prepare([source])
    described = bench.recogniser.describe(source.image, source.landmarks.points)
    tracker, samples, sheet = bench.tracker(), [], []
    trembling, swapped = _Trembling(), 0
    instants = _sheet_instants(bench.options)
    for number, picture in enumerate(islice(pictures(clip), bench.options.frames_per_clip)):
        shot = _swap(bench, tracker, picture, identity)
        trembling.see(shot)
        if shot is None:
            continue
        if number % bench.options.sample_every == 0:
            samples.append(_sample(bench, shot, described))
        if number in instants:
            sheet.append((close_up(shot.before, shot.face.points), close_up(shot.after, shot.face.points)))
        swapped += 1
    _forget(bench.swapper, tracker)
    if bench.options.sheets_dir is not None and sheet:
        name = f"{Path(source.name).stem}__{clip.stem}.jpg"
        write_sheet(bench.options.sheets_dir / name, close_up(source.image, source.landmarks.points), sheet)
    return PairResult(source.name, clip.name, swapped, tuple(samples), *trembling.medians())


def _swap(bench: _Bench, tracker: Tracker, picture: Picture, identity: Any) -> _Shot | None:
    faces = [face for face in tracker.update(picture.pixels, picture.media_ns) if face.state is FaceState.SEEN]
    for gone in tracker.take_removed():
        bench.swapper.forget(gone)
    if not faces:
        return None
    patch = bench.swapper.swap(picture.pixels, faces[0].points, identity, faces[0].id, picture.media_ns)
    if patch is None:
        return None
    after, look = picture.pixels.copy(), bench.look
    (covers,) = covers_of(look.masks, picture.pixels, [faces[0].points])
    lay(after, patch, covers, look.blending, look.opacity)
    _enhance(after, faces[0].points, covers, look)
    return _Shot(picture.pixels, after, faces[0], _whole_alpha(patch, picture.pixels.shape[:2]))


def _enhance(pixels: np.ndarray, points: np.ndarray, covers: Sequence[Cover], look: Look) -> None:
    patch = None if look.enhancer is None else look.enhancer.enhance(pixels, points)
    if patch is not None:
        lay(pixels, patch, covers, look.blending, look.enhancer_opacity)


def _forget(swapper: Swapper, tracker: Tracker) -> None:
    """The next pair's tracker starts again at the same ids."""
    tracker.clear()
    for gone in tracker.take_removed():
        swapper.forget(gone)


def _whole_alpha(patch: Patch, shape: tuple[int, ...]) -> np.ndarray:
    alpha = np.zeros(shape, np.uint8)
    height, width = patch.alpha.shape
    alpha[patch.top : patch.top + height, patch.left : patch.left + width] = patch.alpha
    return alpha


def _sample(bench: _Bench, shot: _Shot, source: np.ndarray) -> Sample:
    roi = roi_from_points(shot.face.points)
    wanted, found = bench.mesh.locate(shot.before, roi), bench.mesh.locate(shot.after, roi)
    before = bench.recogniser.describe(shot.before, shot.face.points)
    after = bench.recogniser.describe(shot.after, shot.face.points)
    return Sample(
        float(np.linalg.norm(after - source)),
        float(np.linalg.norm(after - before)),
        measures.landmark_error(found.points, wanted.points),
        measures.seam(shot.before, shot.after, shot.alpha),
    )


class _Trembling:
    """Flicker of the swapped and of the original face over three frames in a row."""

    def __init__(self) -> None:
        self._chips: tuple[deque[np.ndarray], deque[np.ndarray]] = (deque(maxlen=3), deque(maxlen=3))
        self._values: tuple[list[float], list[float]] = ([], [])

    def see(self, shot: _Shot | None) -> None:
        if shot is None:
            for chips in self._chips:
                chips.clear()
            return
        for chips, values, image in zip(self._chips, self._values, (shot.after, shot.before), strict=True):
            chips.append(measures.chip(image, shot.face.points))
            if len(chips) == 3:
                values.append(measures.flicker(*chips))

    def medians(self) -> tuple[float | None, float | None]:
        after, before = (float(np.median(values)) if values else None for values in self._values)
        return after, before


def _sheet_instants(options: QualityOptions) -> set[int]:
    length = options.frames_per_clip or 200
    return {round(k) for k in np.linspace(0, max(0, min(length, 70) - 1), SHEET_INSTANTS)}


def _jitter_of(bench: _Bench, clip: Path) -> float | None:
    still = next(iter(pictures(clip))).pixels
    noise = np.random.default_rng(bench.options.seed)
    tracker, paths = bench.tracker(), []
    for number in range(NOISE_FRAMES):
        noisy = np.clip(np.rint(still + noise.normal(0, NOISE_SIGMA, still.shape)), 0, 255).astype(np.uint8)
        faces = tracker.update(noisy, round(number * 1e9 / NOISE_FPS))
        if number >= NOISE_WARM_UP and faces and faces[0].state is FaceState.SEEN:
            paths.append(faces[0].points)
    return measures.jitter(np.stack(paths)) if len(paths) > 1 else None


def _versions() -> dict[str, str]:
    return {package: version(package) for package in PACKAGES}

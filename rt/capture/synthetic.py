"""The synthetic camera: an animated portrait at camera pace. It needs no device and is the same on every machine."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from engines.detect import detectors
from engines.errors import PhotoError
from engines.identity.photo import open_photo
from engines.landmarks.facemesh import FaceMesh
from engines.landmarks.find import find_faces
from rt import timecode
from rt.audio import AudioBus
from rt.capture import SourceKind, sources
from rt.capture.contract import Grab
from rt.capture.request import CaptureRequest, parse_options
from rt.clock import Clock
from rt.errors import OptionError, SourceError, SourceLostError
from rt.frame import VideoFormat

ACCEPTED = {
    "size": "WIDTHxHEIGHT",
    "fps": "NUMBER",
    "timecode": "on|off",
    "stall": "AT_S:LENGTH_S",
    "frames": "NUMBER",
    "unplug": "AT_S",
    "replug": "AT_S",
    "portrait": "PHOTO",
    "face": "PIXELS",
    "motion": "FACTOR",
}

REACH = 1.1
"""Face heights from the face's centre within which the picture moves: hair and collar, and no more pixels than need be."""

SIDE_MAX = 8192
"""Pixels; more is a slip of the hand, and would fill the memory with slots."""

MOTION_MAX = 10.0
"""Beyond this the head leaves the picture."""

SMALL_SIGMA = 4.0
"""Pixels: a wider blur is made on a smaller picture, which differs by less than a level on average."""

GRID = 57
"""Points a side of the coarse field of motion; it is smooth, so pixels between are interpolated."""


def recognises(spec: str) -> bool:
    return spec == "synthetic" or spec.startswith("synthetic:")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the SPEC says."""

    video: VideoFormat = field(default_factory=lambda: VideoFormat(1280, 720, 30))
    timecode: bool = False
    stall_s: tuple[float, float] | None = None
    """From when on, and for how long, no picture comes."""
    frames: int | None = None
    """The camera ends after so many."""
    unplug_s: float | None = None
    """From when on it fails, as one whose cable was pulled out."""
    replug_s: float | None = None
    """From when on it can be opened again; None is never."""
    portrait: Path = Path(str(files("assets") / "portraits" / "astronaut.png"))
    face_px: float | None = None
    """Height of the face; None is 300 pixels at 720 rows, and in proportion."""
    motion: float = 1.0
    """How much the head moves, talks and blinks; 0 is a still picture."""

    @classmethod
    def parse(cls, spec: str, request: CaptureRequest) -> Parameters:
        options = parse_options(spec, ACCEPTED)
        try:
            width, height = _pair(options.get("size", f"{request.width or 1280}x{request.height or 720}"), "x", int)
            if not 16 <= width <= SIDE_MAX or not 16 <= height <= SIDE_MAX:
                raise ValueError(f"a side must have 16 to {SIDE_MAX} pixels")
            return cls(
                VideoFormat(width, height, float(options.get("fps", request.fps or 30))),
                {"on": True, "off": False}[options.get("timecode", "off")],
                _stall(options["stall"]) if "stall" in options else None,
                int(_within("frames", options["frames"], 1)) if "frames" in options else None,
                _within("unplug", options["unplug"], 0) if "unplug" in options else None,
                _within("replug", options["replug"], 0) if "replug" in options else None,
                Path(options["portrait"]) if "portrait" in options else cls().portrait,
                _within("face", options["face"], 16, SIDE_MAX) if "face" in options else None,
                _within("motion", options.get("motion", "1"), 0, MOTION_MAX),
            )
        except (ValueError, KeyError) as error:
            accepted = ",".join(f"{name}={value}" for name, value in ACCEPTED.items())
            raise OptionError(f"input {spec!r} was given ({error}); write synthetic:{accepted}, any of them left out") from None


def _within(name: str, text: str, least: float, most: float = math.inf) -> float:
    """The number that ``text`` is. Raises ValueError for one outside of the limits, and for what is no number."""
    value = float(text)
    if not least <= value <= most or math.isinf(value):
        raise ValueError(f"{name}={text}: it takes {least:g} or more" + (f", up to {most:g}" if most < math.inf else ""))
    return value


def _stall(text: str) -> tuple[float, float]:
    at_s, length_s = text.split(":")
    return _within("stall", at_s, 0), _within("stall", length_s, 0)


class SyntheticSource:
    """Paced by the clock like a camera with one buffer: a picture that nobody fetched in time is gone."""

    live = True

    def __init__(self, spec: str, request: CaptureRequest, clock: Clock) -> None:
        self._spec = spec
        self._parameters = Parameters.parse(spec, request)
        self._clock = clock
        self._stop = threading.Event()
        self._scene: AnimatedPortrait | None = None
        self._start_ns: int | None = None  # of the first opening: it is the same camera afterwards
        self._index = -1
        self._captured_ns = 0
        self._missed = 0

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        self._stop = stop
        video, now_ns = self._parameters.video, self._clock.now_ns()
        if self._start_ns is not None and self._is_unplugged((now_ns - self._start_ns) / 1e9):
            raise self._unplugged()
        self._scene = AnimatedPortrait(
            self._parameters.portrait, video.width, video.height, self._parameters.face_px, self._parameters.motion
        )
        if self._start_ns is None:
            self._start_ns = self._clock.now_ns()
        else:  # pictures were made meanwhile, and seen by nobody
            self._index = (now_ns - self._start_ns) // video.period_ns
        return video

    def grab(self) -> Grab | None:
        assert self._start_ns is not None
        period_ns = self._parameters.video.period_ns
        newest = (self._clock.now_ns() - self._start_ns) // period_ns
        following = self._after_stall(self._index + 1)
        self._missed += max(0, newest - following)
        self._index = max(following, newest)
        if self._parameters.frames is not None and self._index >= self._parameters.frames:
            return None
        if self._is_unplugged(self._index * period_ns / 1e9):
            raise self._unplugged()
        self._captured_ns = self._start_ns + self._index * period_ns
        if not self._clock.wait_until(self._captured_ns, self._stop):
            return None
        return Grab(self._captured_ns, self._index * period_ns)

    def retrieve(self, into: np.ndarray) -> None:
        assert self._scene is not None
        self._scene.draw(self._index / self._parameters.video.fps, into)
        if self._parameters.timecode:
            timecode.burn(into, self._captured_ns // 1000)

    def close(self) -> None:
        self._scene = None

    def describe(self) -> dict[str, Any]:
        return {"spec": self._spec, "granted": f"synthetic camera {self._parameters.video}", "missed": self._missed}

    def _is_unplugged(self, at_s: float) -> bool:
        out_s, in_s = self._parameters.unplug_s, self._parameters.replug_s
        return out_s is not None and at_s >= out_s and (in_s is None or at_s < in_s)

    @staticmethod
    def _unplugged() -> SourceLostError:
        return SourceLostError("the synthetic camera was unplugged, as its SPEC says; choose another input, or leave unplug out")

    def _after_stall(self, index: int) -> int:
        """The first index at or after ``index`` that does not fall into the stall."""
        if self._parameters.stall_s is None:
            return index
        at_s, length_s = self._parameters.stall_s
        fps = self._parameters.video.fps
        inside = at_s <= index / fps < at_s + length_s
        return math.ceil((at_s + length_s) * fps) if inside else index


class AnimatedPortrait:
    """A still portrait whose head moves, talks and blinks: a smooth field of displacements over the head's surroundings.

    ``draw`` is a function of the time alone, so any instant can be drawn again.
    """

    def __init__(self, portrait: Path, width: int, height: int, face_px: float | None = None, motion: float = 1.0) -> None:
        """``face_px`` and ``motion``: as in ``Parameters``. Raises ``SourceError`` for a portrait that cannot be used."""
        try:
            photo = open_photo(portrait)
        except PhotoError as error:
            raise SourceError(str(error)) from error
        faces = find_faces(photo, detectors["blazeface-full"](), FaceMesh())
        if not faces:
            raise SourceError(f"no face was found in the portrait {portrait}; give a photo of one face")
        self._still, points = _compose(photo, faces[0].points, width, height, face_px or 300 * height / 720)
        self._motion = np.float32(motion)
        self._lay_field(points, width, height)

    def draw(self, seconds: float, into: np.ndarray) -> None:
        """Writes the picture at ``seconds`` into ``into``: uint8 [H, W, 3] BGR."""
        np.copyto(into, self._still)
        field = self._field(seconds)
        top, bottom, left, right = self._region
        size = (right - left, bottom - top)
        dx, dy = (cv2.resize(field[..., k], size, interpolation=cv2.INTER_LINEAR) for k in range(2))
        cv2.add(dx, self._columns, dst=dx)
        cv2.add(dy, self._rows, dst=dy)
        whole, fraction = cv2.convertMaps(dx, dy, cv2.CV_16SC2)  # fixed point: 1/32 pixel, and half the time of float maps
        cv2.remap(
            self._still,
            whole,
            fraction,
            cv2.INTER_LINEAR,
            dst=into[top:bottom, left:right],
            borderMode=cv2.BORDER_REPLICATE,
        )

    def _lay_field(self, points: np.ndarray, width: int, height: int) -> None:
        """Where the head is, and how far each motion reaches: weights on the coarse grid."""
        low, high = points[:, :2].min(0), points[:, :2].max(0)
        self._size = float(high[1] - low[1])
        self._centre = (low + high) / 2
        reach = REACH * self._size
        (left, top), (right, bottom) = self._centre - reach, self._centre + reach
        self._region = max(0, int(top)), min(height, int(bottom)), max(0, int(left)), min(width, int(right))
        top, bottom, left, right = self._region
        x = np.linspace(left, right - 1, GRID, dtype=np.float32)
        y = np.linspace(top, bottom - 1, GRID, dtype=np.float32)
        self._grid = np.stack(np.meshgrid(x, y), -1)
        self._columns = np.tile(np.arange(left, right, dtype=np.float32), (bottom - top, 1))
        self._rows = np.repeat(np.arange(top, bottom, dtype=np.float32)[:, None], right - left, 1)
        away = np.linalg.norm((self._grid - self._centre) / np.float32(reach), axis=-1)
        self._head = np.clip(1.6 * (1 - away), 0, 1) ** 2 * (3 - 2 * np.clip(1.6 * (1 - away), 0, 1))
        self._nose = self._bump(points[1], 0.28)
        self._chin = self._bump(points[152] * 0.55 + points[17] * 0.45, 0.17)
        self._lids = [self._bump(points[top_lid] - [0, 0.02 * self._size, 0], 0.055) for top_lid in (159, 386)]

    def _bump(self, point: np.ndarray, sigma: float) -> np.ndarray:
        """float32 [GRID, GRID]: 1 at ``point``, falling off over ``sigma`` face heights."""
        away = np.linalg.norm(self._grid - point[:2].astype(np.float32), axis=-1) / np.float32(sigma * self._size)
        return np.exp(-0.5 * away**2)

    def _field(self, seconds: float) -> np.ndarray:
        """float32 [GRID, GRID, 2]: how far from a pixel its colour lies in the still, in pixels."""
        sway, nod, tilt, lean = (_wave(seconds, k) for k in range(4))
        offset = self._grid - self._centre
        angle, scale = np.float32(0.11 * tilt), np.float32(1 - 0.04 * lean)
        turned = np.stack([offset[..., 0] + angle * offset[..., 1], offset[..., 1] - angle * offset[..., 0]], -1) * scale
        shift = np.array([0.09 * sway, 0.05 * nod], np.float32) * np.float32(self._size)
        field = (turned - offset - shift) * self._head[..., None]
        field[..., 0] -= self._nose * np.float32(0.035 * sway * self._size)
        field[..., 1] -= self._chin * np.float32(0.05 * _talk(seconds) * self._size)
        for lid in self._lids:
            field[..., 1] -= lid * np.float32(0.055 * _blink(seconds) * self._size)
        return np.ascontiguousarray(field * self._motion, np.float32)


def _wave(seconds: float, which: int) -> float:
    """Slow irregular motion in [-1, 1]: two sines without a common period."""
    slow, fast = 0.19 + 0.05 * which, 0.43 + 0.07 * which
    return 0.65 * math.sin(2 * math.pi * slow * seconds + which) + 0.35 * math.sin(2 * math.pi * fast * seconds + 2.1 * which)


def _talk(seconds: float) -> float:
    """How far the mouth is open, in [0, 1]: syllables at 3 Hz, in phrases."""
    return max(0.0, math.sin(2 * math.pi * 0.31 * seconds)) * (0.5 - 0.5 * math.cos(2 * math.pi * 3.0 * seconds))


def _blink(seconds: float) -> float:
    """How far the lids are closed, in [0, 1]: a fifth of a second, every 3.4 seconds."""
    phase = (seconds + 1.0) % 3.4
    return math.sin(math.pi * phase / 0.2) if phase < 0.2 else 0.0


def _compose(photo: np.ndarray, points: np.ndarray, width: int, height: int, face_px: float) -> tuple[np.ndarray, np.ndarray]:
    """The portrait before a blurred copy of itself, the face at ``face_px``; and the landmarks where they have come to lie."""
    low, high = points[:, 1].min(), points[:, 1].max()
    scale = face_px / float(high - low)
    centre = (points[:, :2].min(0) + points[:, :2].max(0)) / 2
    shift = np.array([width * 0.5, height * 0.46]) - centre * scale
    matrix = np.array([[scale, 0, shift[0]], [0, scale, shift[1]]], np.float64)
    person = cv2.warpAffine(photo, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    covered = cv2.warpAffine(np.full(photo.shape[:2], 255, np.uint8), matrix, (width, height))
    soft = cv2.blur(cv2.erode(covered, np.ones((3, 3), np.uint8), iterations=max(1, width // 60)), (width // 16 | 1,) * 2)
    background = _blurred(person, width / 40)
    alpha = soft.astype(np.float32)[..., None] / 255
    picture = person * alpha + background * (1 - alpha)
    moved = points * np.float32(scale) + np.array([*shift, 0], np.float32)
    return np.ascontiguousarray(picture.astype(np.uint8)), moved


def _blurred(picture: np.ndarray, sigma_px: float) -> np.ndarray:
    """By way of a small picture: at full size it would take most of the time that this camera needs to open."""
    times = max(1.0, sigma_px / SMALL_SIGMA)
    small = cv2.resize(picture, None, fx=1 / times, fy=1 / times, interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma_px / times)
    blurred: np.ndarray = cv2.resize(small, picture.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return blurred


def _pair(text: str, separator: str, kind: Any) -> Any:
    first, found, second = text.partition(separator)
    if not found:
        raise ValueError(f"{text!r} lacks a {separator!r}")
    return kind(first), kind(second)


sources.register("synthetic")(SourceKind(recognises, SyntheticSource))
